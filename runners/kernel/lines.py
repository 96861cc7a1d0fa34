"""Numbers of a training in lines that a program prints: ``Epoch 3, Loss: 0.28, Accuracy: 89.4``. Pure.

A line is read once, from left to right, and only its beginning: whatever a program prints, reading it costs a few
microseconds. A number counts as a metric if it has a name, ``loss: 0.3`` or ``loss = 0.3``, and the line says an epoch
or a step; without one, only names that everybody gives to metrics count. Times do not: those of simulated devices say
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

LONGEST_LINE = 400
"""Characters; a longer line is no line of metrics."""

_MOST_WORDS = 4
_MOST_VALUES = 12
_LARGEST_STEP = 10**12
_TOKEN = re.compile(r"[A-Za-z_][\w/]*|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\s+|.", re.ASCII)
_DIGITS = frozenset("0123456789")
_ANSI = re.compile(r"\x1b\[[0-9;]{0,20}m")
_KERAS_ITSELF = ("━", "==", "/step", "/epoch", "\b")
"""Its progress bar says what ``fit`` has reported already."""
_STEP_WORDS = frozenset({"step", "iteration", "iter", "batch", "global_step"})
_EPOCH_WORDS = frozenset({"epoch"})
_KNOWN = re.compile(r"loss|acc|accuracy|mae|mse|rmse|auc|precision|recall|f1|perplexity|error|cost|reward|lr", re.ASCII)
_LINKS = frozenset({"at", "after", "for", "over", "of", "in", "is", "was", "the", "end", "and", "finished", "to"})
_NO_METRIC = frozenset(
    {"time", "times", "took", "eta", "elapsed", "duration", "seconds", "second", "sec", "ms", "s", "speed",
     "throughput", "size", "seed", "shape", "rank", "port", "worker", "workers", "replica", "replicas", "devices", "id",
     "pid"}
)  # fmt: skip
_TENSOR = frozenset({"tf", "Tensor", "float32", "array", "np", "float64"})

Kind = Literal["word", "number", "sign", "space"]


@dataclass(frozen=True, slots=True)
class Found:
    """What one line says. ``epoch`` and ``step`` as it counts them; ``steps`` is how many steps an epoch has."""

    values: dict[str, float]
    epoch: int | None = None
    step: int | None = None
    steps: int | None = None


@dataclass(slots=True)
class _Reading:
    """A line being read; ``words`` are those since the last number, comma or bar."""

    words: list[str] = field(default_factory=list)
    named: bool = False
    """A colon or an equals sign came after the words."""
    values: dict[str, float] = field(default_factory=dict)
    epoch: int | None = None
    step: int | None = None
    steps: int | None = None

    def forget(self) -> None:
        self.words, self.named = [], False


def metrics_in(line: str) -> Found | None:
    """Read one line, without its end; None if it says nothing of a training."""
    if not 4 < len(line) <= LONGEST_LINE or any(sign in line for sign in _KERAS_ITSELF):
        return None
    tokens = list(_tokens(_ANSI.sub("", line)))
    reading = _Reading()
    at = 0
    while at < len(tokens):
        at = _read(reading, tokens, at)
    anchored = reading.epoch is not None or reading.step is not None
    values = {name: value for name, value in reading.values.items() if anchored or _is_known(name)}
    if not values and reading.epoch is None:
        return None
    return Found(values, reading.epoch, reading.step, reading.steps)


def _read(reading: _Reading, tokens: list[tuple[Kind, str]], at: int) -> int:
    """Take the token ``at``; returns where to go on."""
    kind, text = tokens[at]
    if kind == "space":
        return at + 1
    if kind == "word":
        if (reading.named or _known_word(reading.words)) and text.lower() in ("nan", "inf"):
            _keep(reading, float(text))
        elif text == "is" and reading.words:
            reading.named = True
        elif text not in _TENSOR:
            reading.words = [*reading.words, text][-_MOST_WORDS:] if not reading.named else [text]
            reading.named = False
        return at + 1
    if kind == "number":
        return _number(reading, tokens, at)
    if text in ":=" and reading.words:
        reading.named = True
    elif text == "(" and not (at and tokens[at - 1][1] in _TENSOR):
        return _behind(tokens, at)
    elif text in ",;|)]" or (text in "-–—" and _is_space(tokens, at - 1) and _is_space(tokens, at + 1)):
        reading.forget()
    return at + 1


def _number(reading: _Reading, tokens: list[tuple[Kind, str]], at: int) -> int:
    """A number: the count of an epoch or a step, a metric's value, or neither."""
    text = tokens[at][1]
    unit = tokens[at + 1][1] if at + 1 < len(tokens) else ""
    counted = reading.words[-1].lower() if reading.words else ""
    if text.isdigit() and counted in _STEP_WORDS | _EPOCH_WORDS and not _is_word(unit):
        count = min(int(text), _LARGEST_STEP)
        at, total = _total(tokens, at + 1)
        if counted in _EPOCH_WORDS:
            reading.epoch = count
        elif counted != "batch" or reading.step is None:
            reading.step, reading.steps = count, total
        reading.words = _without_links(reading.words[:-1])
        reading.named = False
        return at
    if _is_word(unit) or (at and tokens[at - 1][1] == "/"):  # 3.2s, 24ms
        reading.forget()
    elif reading.named or _known_word(reading.words):
        minus = at > 0 and tokens[at - 1][1] == "-"
        _keep(reading, -float(text) if minus else float(text))
    else:
        reading.forget()
    return at + 1


def _keep(reading: _Reading, value: float) -> None:
    words = [word.lower() for word in _without_links(reading.words)]
    while words and words[-1] in _EPOCH_WORDS | _STEP_WORDS | _LINKS:
        words.pop()
    if words and not _NO_METRIC.intersection(words) and len(reading.values) < _MOST_VALUES:
        reading.values["_".join(words)] = value
    reading.forget()


def _without_links(words: list[str]) -> list[str]:
    start, end = 0, len(words)
    while start < end and words[start].lower() in _LINKS:
        start += 1
    while end > start and words[end - 1].lower() in _LINKS:
        end -= 1
    return words[start:end]


def _total(tokens: list[tuple[Kind, str]], at: int) -> tuple[int, int | None]:
    """The number behind ``3/`` or ``3 of``, and where to go on."""
    ahead = [(i, text) for i, (kind, text) in enumerate(tokens[at : at + 4], at) if kind != "space"]
    if len(ahead) > 1 and ahead[0][1] in ("/", "of") and ahead[1][1].isdigit():
        return ahead[1][0] + 1, min(int(ahead[1][1]), _LARGEST_STEP)
    return at, None


def _behind(tokens: list[tuple[Kind, str]], at: int) -> int:
    """Where to go on behind the parenthesis that opens ``at``."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i][1], 0)
        if depth == 0:
            return i + 1
    return len(tokens)


def _tokens(line: str) -> Iterator[tuple[Kind, str]]:
    for match in _TOKEN.finditer(line):
        text = match[0]
        if text[0] in _DIGITS or (text[0] == "." and len(text) > 1):
            yield "number", text
        elif text.isspace():
            yield "space", text
        else:
            yield ("word" if text[0].isascii() and (text[0].isalpha() or text[0] == "_") else "sign"), text


def _is_space(tokens: list[tuple[Kind, str]], at: int) -> bool:
    return not 0 <= at < len(tokens) or tokens[at][0] == "space"


def _is_word(text: str) -> bool:
    return bool(text) and text[0].isalpha()


def _is_known(name: str) -> bool:
    return any(_KNOWN.fullmatch(word) for word in re.split("[_/]", name))


def _known_word(words: list[str]) -> bool:
    return bool(words) and _is_known(words[-1].lower())


@dataclass(frozen=True, slots=True)
class Point:
    """Numbers and where they belong: after which step, or which epoch."""

    step: int
    per: Literal["step", "epoch"]
    values: dict[str, float]


class Printed:
    """The points that a program's lines make, one line after the other."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._at = (0, 0)
        """The epoch and the step that a line said last."""
        self._before = 0
        """Steps of the epochs before."""
        self._counted: dict[tuple[str, ...], int] = {}
        self._first: dict[tuple[str, ...], Point] = {}

    def take(self, line: str) -> list[Point]:
        """Read one line. What has no count of its own is counted here; one alone is no course and waits."""
        found = metrics_in(line)
        if found is None:
            return []
        if not found.values:
            self._epoch = found.epoch
            return []
        if found.step is not None:
            return [Point(self._step(found.step, found.steps, found.epoch), "step", found.values)]
        if found.epoch is not None:
            self._epoch = None
            return [Point(found.epoch, "epoch", found.values)]
        if self._epoch is not None:
            epoch, self._epoch = self._epoch, None
            return [Point(epoch, "epoch", found.values)]
        return self._uncounted(found.values)

    def _step(self, step: int, steps: int | None, epoch: int | None) -> int:
        """Steps that begin anew with each epoch go on from the epoch before."""
        last_epoch, last_step = self._at
        epoch = last_epoch if epoch is None else epoch
        if epoch > last_epoch and step <= last_step:
            self._before += steps or last_step + 1
        elif step < last_step:
            self._before = 0
        self._at = (epoch, step)
        return self._before + step

    def _uncounted(self, values: dict[str, float]) -> list[Point]:
        key = tuple(values)
        if len(self._counted) > _MOST_VALUES and key not in self._counted:
            return []
        count = self._counted[key] = self._counted.get(key, 0) + 1
        point = Point(count, "step", values)
        if count == 1:
            self._first[key] = point
            return []
        first = self._first.pop(key, None)
        return [first, point] if first else [point]
