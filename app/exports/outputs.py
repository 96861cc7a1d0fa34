"""A run's events as the outputs of a notebook cell.

What the learner's code displayed is copied as data: nothing is signed, so Jupyter shows no HTML and runs no script of
it until its reader says that the notebook is trusted. A notebook has no lanes: each line of a worker or a replica
begins with its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from app.exports.numbers import numbers_table
from app.exports.terminal import settled
from app.runs.lanes import LaneLines, in_lane
from app.runs.outcome import notice_words, outcome_words
from runners.protocol import Clear, Display, Error, Event, Finished, Metric, Notice, Outcome, Text

_JSON = re.compile(r"application/([a-zA-Z0-9.-]+\+)?json")
_SAID_ALREADY = (Outcome.ok, Outcome.error)


def outputs_of(events: Iterable[Event], execution_count: int | None) -> list[NotebookNode]:
    """The outputs in order: streams merged and settled as a terminal would, updates where the first display was.

    The numbers of a training come last, as a table; how far it was at some moment is left out.
    """
    board = _Board(execution_count)
    metrics: list[Metric] = []
    for event in events:
        if isinstance(event, Metric):
            metrics.append(event)
        else:
            board.take(event)
    board.end_lines(None)
    outputs = [_settle(output) for output in board.outputs]
    if table := numbers_table(metrics):
        outputs.append(new_output("display_data", data={"text/plain": _clean(table)}))
    return outputs


@dataclass(eq=False)
class _Output:
    """One output, whose ``lane`` it is, and for a stream its pieces with the lane of each."""

    node: NotebookNode
    lane: str | None = None
    pieces: list[tuple[str | None, str]] = field(default_factory=list)

    def is_stream(self, name: str) -> bool:
        return bool(self.node.output_type == "stream" and self.node.name == name)


class _Board:
    """The outputs so far."""

    def __init__(self, execution_count: int | None) -> None:
        self.outputs: list[_Output] = []
        self._count = execution_count
        self._by_id: dict[tuple[str | None, str], list[_Output]] = {}
        self._clear_next: set[str | None] = set()
        self._lines = LaneLines(settled)

    def take(self, event: Event) -> None:
        match event:
            case Text(lane=None):
                self._text(None, event.stream, event.text)
            case Text(lane=str(lane)):
                self._text(lane, event.stream, self._lines.feed(lane, event.stream, event.text))
            case Display():
                self._display(event)
            case Error():
                traceback = [_clean(frame.text) for frame in event.frames]
                name = _clean(in_lane(event.lane, event.name))
                error = new_output("error", ename=name, evalue=_clean(event.value), traceback=traceback)
                self._add(_Output(error, event.lane))
            case Notice(lane=lane):
                self._text(lane, "stderr", in_lane(lane, f"Lockstep: {notice_words(event)}") + "\n")
            case Clear(lane=lane, wait=True):
                self._clear_next.add(lane)
            case Clear(lane=lane):
                if lane is not None:
                    self.end_lines(lane)
                self._clear(lane)
            case Finished(outcome=outcome) if outcome not in _SAID_ALREADY:
                self.end_lines(None)
                self._text(None, "stderr", f"Lockstep: {outcome_words(outcome)}.\n")

    def end_lines(self, lane: str | None) -> None:
        """Write the lines that were never ended, of one lane or of all."""
        for mine, stream, line in self._lines.rest(lane):
            self._text(mine, stream, line)

    def _text(self, lane: str | None, stream: str, text: str) -> None:
        if not text:
            return
        self._clear_if_due(lane)
        last = self.outputs[-1] if self.outputs else None
        if last is None or not last.is_stream(stream):
            last = _Output(NotebookNode(output_type="stream", name=stream))
            self.outputs.append(last)
        elif last.pieces[-1][0] != lane and not last.pieces[-1][1].endswith("\n"):
            text = f"\n{text}"
        last.pieces.append((lane, text))

    def _display(self, event: Display) -> None:
        data, metadata = _bundle(event.data), _metadata(event.metadata)
        if event.update:
            for output in self._by_id.get((event.lane, event.display_id or ""), ()):
                output.node.data, output.node.metadata = NotebookNode(data), NotebookNode(metadata)
            return
        kind = "execute_result" if event.result else "display_data"
        more = {"execution_count": self._count} if event.result else {}
        output = _Output(new_output(kind, data=data, metadata=metadata, **more), event.lane)
        self._add(output)
        if event.display_id is not None:
            self._by_id.setdefault((event.lane, event.display_id), []).append(output)

    def _add(self, output: _Output) -> None:
        if output.lane is not None:
            self.end_lines(output.lane)
        self._clear_if_due(output.lane)
        self.outputs.append(output)

    def _clear_if_due(self, lane: str | None) -> None:
        if lane in self._clear_next:
            self._clear(lane)

    def _clear(self, lane: str | None) -> None:
        """Take out what that lane wrote; the cell itself counts as one."""
        for output in self.outputs:
            output.pieces = [piece for piece in output.pieces if piece[0] != lane]
        self.outputs = [o for o in self.outputs if (o.pieces if o.node.output_type == "stream" else o.lane != lane)]
        self._by_id = {key: outputs for key, outputs in self._by_id.items() if key[0] != lane}
        self._clear_next.discard(lane)


def _settle(output: _Output) -> NotebookNode:
    if output.node.output_type != "stream":
        return output.node
    text = "".join(piece for _, piece in output.pieces)
    return new_output("stream", name=output.node.name, text=settled(_clean(text)))


def _bundle(data: dict[str, Any]) -> dict[str, Any]:
    """Only what the notebook format allows: text under any type, structures under JSON types."""
    return {
        kind: _clean(content) if isinstance(content, str) else content
        for kind, content in data.items()
        if _JSON.fullmatch(kind) or isinstance(content, str)
    }


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key != "trusted"}


def _clean(text: str) -> str:
    """Half a surrogate pair can be typed into JSON, but not written to a file."""
    return text.encode("utf-8", "replace").decode()
