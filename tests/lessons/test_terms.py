"""The translations use the words of docs/teach/terms.md, and none that it tells them to avoid."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[2]
TERMS = (ROOT / "docs" / "teach" / "terms.md").read_text(encoding="utf-8")
LANGUAGES = ("ko", "zh")


class Term(NamedTuple):
    """A row of the table: alternatives are separated by commas."""

    en: str
    ko: list[str]
    zh: list[str]
    avoided: list[str]


def _words(cell: str) -> list[str]:
    return [word.strip() for word in cell.split(",") if word.strip()]


ROWS = re.findall(r"^\| ([^|]+)\|([^|]+)\|([^|]+)\|([^|]*)\|[^|]*\|$", TERMS, re.MULTILINE)[1:]
TABLE = [Term(en.strip(), _words(ko), _words(zh), _words(avoided)) for en, ko, zh, avoided in ROWS]
ELSEWHERE = {
    *("answer", "batch", "cell", "check", "copy", "core", "device", "example", "experimental"),
    *("host", "link", "moment", "reduce", "schedule", "scope", "session", "share"),
    *("slot", "step", "token", "training loop", "variable"),
}
"""Terms that messages also use in another sense, as a name in code, or where a translation needs no noun."""
LESSONS = sorted((ROOT / "lessons").rglob("*.*"))


def _texts(language: str) -> dict[str, str]:
    """The lessons of a language with the sentences of their checks and the words of their drawings, by path."""
    ending = re.compile(r"lesson\.md" if language == "en" else rf".+\.{language}\.(md|toml|svg)")
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in LESSONS if ending.fullmatch(path.name)
    }


ENGLISH = "\n".join(_texts("en").values()).lower()
TRANSLATED = {language: _texts(language) for language in LANGUAGES}
MESSAGES = {
    str(path.relative_to(ROOT)): "\n".join(
        "" if line.startswith("msgid") else line for line in path.read_text(encoding="utf-8").splitlines()
    )
    for language in LANGUAGES
    for path in [ROOT / "app" / "locales" / language / "LC_MESSAGES" / "messages.po"]
}


def _found(word: str, instead_of: list[str], texts: dict[str, str]) -> list[str]:
    """The lines with an avoided word that is not part of a right one."""
    found = []
    for path, text in texts.items():
        if word in text:  # nearly always false, and this is all that it costs
            for number, line in enumerate(text.splitlines(), start=1):
                for right in instead_of:
                    line = line.replace(right, "")
                if word in line:
                    found.append(f"{path}:{number}")
    return found


def test_every_row_of_the_table_is_read() -> None:
    lines = [line for line in TERMS.splitlines() if line.startswith("| ")]
    assert len(TABLE) == len(lines) - 1 > 80


def test_the_terms_are_in_order_and_each_is_there_once() -> None:
    terms = [term.en for term in TABLE]
    assert terms == sorted(set(terms), key=str.casefold)


@pytest.mark.parametrize("term", TABLE, ids=lambda term: term.en)
def test_the_lessons_use_the_term_in_every_language(term: Term) -> None:
    assert term.en.lower() in ENGLISH
    for language, words in (("ko", term.ko), ("zh", term.zh)):
        text = "\n".join(TRANSLATED[language].values())
        assert [word for word in words if word not in text] == []


def test_no_translation_uses_a_word_to_avoid() -> None:
    texts = {**TRANSLATED["ko"], **TRANSLATED["zh"], **MESSAGES}
    found = {
        f"{word}, not {', '.join(term.ko + term.zh)}": places
        for term in TABLE
        for word in term.avoided
        if (places := _found(word, term.ko + term.zh, texts))
    }
    assert found == {}


def test_a_word_to_avoid_is_found_and_a_right_one_around_it_is_not() -> None:
    texts = {"a": "복사본 하나\n사본 둘", "b": "all-reduce（全归约）"}
    assert _found("사본", ["복사본", "拷贝"], texts) == ["a:2"]
    assert _found("全归约", ["all-reduce", "（全归约）"], texts) == []


def _first_form(text: str | Iterable[str] | None) -> str:
    return text if isinstance(text, str) else next(iter(text or ()))


def _says(english: str, message: str) -> bool:
    """Whether the message has the term as a word, and not within code or the name of a value."""
    return bool(re.search(rf"(?<![\w.{{%(]){re.escape(english)}(e?s)?(?![\w}})(.=])", message, re.IGNORECASE))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_interface_calls_a_concept_what_the_lessons_call_it(language: str) -> None:
    with (ROOT / "app" / "locales" / language / "LC_MESSAGES" / "messages.po").open("rb") as file:
        messages = [(_first_form(message.id), _first_form(message.string)) for message in read_po(file) if message.id]
    found, checked = {}, set()
    for term in TABLE:
        for english, translated in messages:
            if term.en not in ELSEWHERE and _says(term.en, english):
                checked.add(term.en)
                if not any(word.strip("（）") in translated for word in getattr(term, language)):
                    found[english] = f"{term.en}: {translated}"
    assert found == {}
    assert len(checked) > 20


def test_a_term_in_a_message_is_found_but_not_within_code() -> None:
    assert _says("epoch", "Epoch {epoch}")
    assert _says("data set", "No data sets yet.")
    assert not _says("metric", "{metric} of keras.metrics, metric=1, metric(…)")
