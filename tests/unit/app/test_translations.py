"""Every word of the interface is spoken in every language: nothing missing, nothing stale, nothing left in English.

After adding or changing a message, run the two commands in the docstring of ``app/i18n.py`` and fill in the gaps.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from jinja2 import Environment

from app import i18n, main
from app.errors import LockstepError

ROOT = Path(i18n.__file__).parents[1]
TRANSLATED = [code for code in i18n.LANGUAGE_CODES if code != i18n.DEFAULT_LANGUAGE]
TEMPLATES = sorted((ROOT / "app").rglob("templates/**/*.html"))
SCRIPTS = {"ko": re.compile("[가-힣]"), "zh": re.compile("[一-鿿]")}
PLURALS = {"ko": 1, "zh": 1}

_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w*(?:![rsa])?(?::[^{}]*)?\}")

Key = str | tuple[str, ...]
Texts = str | list[str] | tuple[str, ...] | None


@cache
def _in_the_code() -> frozenset[Key]:
    """Every message that the code and the templates mark. The search takes two seconds."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["babel"]["mappings"]
    methods = [(table["pattern"], table["method"]) for table in tables]
    keywords = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2), "pgettext": ((1, "c"), 2)}
    found = extract_from_dir(ROOT, methods, {}, keywords, directory_filter=lambda path: _is_ours(Path(path)))
    return frozenset(message for _file, _line, message, _comments, _context in found)


def _is_ours(folder: Path) -> bool:
    return folder == ROOT or (ROOT / "app") in (folder, *folder.parents)


def _catalog(code: str) -> Catalog:
    path = i18n.LOCALES_DIR / code / "LC_MESSAGES" / "messages.po"
    with path.open("rb") as file:
        return read_po(file, locale=code, abort_invalid=True)


def _messages(code: str) -> list[Message]:
    return [message for message in _catalog(code) if message.id]


def _texts(value: Texts) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _placeholders(text: str) -> list[str]:
    return sorted(_PLACEHOLDER.findall(text.replace("{{", "").replace("}}", "").replace("%%", "")))


def test_the_search_for_messages_finds_those_of_code_templates_and_counts() -> None:
    found = _in_the_code()
    assert "There is nothing at this address." in found  # Python
    assert "Skip to main content" in found  # a template
    assert ("%(num)s minute", "%(num)s minutes") in found
    assert len(found) > 100


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_message_of_the_code_is_in_the_catalog_and_no_other(code: str) -> None:
    in_catalog = {message.id for message in _messages(code)}
    in_code = _in_the_code()
    missing, stale = in_code - in_catalog, in_catalog - in_code
    assert (missing, stale) == (frozenset(), set())
    assert not _catalog(code).obsolete


def _problems(kind: type[LockstepError]) -> Iterator[type[LockstepError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _problems(narrower)


def test_what_a_problem_says_is_marked_to_be_translated() -> None:
    assert main.FEATURES, "what every feature says is there"
    kinds = [kind for kind in _problems(LockstepError) if kind.__module__.startswith("app.")]
    assert len(kinds) > 50

    said = _in_the_code()

    assert {kind.__name__: kind.message for kind in kinds if kind.message not in said} == {}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Metrics from 0 to 1", "Accuracy"),
        ("Its processes", "Workers"),
        ("Of the course", "Course progress"),
        ("Problem?", "Report"),
        ("Interrupt", "Stop"),
        ("Nothing is at this address", "Page not found"),
    ],
)
def test_a_wording_that_was_replaced_does_not_come_back(before: str, now: str) -> None:
    said = {text for message in _in_the_code() for text in _texts(message)}
    assert now in said
    assert [text for text in said if text.startswith(before)] == []


@pytest.mark.parametrize("place", ["runs/templates/runs/session_panel.html", "web/templates/components/cell.html"])
def test_a_run_is_stopped_by_the_same_word_everywhere(place: str) -> None:
    assert '_("Stop")' in (ROOT / "app" / place).read_text(encoding="utf-8")


@pytest.mark.parametrize("code", TRANSLATED)
def test_no_message_is_fuzzy_or_empty_or_lacks_a_form(code: str) -> None:
    wrong = [
        message.id
        for message in _messages(code)
        if message.fuzzy
        or not all(text.strip() for text in _texts(message.string))
        or (isinstance(message.id, tuple) and len(_texts(message.string)) != PLURALS[code])
    ]
    assert wrong == []
    assert _catalog(code).num_plurals == PLURALS[code]


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_translation_is_written_in_its_own_script(code: str) -> None:
    script = SCRIPTS[code]
    foreign = [
        message.id
        for message in _messages(code)
        if any(re.search("[A-Za-z]", _PLACEHOLDER.sub("", text)) for text in _texts(message.id))
        and not all(map(script.search, _texts(message.string)))
    ]
    assert foreign == []


def test_chinese_addresses_the_reader_in_one_way() -> None:
    """As lessons do; see docs/teach/terms.md."""
    formal = [message.id for message in _messages("zh") if any("您" in text for text in _texts(message.string))]
    assert formal == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_translation_has_the_placeholders_of_the_original(code: str) -> None:
    wrong = [
        (message.id, text)
        for message in _messages(code)
        for text in _texts(message.string)
        if _placeholders(text) != _placeholders(_texts(message.id)[-1])
    ]
    assert wrong == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_translation_begins_and_ends_as_the_original(code: str) -> None:
    """A full stop, a colon at the end, a space at either end: texts joined to a message rely on them."""
    ends = {".": ".。", ":": ":：", "?": "?？"}
    wrong = []
    for message in _messages(code):
        original, text = _texts(message.id)[-1], _texts(message.string)[-1]
        blanks = (original[0].isspace(), original[-1].isspace()) == (text[0].isspace(), text[-1].isspace())
        if not blanks or text[-1] not in ends.get(original[-1], text[-1]):
            wrong.append((original, text))
    assert wrong == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_the_application_speaks_it(code: str) -> None:
    with i18n.use_language(code):
        assert SCRIPTS[code].search(i18n.gettext("There is nothing at this address."))
        assert "4" in i18n.ngettext("{n} GPU", "{n} GPUs", 4).format(n=4)


class _Words(HTMLParser):
    """Collects text in a template that reaches a reader without passing through gettext."""

    _SPOKEN = frozenset({"alt", "aria-description", "aria-label", "aria-valuetext", "placeholder", "title"})
    _SILENT = frozenset({"script", "style", "kbd", "code"})
    _VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self._VOID:
            self._within.append(tag)
        described = tag == "meta" and ("name", "description") in attrs
        for name, value in attrs:
            if name in self._SPOKEN or (described and name == "content"):
                self._note(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._within:
            while self._within.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self._SILENT & set(self._within):
            self._note(data)

    def _note(self, text: str) -> None:
        words = re.findall(r"[^\W\d_]{2,}", text.replace("Lockstep", ""))
        if words:
            self.found.append(" ".join(words))


def _spoken_without_gettext(source: str) -> list[str]:
    """The text between a template's tags, and in attributes that are read aloud."""
    kept: list[str] = []
    silent: list[bool] = []  # for each open block or trans: are its words no words, or translated
    before = ""
    for _line, kind, value in Environment(autoescape=True).lex(source):
        if kind == "name" and before == "block":
            silent.append(value.endswith("_class"))
        elif kind == "name" and value == "trans":
            silent.append(True)
        elif kind == "name" and value in ("endblock", "endtrans"):
            silent.pop()
        elif kind == "data" and not any(silent):
            kept.append(value)
        elif kind == "variable_begin":
            kept.append("0")
        before = value if kind != "whitespace" else before
    words = _Words()
    words.feed("".join(kept))
    words.close()
    return words.found


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_template_speaks_past_gettext(template: Path) -> None:
    assert _spoken_without_gettext(template.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>Save it</p>", ["Save it"]),
        ('<button aria-label="Save it">{{ icon() }}</button>', ["Save it"]),
        ('<img alt="{% if x %}A map{% endif %}">', ["map"]),
        ('<meta name="description" content="A course">', ["course"]),
        ("<p>{{ _('Save it') }} · Lockstep · {# Save it #}</p>", []),
        ("<p>{% trans n=1 %}Save {{ n }} of them{% endtrans %}</p>", []),
        ("{% block body_class %}plain{% endblock %}{% block main %}Save it{% endblock %}", ["Save it"]),
        ("<script>const save = 1;</script><kbd>Ctrl</kbd>", []),
        ('<a class="quiet" href="/en/">{{ title }}</a>', []),
    ],
)
def test_the_search_for_such_words_finds_them(source: str, found: list[str]) -> None:
    assert _spoken_without_gettext(source) == found
