"""Every string of the TypeScript that a reader can see goes through ``say()``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from pygments.lexers.javascript import TypeScriptLexer
from pygments.token import Comment, String, Whitespace, is_token_subtype

from app import i18n

APP = Path(i18n.__file__).parent
SCRIPTS = sorted(path for path in (*APP.glob("*.ts"), *APP.glob("*/frontend/*.ts")) if ".d." not in path.name)
SPOKEN = {"textContent", "innerText", "innerHTML", "title", "ariaLabel", "alt", "placeholder"}
"""Properties whose text a person reads or hears; as attributes too, and all whose name begins as below."""
SPEAKERS = {"announce": 0, "append": 0, "prepend": 0, "replaceChildren": 0, "createTextNode": 0, "make": 2}
"""Functions that show their arguments, from which one on."""
UNHEARD = re.compile(r"Error|querySelector(All)?|matches|closest|need|warn|error|debug")
"""What gets strings that are for programs and programmers."""
NAMES = re.compile(r"Lockstep|TensorFlow|Python|Keras")

_WORD = re.compile(r"[^\W\d_]{2,}")
_SENTENCE = re.compile(r"(?:^|\s)[A-Z][a-z]+ [a-z]{2,}(?: [a-z]+|[.,!?:…])|(?:[a-z]{2,} ){3,}[a-z]{2,}")
_OPEN, _CLOSED = "([{", ")]}"


@dataclass
class _Bracket:
    """An open bracket: the text before it, and the number of commas since."""

    kind: str
    before: str
    commas: int = 0


def _tokens(source: str) -> Iterator[tuple[bool, str]]:
    """Whether it is a string, and its text: a string is one token, with a 0 for what a template puts in."""
    text, depth = "", 0
    for kind, value in TypeScriptLexer().get_tokens(source):
        if is_token_subtype(kind, String.Interpol):
            depth += value.count("${") - value.count("}")
            text += "0" if value == "${" else ""
        elif is_token_subtype(kind, String.Backtick):
            if value == "`" and text and not depth:
                yield True, text[1:]
                text = ""
            else:
                text += value
        elif text:
            continue
        elif is_token_subtype(kind, String) and not is_token_subtype(kind, String.Regex):
            yield True, value[1:-1]
        elif not any(is_token_subtype(kind, silent) for silent in (Comment, Whitespace)) and value.strip():
            yield False, value.strip()


def _spoken_without_say(source: str) -> list[str]:
    """The strings that a reader would see untranslated."""
    found: list[str] = []
    brackets: list[_Bracket] = [_Bracket("", "")]
    statement: list[str] = []
    tokens = [*_tokens(source), (False, "")]
    for (is_string, value), (_, following) in pairwise(tokens):
        is_key = following == ":" and (not statement or statement[-1] == ",")
        if is_string and not is_key:
            told = _is_told(statement, brackets)
            unheard = any(UNHEARD.fullmatch(one.before) for one in brackets)
            pattern = _WORD if told else _SENTENCE
            if pattern.search(NAMES.sub("", value)) and not unheard:
                found.append(value)
        elif value in _OPEN and not is_string:
            brackets.append(_Bracket(value, statement[-1] if statement else ""))
        elif value in _CLOSED and not is_string and len(brackets) > 1:
            brackets.pop()
        elif value == "," and not is_string:
            brackets[-1].commas += 1
        statement = [] if value in (";", "{", "}") and not is_string else [*statement, "" if is_string else value]
    return found


def _is_told(statement: list[str], brackets: list[_Bracket]) -> bool:
    here = brackets[-1]
    if here.kind == "(":
        if here.before == "setAttribute":
            return False  # the name of the attribute says it: _SET
        return here.before in SPEAKERS and here.commas >= SPEAKERS[here.before]
    if here.kind == "{" and len(brackets) > 1 and brackets[-2].before == "make":
        return statement[-1:] == [":"] and statement[-2:-1] != [] and statement[-2] in SPOKEN
    for at, token in enumerate(statement):
        if token in ("=", "+=") and at >= 2 and statement[at - 2] == "." and statement[at - 1] in SPOKEN:
            return not any(later in ("===", "!==", "==") for later in statement[-1:])
    return False


_ALOUD = r"""["'](?:aria-(?:label|description|valuetext|roledescription)|title|alt|placeholder)["']\s*"""
_WORDS = r"""\s*(?:"[^"]*[^\W\d_]{2,}[^"]*"|'[^']*[^\W\d_]{2,}[^']*'|`[^`$]*[^\W\d_]{2,})"""
_SET = re.compile(rf"setAttribute\(\s*{_ALOUD},{_WORDS}")
_ATTRIBUTE = re.compile(rf"{_ALOUD}:{_WORDS}")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_script_speaks_past_say(script: Path) -> None:
    source = script.read_text(encoding="utf-8")
    assert _spoken_without_say(source) == []
    assert _SET.findall(source) == []
    assert _ATTRIBUTE.findall(source) == []


def test_all_scripts_are_looked_at() -> None:
    assert len(SCRIPTS) > 40


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('label.textContent = "Save";', ["Save"]),
        ('label.textContent = done ? "Saved" : say("save");', ["Saved"]),
        ("announce(`Saved ${count} times`);", ["Saved 0 times"]),
        ('make("p.note", { title: "Saved" }, say("done"));', ["Saved"]),
        ('make("p.note", {}, "Saved");', ["Saved"]),
        ('place.append(make("b"), "Saved");', ["Saved"]),
        ('const WORDS = "This was saved.";', ["This was saved."]),
        ('const words = { "This was saved": say("saved"), other: "This was lost." };', ["This was lost."]),
        ('throw new Error("This page has no such thing.");', []),
        ('label.textContent = say("saved");', []),
        ('label.textContent = "·";', []),
        ('// label.textContent = "Save";', []),
        ('button.className = "save it";', []),
        ('document.querySelector("main article p");', []),
        ('make("p.note", { class: "quiet" }, say("done"));', []),
    ],
)
def test_the_search_for_such_strings_finds_them(source: str, found: list[str]) -> None:
    assert _spoken_without_say(source) == found


def test_attributes_that_are_read_aloud_are_looked_at() -> None:
    assert _SET.search('button.setAttribute("aria-label", "Save");')
    assert not _SET.search('button.setAttribute("aria-label", say("save"));')
    assert _ATTRIBUTE.search('{ "aria-label": "Save" }')
    assert not _ATTRIBUTE.search('{ "aria-label": say("save") }')
