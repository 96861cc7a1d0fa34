"""Translations of the interface, in the language of the request.

Messages are written in English in the code; ``app/locales/<language>/LC_MESSAGES/messages.po`` has the translations and
is read without a compile step. To collect and merge new messages (the mapping is in pyproject.toml)::

    pybabel extract -F pyproject.toml -k _ -k N_ --no-location --sort-output -o /tmp/messages.pot .
    pybabel update -i /tmp/messages.pot -d app/locales -w 120 --no-fuzzy-matching --ignore-obsolete \\
        --ignore-pot-creation-date
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from datetime import date as Date
from functools import lru_cache
from pathlib import Path

from babel import Locale, negotiate_locale
from babel.dates import (
    format_date,
    format_skeleton,
    format_time,
    format_timedelta,
    get_datetime_format,
    get_day_names,
)
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, format_percent
from babel.support import NullTranslations, Translations

LOCALES_DIR = Path(__file__).parent / "locales"
DEFAULT_LANGUAGE = "en"
_A_MINUTE, _AN_HOUR, _A_DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_CACHE_SIZE = 4096
"""Entries per kind of value."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the interface: its code in URLs, and its own name."""

    code: str
    name: str


LANGUAGES = (Language("en", "English"), Language("ko", "한국어"), Language("zh", "中文"))
LANGUAGE_CODES = tuple(language.code for language in LANGUAGES)

_current: ContextVar[str] = ContextVar("language", default=DEFAULT_LANGUAGE)


def current_language() -> str:
    """The code of the current language."""
    return _current.get()


@contextmanager
def use_language(code: str) -> Iterator[None]:
    """Use a language inside the block."""
    token = _current.set(code)
    try:
        yield
    finally:
        _current.reset(token)


def gettext(message: str) -> str:
    """The message in the current language."""
    return _translations(_current.get()).gettext(message)


def ngettext(singular: str, plural: str, n: int) -> str:
    """The message for ``n`` things in the current language."""
    return _translations(_current.get()).ngettext(singular, plural, n)


def pgettext(context: str, message: str) -> str:
    """The message in the current language, where other languages need another word than elsewhere."""
    return str(_translations(_current.get()).pgettext(context, message))


_ = gettext


def N_(message: str) -> str:  # noqa: N802, RUF100 - the customary name
    """Mark a message for translation where it is defined; call ``gettext`` where it is shown."""
    return message


@lru_cache(maxsize=1024)
def negotiate(accept_language: str) -> str:
    """Choose a language for an Accept-Language header; English if none matches."""
    wanted = [
        tag.replace("-", "_")
        for weight, tag in sorted(map(parse_quality, accept_language[:400].split(",")), key=lambda pair: -pair[0])
        if weight > 0 and tag
    ]
    bases = [part for tag in wanted for part in (tag, tag.partition("_")[0])]
    return negotiate_locale(bases, LANGUAGE_CODES) or DEFAULT_LANGUAGE


def parse_quality(item: str) -> tuple[float, str]:
    """The weight and the name of an item in an Accept header: ``gzip;q=0.5``. Nonsense has weight 0. Pure."""
    tag, _sep, parameter = item.partition(";")
    try:
        return float(parameter.strip().removeprefix("q=") or 1), tag.strip()
    except ValueError:
        return 0.0, ""


def number(value: float) -> str:
    """``12345.6`` in the format of the language."""
    return _number(_current.get(), value)


def percent(value: float) -> str:
    """``0.25`` as 25% in the format of the language."""
    return _percent(_current.get(), value)


def date(value: Date) -> str:
    """A date in the language's medium format."""
    return _date(_current.get(), value.date() if isinstance(value, datetime) else value)


def day_and_month(value: Date) -> str:
    """A date without its year, in the short format."""
    return format_skeleton("MMMd", value, locale=_locale(_current.get()))


def date_and_time(value: datetime) -> str:
    """A date and time in the language's medium format, in the value's own time zone."""
    return _date_and_time(_current.get(), value.replace(tzinfo=None))  # equal moments may differ in time zone


def weekdays() -> list[str]:
    """The short names of the days, starting with Monday."""
    names = get_day_names("abbreviated", locale=_locale(_current.get()))
    return [names[day] for day in range(7)]


def duration(value: timedelta) -> str:
    """A duration in words, rounded up to its largest unit: ``2 minutes``."""
    unit = next((unit for unit in (_A_DAY, _AN_HOUR, _A_MINUTE) if value >= 1.5 * unit), timedelta(seconds=1))
    rounded = max(1, -(-value // unit)) * unit
    return format_timedelta(rounded, threshold=1.5, locale=_locale(_current.get()))


def relative_time(value: datetime) -> str:
    """How long ago a moment was, in words: ``2 minutes ago``; the date if it is more than a month."""
    passed = datetime.now(UTC) - value
    if passed > timedelta(days=30):
        return date(value)
    if passed >= _A_DAY:
        passed -= passed % _AN_HOUR
    elif passed >= _AN_HOUR:
        passed -= passed % _A_MINUTE
    return _relative_time(_current.get(), max(1, int(passed.total_seconds())))


# Cached: formatting ten values with Babel takes longer than reading a page from the database.


@lru_cache(maxsize=_CACHE_SIZE)
def _number(code: str, value: float) -> str:
    return format_decimal(value, locale=_locale(code))


@lru_cache(maxsize=_CACHE_SIZE)
def _percent(code: str, value: float) -> str:
    return format_percent(value, locale=_locale(code))


@lru_cache(maxsize=_CACHE_SIZE)
def _date(code: str, value: Date) -> str:
    return format_date(value, locale=_locale(code))


@lru_cache(maxsize=_CACHE_SIZE)
def _date_and_time(code: str, value: datetime) -> str:
    locale = _locale(code)
    pattern = locale.time_formats["medium"].pattern.replace("a", "aaaa")  # 오후, where the short form is PM
    time, day = format_time(value, pattern, locale=locale), format_date(value, locale=locale)
    return str(get_datetime_format(locale=locale)).replace("{0}", time).replace("{1}", day)


@lru_cache(maxsize=_CACHE_SIZE)
def _relative_time(code: str, seconds: int) -> str:
    return format_timedelta(timedelta(seconds=-seconds), add_direction=True, threshold=1, locale=_locale(code))


@lru_cache
def _locale(code: str) -> Locale:
    return Locale.parse(code)


@lru_cache
def _translations(code: str) -> NullTranslations:
    source = LOCALES_DIR / code / "LC_MESSAGES" / "messages.po"
    if code not in LANGUAGE_CODES or not source.is_file():
        return NullTranslations()
    compiled = io.BytesIO()
    with source.open("rb") as file:
        write_mo(compiled, read_po(file, locale=code))
    compiled.seek(0)
    return Translations(compiled)
