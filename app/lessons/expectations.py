"""Expectations: texts that the output of a cell must contain, with numbers compared by value.

A lesson's prose makes claims about the output of its cells. An expectation states such a claim, and ``lockstep lesson
check`` compares it with the real output. Its text is literal, except for:

===============  ==========================================================================
``0.50``         a number that rounds to 0.50 at this precision; 0 is exactly 0
``<1e-6``        a smaller number; ``>0.1`` is a larger one
``0.4±0.1``      a number at most that far away
``...``          any text within the line, as short as possible
===============  ==========================================================================

A run of spaces counts as one space.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

_NUMBER = r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?"
_START = r"(?<![\w.])(?<!(?<!\w)-)"
"""A number cannot start within a word or another number, or after its own sign."""
_TOKEN = re.compile(
    rf"(?P<anything>\.\.\.)|(?P<space>\s+)"
    rf"|{_START}(?:(?P<below><)|(?P<above>>))?(?P<number>{_NUMBER})(?:±(?P<tolerance>{_NUMBER}))?"
    rf"|(?P<other>.)"
)
_MAX_LINES_COMPARED = 500
_MAX_LINE_LENGTH = 2000
"""Characters searched per line."""

NumberTest = Callable[[Decimal], bool]


class VacuousExpectation(ValueError):
    """Any output would contain the text."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A text to find in one line: its pattern, and a test for each number that the pattern captures."""

    text: str
    pattern: re.Pattern[str]
    tests: tuple[NumberTest, ...]

    @classmethod
    def parse(cls, text: str) -> Expectation:
        """Parse an expectation.

        Raises:
            VacuousExpectation: it consists only of spaces and ``...``.
        """
        if not text.replace("...", "").strip():
            raise VacuousExpectation(text)
        pattern, tests = "", []
        for token in _TOKEN.finditer(text.strip()):
            if token["anything"]:
                pattern += ".*?"
            elif token["space"]:
                pattern += r"\s+"
            elif token["number"]:
                pattern += rf"{_START}((?>{_NUMBER}))"
                tests.append(_number_test(token))
            else:
                pattern += re.escape(token["other"])
        return cls(text, re.compile(pattern), tuple(tests))

    def found_in(self, line: str) -> bool:
        """Whether the line contains the expected text."""
        return any(
            all(test(_parse_number(number)) for test, number in zip(self.tests, match.groups(), strict=True))
            for match in self._matches(line[:_MAX_LINE_LENGTH])
        )

    def _matches(self, line: str) -> Iterator[re.Match[str]]:
        """Yield all matches, including overlapping ones: the first may contain the wrong number."""
        at = 0
        while (match := self.pattern.search(line, at)) is not None:
            yield match
            at = match.start() + 1


def _number_test(token: re.Match[str]) -> NumberTest:
    wanted = _parse_number(token["number"])
    if token["below"]:
        return lambda number: number < wanted
    if token["above"]:
        return lambda number: number > wanted
    if token["tolerance"]:
        tolerance = _parse_number(token["tolerance"])
    else:
        last_digit = int(wanted.as_tuple().exponent)
        tolerance = Decimal(5).scaleb(last_digit - 1) if wanted else Decimal(0)
    return lambda number: abs(number - wanted) <= tolerance


def _parse_number(number: str) -> Decimal:
    return Decimal(number.replace(",", ""))


def meets_any(texts: Iterable[str], lines: Sequence[str]) -> bool:
    """Whether one of the lines contains one of the texts. It reads the last 500 lines."""
    return any(any(map(Expectation.parse(text).found_in, lines[-_MAX_LINES_COMPARED:])) for text in texts)


def unmet_expectations(texts: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return a sentence for each text that no line contains, with the closest line."""
    return [
        f"did not print {text!r}; {_closest_line(text, lines)}"
        for text in texts
        if not any(map(Expectation.parse(text).found_in, lines))
    ]


def _closest_line(text: str, lines: Sequence[str]) -> str:
    candidates = [line.strip()[:200] for line in lines[-_MAX_LINES_COMPARED:] if line.strip()]
    if not candidates:
        return "it printed nothing"
    return f"the closest line is {difflib.get_close_matches(text, candidates, n=1, cutoff=0.0)[0]!r}"
