"""What the directive ``{sequence}`` draws: messages between participants, in order, as SVG in the colors of the page.

::

    Browser | Web application | Database
    Browser -> Web application: POST /runs
    Web application -> Database: store the run
    Web application: find the cell

The first line names the participants. Each further line is a message from one to another, or a step of one alone.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_LANE_PX = 176
_BOX_PX = _LANE_PX - 12
_ROW_PX = 20
_LINE_PX = 15
_HEAD_PX = 34
_CHARACTER_PX = 6.7
_STEP = re.compile(r"(?P<sender>[^:>]+?)\s*(?:->\s*(?P<receiver>[^:]+?)\s*)?:\s*(?P<words>.+)")


@dataclass(frozen=True, slots=True)
class Step:
    """A message, or a step of one participant alone if ``sender`` and ``receiver`` are the same. Lanes count from 0."""

    sender: int
    receiver: int
    words: str


def parse(lines: Sequence[str]) -> tuple[list[str], list[Step]]:
    """The participants and the steps.

    Raises:
        ValueError: a line is not a step, or names somebody who does not take part.
    """
    names = [name.strip() for name in lines[0].split("|")]
    steps = []
    for line in lines[1:]:
        found = _STEP.fullmatch(line.strip())
        if found is None:
            raise ValueError(f"{line!r} is not a step; write 'A -> B: words' or 'A: words'")
        for name in (found["sender"], found["receiver"]):
            if name and name not in names:
                raise ValueError(f"{name!r} in {line!r} is not one of {', '.join(names)}")
        sender = names.index(found["sender"])
        steps.append(Step(sender, names.index(found["receiver"]) if found["receiver"] else sender, found["words"]))
    return names, steps


def drawing(lines: Sequence[str], title: str) -> str:
    """The SVG. Raises ValueError as ``parse`` does."""
    names, steps = parse(lines)
    shapes, y = [], _HEAD_PX + 12.0
    for number, step in enumerate(steps, 1):
        words = textwrap.wrap(f"{number}. {step.words}", _room(step))
        y += _LINE_PX * len(words)
        shapes += list(_arrow(step, words, y) if step.sender != step.receiver else _note(step, words, y))
        y += _ROW_PX
    width = _LANE_PX * len(names)
    heads = "".join(_head(lane, name, y) for lane, name in enumerate(names))
    return (
        f'<div class="sequence" tabindex="0" role="region" aria-label="{escape(title)}">'
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {width} {y:g}" width="{width}" height="{y:g}">'
        f"{heads}{''.join(shapes)}</svg></div>"
    )


def _x(lane: float) -> float:
    return _LANE_PX * (lane + 0.5)


def _room(step: Step) -> int:
    """How many characters fit on a line of a step's words."""
    return int(_LANE_PX * max(1, abs(step.receiver - step.sender)) / _CHARACTER_PX) - 2


def _head(lane: int, name: str, bottom: float) -> str:
    x = _x(lane)
    return (
        f'<line class="life" x1="{x:g}" y1="{_HEAD_PX}" x2="{x:g}" y2="{bottom:g}"/>'
        f'<rect class="head" x="{x - _BOX_PX / 2:g}" y="2" width="{_BOX_PX}" height="{_HEAD_PX - 4}" rx="6"/>'
        f'<text class="name" x="{x:g}" y="22" text-anchor="middle">{escape(name)}</text>'
    )


def _arrow(step: Step, words: Sequence[str], y: float) -> Iterator[str]:
    start, end = _x(step.sender), _x(step.receiver)
    back = -1 if end > start else 1
    yield from _text(words, (start + end) / 2, y)
    yield f'<line class="arrow" x1="{start:g}" y1="{y + 5:g}" x2="{end:g}" y2="{y + 5:g}"/>'
    yield f'<path class="tip" d="M {end:g} {y + 5:g} l {7 * back} -4 v 8 z"/>'


def _note(step: Step, words: Sequence[str], y: float) -> Iterator[str]:
    x, height = _x(step.sender), _LINE_PX * len(words) + 8
    top = y - height + 9
    yield f'<rect class="note" x="{x - _BOX_PX / 2:g}" y="{top:g}" width="{_BOX_PX}" height="{height}" rx="4"/>'
    yield from _text(words, x, y)


def _text(words: Sequence[str], x: float, y: float) -> Iterator[str]:
    for i, line in enumerate(words):
        height = y - _LINE_PX * (len(words) - 1 - i)
        yield f'<text class="words" x="{x:g}" y="{height:g}" text-anchor="middle">{escape(line)}</text>'
