"""Converts a run's events to the outputs of a notebook cell.

Displayed content is copied as data. The notebook is not signed, so Jupyter shows no HTML and runs no scripts until its
user trusts the notebook. A notebook has no lanes: each line of a worker or replica starts with its name.

The time per event does not depend on the number of earlier events: a program may update or clear thousands of displays.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from app.exports.metrics_table import metrics_table
from app.exports.terminal import render_terminal_text
from app.runs.display_text import PLOTS, display_text
from app.runs.line_prefixes import LaneLineBuffer, prefix_lines
from app.runs.status_labels import notice_text, outcome_label
from runners.wire.protocol import (
    ClearEvent,
    DisplayEvent,
    ErrorEvent,
    Event,
    FinishedEvent,
    MetricEvent,
    NoticeEvent,
    Outcome,
    TextEvent,
)

_JSON_MEDIA_TYPE = re.compile(r"application/([a-zA-Z0-9.-]+\+)?json")
_OUTCOMES_ALREADY_SHOWN = (Outcome.ok, Outcome.error)
_BYTES_PER_LINE = 32
"""Overhead per line: a notebook stores each line as a separate string."""


def outputs_size(outputs: Iterable[NotebookNode]) -> int:
    """The approximate size of outputs in a notebook, in bytes. Content that outputs share counts for each of them."""
    return sum(map(_output_size, outputs))


def _output_size(output: NotebookNode) -> int:
    texts = [output.get("text", ""), output.get("evalue", ""), *output.get("traceback", ())]
    for content in output.get("data", {}).values():
        texts.append(content if isinstance(content, str) else json.dumps(content))
    return sum(len(text) + text.count("\n") * _BYTES_PER_LINE for text in texts)


def notebook_outputs(events: Iterable[Event], execution_count: int | None) -> list[NotebookNode]:
    """The outputs in order: streams are merged and processed like a terminal, updates replace their displays.

    Metrics come last, as a table; progress events are left out.
    """
    board = _OutputBuilder(execution_count)
    metrics: list[MetricEvent] = []
    for event in events:
        if isinstance(event, MetricEvent):
            metrics.append(event)
        else:
            board.take(event)
    board.end_lines(None)
    outputs = [_finish_stream(output) for output in board.outputs()]
    if table := metrics_table(metrics):
        outputs.append(new_output("display_data", data={"text/plain": _replace_surrogates(table)}))
    return outputs


@dataclass(eq=False)
class _UpdatedContent:
    """The content that an update gave to earlier displays with its ID."""

    data: NotebookNode = field(default_factory=NotebookNode)
    metadata: NotebookNode = field(default_factory=NotebookNode)


@dataclass(eq=False)
class _DisplayGroup:
    """The displays with an ID. Those that an update has reached share its content."""

    updated: _UpdatedContent = field(default_factory=_UpdatedContent)
    fresh: list[_Output] = field(default_factory=list)
    """Displays since the last update."""


@dataclass(frozen=True, slots=True)
class _StreamPiece:
    """Text of a stream. ``age`` counts how often its lane had been cleared before."""

    lane: str | None
    age: int
    text: str


@dataclass(eq=False)
class _Output:
    """One output with its lane; for a stream, its pieces with the lane of each."""

    node: NotebookNode
    lane: str | None = None
    age: int = 0
    pieces: list[_StreamPiece] = field(default_factory=list)
    content: _UpdatedContent | None = None

    @property
    def streams(self) -> bool:
        return bool(self.node.output_type == "stream")

    def is_stream(self, name: str) -> bool:
        return self.streams and bool(self.node.name == name)


class _OutputBuilder:
    """Collects outputs. Clearing a lane increases its age; content with an earlier age is dropped at the end."""

    def __init__(self, execution_count: int | None) -> None:
        self._outputs: list[_Output] = []
        self._ages: Counter[str | None] = Counter()
        self._count = execution_count
        self._by_id: defaultdict[str | None, dict[str, _DisplayGroup]] = defaultdict(dict)
        self._clear_next: set[str | None] = set()
        self._lines = LaneLineBuffer(render_terminal_text)

    def outputs(self) -> list[_Output]:
        """The outputs that were not cleared."""
        for output in self._outputs:
            output.pieces = [piece for piece in output.pieces if self._lives(piece)]
        return [output for output in self._outputs if (output.pieces if output.streams else self._lives(output))]

    def take(self, event: Event) -> None:
        match event:
            case TextEvent(lane=None):
                self._text(None, event.stream, event.text)
            case TextEvent(lane=str(lane)):
                self._text(lane, event.stream, self._lines.feed(lane, event.stream, event.text))
            case DisplayEvent():
                self._display(event)
            case ErrorEvent():
                traceback = [_replace_surrogates(frame.text) for frame in event.frames]
                name = _replace_surrogates(prefix_lines(event.lane, event.name))
                error = new_output("error", ename=name, evalue=_replace_surrogates(event.value), traceback=traceback)
                self._add(_Output(error, event.lane))
            case NoticeEvent(lane=lane):
                self._text(lane, "stderr", prefix_lines(lane, f"Lockstep: {notice_text(event)}") + "\n")
            case ClearEvent(lane=lane, wait=True):
                self._clear_next.add(lane)
            case ClearEvent(lane=lane):
                if lane is not None:
                    self.end_lines(lane)
                self._clear(lane)
            case FinishedEvent(outcome=outcome) if outcome not in _OUTCOMES_ALREADY_SHOWN:
                self.end_lines(None)
                self._text(None, "stderr", f"Lockstep: {outcome_label(outcome)}.\n")

    def end_lines(self, lane: str | None) -> None:
        """Write the unfinished lines of one lane or of all lanes."""
        for mine, stream, line in self._lines.rest(lane):
            self._text(mine, stream, line)

    def _text(self, lane: str | None, stream: str, text: str) -> None:
        if not text:
            return
        self._clear_if_due(lane)
        last = self._last()
        if last is None or not last.is_stream(stream):
            last = _Output(NotebookNode(output_type="stream", name=stream))
            self._outputs.append(last)
        elif last.pieces[-1].lane != lane and not last.pieces[-1].text.endswith("\n"):
            text = f"\n{text}"
        last.pieces.append(_StreamPiece(lane, self._ages[lane], text))

    def _last(self) -> _Output | None:
        """The last output that was not cleared; removes cleared ones after it."""
        while self._outputs:
            last = self._outputs[-1]
            while last.pieces and not self._lives(last.pieces[-1]):
                last.pieces.pop()
            if last.pieces if last.streams else self._lives(last):
                return last
            self._outputs.pop()
        return None

    def _lives(self, written: _StreamPiece | _Output) -> bool:
        return written.age == self._ages[written.lane]

    def _display(self, event: DisplayEvent) -> None:
        data, metadata = _mime_bundle(event.data), _metadata(event.metadata)
        if event.update:
            if shown := self._by_id[event.lane].get(event.display_id or ""):
                shown.updated.data, shown.updated.metadata = NotebookNode(data), NotebookNode(metadata)
                for output in shown.fresh:
                    output.content = shown.updated
                shown.fresh.clear()
            return
        kind = "execute_result" if event.result else "display_data"
        more = {"execution_count": self._count} if event.result else {}
        output = _Output(new_output(kind, data=data, metadata=metadata, **more), event.lane)
        self._add(output)
        if event.display_id is not None:
            self._by_id[event.lane].setdefault(event.display_id, _DisplayGroup()).fresh.append(output)

    def _add(self, output: _Output) -> None:
        if output.lane is not None:
            self.end_lines(output.lane)
        self._clear_if_due(output.lane)
        output.age = self._ages[output.lane]
        self._outputs.append(output)

    def _clear_if_due(self, lane: str | None) -> None:
        if lane in self._clear_next:
            self._clear(lane)

    def _clear(self, lane: str | None) -> None:
        """Drop the content of a lane; None is the cell's own."""
        self._ages[lane] += 1
        self._by_id.pop(lane, None)
        self._clear_next.discard(lane)


def _finish_stream(output: _Output) -> NotebookNode:
    if not output.streams:
        if output.content is not None:
            output.node.data, output.node.metadata = output.content.data, output.content.metadata
        return output.node
    text = "".join(piece.text for piece in output.pieces)
    return new_output("stream", name=output.node.name, text=render_terminal_text(_replace_surrogates(text)))


def _mime_bundle(data: dict[str, Any]) -> dict[str, Any]:
    """Only what the notebook format allows: text for any type, structures for JSON types. Plots get a short text."""
    if any(kind in data for kind in PLOTS):
        data = {**data, "text/plain": display_text(data)}
    return {
        kind: _replace_surrogates(content) if isinstance(content, str) else content
        for kind, content in data.items()
        if _JSON_MEDIA_TYPE.fullmatch(kind) or isinstance(content, str)
    }


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != "trusted"}


def _replace_surrogates(text: str) -> str:
    """JSON can contain half a surrogate pair, but UTF-8 files cannot."""
    return text.encode("utf-8", "replace").decode()
