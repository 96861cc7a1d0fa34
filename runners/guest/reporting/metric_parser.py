"""Numbers of a training in lines that a program prints: ``Epoch 3, Loss: 0.28, Accuracy: 89.4``. Pure.

A line is read once, from left to right, and only its beginning: whatever a program prints, reading it costs a few
microseconds. A number counts as a metric if it has a name, ``loss: 0.3`` or ``loss = 0.3``, and the line says an epoch
or a step; without one, only names that everybody gives to metrics count. Times do not: those of simulated devices say
nothing.

Only what is certain counts. A line whose counts or values stand in a row, as in the head of a table (``loss after
epoch  1  2``) or a list of losses, says nothing; neither does a value that is part of something longer, such as a
version, a range, a fraction or a comparison, nor a name that a line says twice with two values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

MAX_LINE = 400
"""Characters; a longer line is no line of metrics."""

_MOST_WORDS = 4
_MOST_VALUES = 12
_LARGEST_STEP = 10**12
_TOKEN = re.compile(
    r"[^\W\d][\w/]*"
    r"|[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])(?:\.[0-9]*)?"
    r"|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?"
    r"|\s+|."
)
_DIGITS = frozenset("0123456789")
_ANSI = re.compile(r"\x1b\[[0-9;]{0,20}m")
_LOG_PREFIX = re.compile(
    r"[IWEF][0-9]{4} [0-9:.]{8,20} +[0-9]{1,10} [\w./-]{1,60}:[0-9]{1,6}\] "  # of absl
    r"|\[?(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ])?[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?Z?\]?[\s:-]{1,3}"
)
_KERAS_ITSELF = ("━", "==", "/step", "/epoch", "\b")
"""Its progress bar says what ``fit`` has reported already."""
_STEP_WORDS = frozenset({"step", "iteration", "iter", "batch", "global_step"})
_EPOCH_WORDS = frozenset({"epoch"})
_COUNT_WORDS = _STEP_WORDS | _EPOCH_WORDS
_KNOWN = re.compile(r"loss|acc|accuracy|mae|mse|rmse|auc|precision|recall|f1|perplexity|error|cost|reward|lr", re.ASCII)
_NEEDS_A_SIGN = frozenset({"error", "cost"})
"""These name other things too: ``error 404`` is no metric, ``error: 0.1`` is."""
_LINKS = frozenset({"at", "after", "for", "over", "of", "in", "is", "was", "the", "end", "and", "finished", "to"})
_BEGINNINGS = _LINKS | {"start", "starting", "begin", "beginning", "training", "train", "running"}
"""What may stand before an epoch that is the title of what comes next; ``the best epoch: 3`` is none."""
_TIMES = frozenset(
    {"time", "times", "took", "eta", "elapsed", "duration", "speed", "throughput", "seconds", "second", "secs", "sec",
     "s", "ms", "min", "minutes", "hours", "h"}
)  # fmt: skip
_AMOUNTS = frozenset(
    {"steps", "epochs", "batches", "iterations", "calls", "updates", "examples", "samples", "images", "tokens",
     "bytes", "kib", "mib", "gib"}
)  # fmt: skip
_NO_METRIC = _TIMES | _AMOUNTS | {
    "size", "seed", "shape", "rank", "port", "worker", "workers", "replica", "replicas", "devices", "id", "pid"
}  # fmt: skip
_TENSOR = frozenset({"tf", "Tensor", "float32", "array", "np", "float64"})
_NEUTRAL = frozenset("#-{}'\"`/%")
"""Signs that may stand between a name and its number, or around them."""
_ENDS = frozenset(",;|)]}%.'\"`(±")
"""What may follow a value without a space."""
_COMPARED = frozenset({"to", "vs", "of", "/", "→", "<", ">", "->"})
"""What makes two numbers of a value: ``loss 0.9 to 0.5``."""

Kind = Literal["word", "number", "sign", "space"]


@dataclass(frozen=True, slots=True)
class ParsedMetrics:
    """What one line says. ``epoch`` and ``step`` as it counts them; ``steps`` is how many steps an epoch has."""

    values: dict[str, float]
    epoch: int | None = None
    step: int | None = None
    steps: int | None = None
    label: str = field(default="", compare=False)
    """The words before the first value, and the numbers that count nothing: which of several things is meant."""


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
    counts: dict[str, int] = field(default_factory=dict)
    """By the word before each."""
    label: list[str] = field(default_factory=list)
    twice: set[str] = field(default_factory=set)
    """Names with two values."""
    uncertain: bool = False
    """Numbers stand in a row, or a count is said twice: part of a table, as far as anybody can tell."""
    untitled: bool = False
    """Something on the line tells that its epoch is not the title of what comes next."""

    def forget(self) -> None:
        self.words, self.named = [], False


def parse_metrics(line: str) -> ParsedMetrics | None:
    """Read one line, without its end; None if it says nothing of a training."""
    if not 4 < len(line) <= MAX_LINE or any(sign in line for sign in _KERAS_ITSELF):
        return None
    plain = _ANSI.sub("", line)
    prefix = _LOG_PREFIX.match(plain)
    tokens = list(_tokens(plain[prefix.end() :] if prefix else plain))
    reading = _Reading()
    at = 0
    while at < len(tokens) and not reading.uncertain:
        at = _read(reading, tokens, at)
    if reading.uncertain:
        return None
    anchored = reading.epoch is not None or reading.step is not None
    values = {
        name: value
        for name, value in reading.values.items()
        if name not in reading.twice and (anchored or _is_known(name))
    }
    if not values and (reading.epoch is None or reading.untitled):
        return None
    return ParsedMetrics(values, reading.epoch, reading.step, reading.steps, " ".join(reading.label))


def _read(reading: _Reading, tokens: list[tuple[Kind, str]], at: int) -> int:
    """Take the token ``at``; returns where to go on."""
    kind, text = tokens[at]
    if kind == "space":
        return at + 1
    if kind == "word":
        return _word(reading, tokens, at)
    if kind == "number":
        return _number(reading, tokens, at)
    if text in ":=":
        reading.named = bool(reading.words)
    elif text == "(" and not (at and tokens[at - 1][1] in _TENSOR):
        return _behind(tokens, at)
    elif text == "[" and reading.words and not _is_count(reading.words[-1]) and not _is_count(_text(tokens, at + 1)):
        reading.forget()  # a list of values, or one of several
        return _behind(tokens, at)
    elif text in "-–—." and _is_space(tokens, at + 1):
        if text == "." or _is_space(tokens, at - 1):
            reading.forget()
    elif text not in _NEUTRAL and text not in "[(.–—":
        reading.forget()
    return at + 1


def _word(reading: _Reading, tokens: list[tuple[Kind, str]], at: int) -> int:
    text = tokens[at][1]
    if (reading.named or _known_word(reading)) and _is_not_finite(text):
        _value(reading, tokens, at, float(text))
    elif text == "is" and reading.words:
        reading.named = True
    elif text not in _TENSOR:
        reading.words = [*reading.words, text][-_MOST_WORDS:] if not reading.named else [text]
        reading.named = False
        if not reading.values:
            reading.label.append(text.lower())
    return at + 1


def _number(reading: _Reading, tokens: list[tuple[Kind, str]], at: int) -> int:
    """A number: the count of an epoch or a step, a metric's value, or neither."""
    text = tokens[at][1].replace(",", "")
    unit = _text(tokens, at + 1)
    counted = reading.words[-1].lower() if reading.words else ""
    if counted in _AMOUNTS and (last := _end_of_range(tokens, at)):
        counted, at, text = "step", last, tokens[last][1]
    if text.rstrip(".").isdigit() and counted in _COUNT_WORDS and not _is_word(unit):
        return _count(reading, tokens, at, counted, min(int(text.rstrip(".")), _LARGEST_STEP))
    if _is_word(unit):  # 3.2s, 24ms
        reading.forget()
        return at + 2
    if at and tokens[at - 1][1] == "/":
        reading.forget()
    elif reading.named or _known_word(reading):
        minus = at > 0 and tokens[at - 1][1] == "-"
        _value(reading, tokens, at, -float(text) if minus else float(text))
    else:
        if not _AMOUNTS.union(_TIMES).intersection((counted, _next_word(tokens, at + 1))):
            reading.untitled = True
            if not reading.values:
                reading.label.append(text)
        reading.forget()
    return at + 1


def _count(reading: _Reading, tokens: list[tuple[Kind, str]], at: int, word: str, count: int) -> int:
    """Note the count of an epoch or a step, which ends ``at``."""
    at, total = _total(tokens, at + 1)
    if reading.counts.setdefault(word, count) != count or _goes_on(tokens, at):
        reading.uncertain = True
    if word in _EPOCH_WORDS:
        reading.epoch = count
        reading.untitled |= not _BEGINNINGS.issuperset(before.lower() for before in reading.words[:-1])
    elif word != "batch" or reading.step is None:
        reading.step, reading.steps = count, total
    reading.words = _without_links(reading.words[:-1])
    reading.named = False
    return at


def _value(reading: _Reading, tokens: list[tuple[Kind, str]], at: int, value: float) -> None:
    """Keep the value that stands ``at``, if it stands alone."""
    if not _ends(tokens, at + 1):
        reading.untitled = True
    elif _goes_on(tokens, at + 1):
        reading.uncertain = True
    else:
        _keep(reading, value)
    reading.forget()


def _keep(reading: _Reading, value: float) -> None:
    words = [word.lower() for word in _without_links(reading.words)]
    while words and words[-1] in _COUNT_WORDS | _LINKS:
        words.pop()
    parts = {part for word in words for part in re.split("[_/]", word)}
    if not words or _NO_METRIC.intersection(words) or _TIMES.intersection(parts):
        return
    if not reading.named and sum(map(_is_known, words)) > 1:  # the titles of columns
        return
    name = "_".join(words)
    if name in reading.values and reading.values[name] != value:
        reading.twice.add(name)
    elif len(reading.values) < _MOST_VALUES:
        reading.values[name] = value


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


def _end_of_range(tokens: list[tuple[Kind, str]], at: int) -> int | None:
    """Where the last number of ``1 to 10`` or ``1-10`` stands, if that is what begins ``at``."""
    ahead = [(i, text) for i, (kind, text) in enumerate(tokens[at : at + 5], at) if kind != "space"]
    if len(ahead) > 2 and ahead[1][1] in ("to", "-", "–") and ahead[0][1].isdigit() and ahead[2][1].isdigit():
        return ahead[2][0]
    return None


def _ends(tokens: list[tuple[Kind, str]], at: int) -> bool:
    """Whether a value that ends before ``at`` is whole, and no part of a version, a time, a range or a comparison."""
    if not _is_space(tokens, at) and tokens[at][1] not in _ENDS:
        return False
    if _text(tokens, at) in (",", ".") and _is_number(tokens, at + 1):
        return False
    ahead = [text for kind, text in tokens[at : at + 3] if kind != "space"]
    return not ahead or not _COMPARED.intersection((ahead[0], "".join(ahead[:2])))


def _goes_on(tokens: list[tuple[Kind, str]], at: int) -> bool:
    """Whether a number that ends before ``at`` is followed by another, as in a row of a table or in a list."""
    apart = False
    while at < len(tokens) and (tokens[at][0] == "space" or tokens[at][1] in ",;|"):
        apart |= tokens[at][0] != "space"
        at += 1
    if _text(tokens, at) == "-":
        at += 1
    if not _is_number(tokens, at) or _is_word(_text(tokens, at + 1)):
        return False
    unit = _next_word(tokens, at + 1)
    return not unit if apart else unit not in _TIMES | _AMOUNTS


def _behind(tokens: list[tuple[Kind, str]], at: int) -> int:
    """Where to go on behind the parenthesis or bracket that opens ``at``."""
    opens, closes = tokens[at][1], {"(": ")", "[": "]"}[tokens[at][1]]
    depth = 0
    for i in range(at, len(tokens)):
        depth += {opens: 1, closes: -1}.get(tokens[i][1], 0)
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
            yield ("word" if text[0].isalpha() or text[0] == "_" else "sign"), text


def _text(tokens: list[tuple[Kind, str]], at: int) -> str:
    return tokens[at][1] if 0 <= at < len(tokens) else ""


def _next_word(tokens: list[tuple[Kind, str]], at: int) -> str:
    """The word that follows, in lower case; empty where something else does."""
    if at < len(tokens) and tokens[at][0] == "space":
        at += 1
    text = _text(tokens, at)
    return text.lower() if _is_word(text) else ""


def _is_space(tokens: list[tuple[Kind, str]], at: int) -> bool:
    return not 0 <= at < len(tokens) or tokens[at][0] == "space"


def _is_number(tokens: list[tuple[Kind, str]], at: int) -> bool:
    return at < len(tokens) and (tokens[at][0] == "number" or _is_not_finite(tokens[at][1]))


def _is_not_finite(text: str) -> bool:
    return text.lower() in ("nan", "inf")


def _is_count(text: str) -> bool:
    return text.lower() in _COUNT_WORDS


def _is_word(text: str) -> bool:
    return bool(text) and text[0].isalpha()


def _is_known(name: str) -> bool:
    return any(_KNOWN.fullmatch(word) for word in re.split("[_/]", name))


def _known_word(reading: _Reading) -> bool:
    word = reading.words[-1].lower() if reading.words else ""
    return word not in _NEEDS_A_SIGN and _is_known(word)
