"""Parses training metrics in printed lines, such as ``Epoch 3, Loss: 0.28, Accuracy: 89.4``. Pure.

A number counts as a metric if it has a name, ``loss: 0.3`` or ``loss = 0.3``; common names of metrics need no sign,
``loss 0.3``. Times do not count: those of simulated devices mean nothing. Neither does a value that is part of
something longer, such as a version, a range, a fraction or a comparison, nor a name that a line repeats with another
value. A line with several numbers in a row, as in a table or a list of losses, has no metrics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LINE = 400
"""Characters; a longer line has no metrics."""

_MOST_VALUES = 12
_LARGEST_STEP = 10**12
_KERAS_ITSELF = ("━", "==", "/step", "/epoch", "\b")
"""Keras's progress bar, whose numbers ``fit`` has already reported."""
_LEFT_OUT = re.compile(
    r"\x1b\[[0-9;]{0,20}m"  # colors
    r"|^[IWEF][0-9]{4} [0-9:.]{8,20} +[0-9]{1,10} [\w./-]{1,60}:[0-9]{1,6}\] "  # the prefix that absl adds to a line
    r"|^\[?(?:[0-9]{4}-[0-9]{2}-[0-9]{2}[T ])?[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?Z?\]?[\s:-]{1,3}"
)
_TENSOR = re.compile(r"tf\.Tensor\(([^,()]+), shape=\(\), dtype=\w+\)")
_ASIDE = re.compile(r"\([^()]*\)")
_NUMBER = (
    r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])(?:\.[0-9]*)?"
    r"|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|inf)"
)
_COUNT = re.compile(
    r"\b(?:(epoch)|(?:global[_ ])?(?:step|iteration|iter)|(batch)|steps [0-9]+ ?(?:to|-)(?= ?[0-9]))"
    r"[ :=#\[]*([0-9][0-9,]*)(?![0-9,]*[.]?[0-9])(?: ?(?:/|of) ?([0-9]+))?\]?(?![\w%])",
    re.IGNORECASE,
)
"""An epoch, batch or step, and the total."""
_TITLE = re.compile(r"\W*(?:\w+ )?epoch\b", re.IGNORECASE)
"""The start of a line that only announces an epoch."""
_NOT_METRICS = (
    r"times?|took|eta|elapsed|duration|speed|throughput|seconds?|secs?|s|ms|min|minutes|hours|h|steps|epochs|batches"
    r"|iterations|calls|updates|examples|samples|images|tokens|bytes|[kmg]ib|size|seed|shape|rank|port|workers?"
    r"|replicas?|devices|id|pid"
)
_NO_METRIC = re.compile(_NOT_METRICS)
_ROW = re.compile(
    rf"(?<![\w.:/]){_NUMBER}(?!\.?[\w:/%]| ?/)(?:"
    rf" -?{_NUMBER}(?!\.?[\w:/]| ?(?:{_NOT_METRICS})\b)| ?[,;|] ?-?{_NUMBER}(?!\.?[\w:/]| ?[^\W\d]))",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"(?<![\w/])((?:[^\W\d][\w/]* ){0,3}[^\W\d][\w/]*)[ '\"`]*([:=]?)[:= ]*"
    rf"(?<![\w.])([+-]?{_NUMBER})(?=\.?(?:$|[ ,;|)\]}}%'\"`(±]))(?![.%]? ?(?:/|→|->|<|>|(?:to|vs|of)\b))",
    re.IGNORECASE,
)
_KNOWN = re.compile(r"loss|acc|accuracy|mae|mse|rmse|auc|precision|recall|f1|perplexity|error|cost|reward|lr", re.ASCII)
_NEEDS_A_SIGN = {"error", "cost"}
"""Ambiguous names: ``error: 0.1`` is a metric, ``error 404`` is not."""
_LINK = re.compile(r"at|after|for|over|of|in|is|was|the|end|and|finished|to|epoch|step|batch|iteration")
_COUNTED = re.compile(r" (?:steps?|epochs?|batch(?:es)?|iterations?|updates?)\b", re.IGNORECASE)
"""What follows a number that says when, not how much: ``loss after 2 steps 0.5``."""


@dataclass(frozen=True, slots=True)
class ParsedMetrics:
    """The metrics of one line. ``epoch`` and ``step`` as it counts them; ``steps`` is how many an epoch has."""

    values: dict[str, float]
    epoch: int | None = None
    step: int | None = None
    steps: int | None = None


def parse_metrics(line: str) -> ParsedMetrics | None:
    """Parse one line, without its line ending; None if it has no metrics."""
    if not 4 < len(line) <= MAX_LINE or any(sign in line for sign in _KERAS_ITSELF):
        return None
    plain = " ".join(_ASIDE.sub("", _TENSOR.sub(r"\1", _LEFT_OUT.sub("", line))).split())
    if _ROW.search(plain):
        return None
    epochs, batches, steps = set[int](), dict[int, int | None](), dict[int, int | None]()
    for is_epoch, is_batch, number, of in _COUNT.findall(plain):
        count, total = min(int(number.replace(",", "")), _LARGEST_STEP), int(of[:12]) if of else None
        if is_epoch:
            epochs.add(count)
        else:
            (batches if is_batch else steps).setdefault(count, total)
    counts = steps or batches
    if len(epochs) > 1 or len(counts) > 1:
        return None
    rest = _COUNT.sub("", plain)
    values = _values(rest, counted=bool(epochs or counts))
    if not values and not (epochs and _TITLE.match(plain) and not re.search("[0-9]", rest)):
        return None
    step, total = next(iter(counts.items()), (None, None))
    return ParsedMetrics(values, next(iter(epochs), None), step, total)


def _values(text: str, *, counted: bool) -> dict[str, float]:
    """The metrics by name. If the line names no epoch or step, only common names of metrics count."""
    found: dict[str, float] = {}
    twice = set()
    for match in _VALUE.finditer(text):
        title, sign, number = match.groups()
        words = title.lower().split()
        named = bool(sign) or words[-1] == "is"
        if not named and _LINK.fullmatch(words[-1]) and _COUNTED.match(text, match.end()):
            continue
        while words and _LINK.fullmatch(words[-1]):
            words.pop()
        while words and _LINK.fullmatch(words[0]):
            del words[0]
        known = [word for word in words if _is_known(word)]
        if not words or any(map(_NO_METRIC.fullmatch, re.split("[ _/]", " ".join(words)))):
            continue
        if not named and (len(known) != 1 or known[0] != words[-1] or known[0] in _NEEDS_A_SIGN):
            continue
        name, value = "_".join(words), float(number.replace(",", ""))
        if name in found and found[name] != value:
            twice.add(name)
        elif (counted or known) and len(found) < _MOST_VALUES:
            found[name] = value
    return {name: value for name, value in found.items() if name not in twice}


def _is_known(name: str) -> bool:
    return any(_KNOWN.fullmatch(word) for word in re.split("[_/]", name))
