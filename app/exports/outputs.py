"""A run's events as the outputs of a notebook cell.

What the learner's code displayed is copied as data: nothing is signed, so Jupyter shows no HTML and runs no script of
it until its reader says that the notebook is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from app.exports.terminal import settled
from app.runs.outcome import outcome_words
from runners.protocol import Clear, Display, Error, Event, Finished, Notice, Outcome, Text

_JSON = re.compile(r"application/([a-zA-Z0-9.-]+\+)?json")
_SAID_ALREADY = (Outcome.ok, Outcome.error)


def outputs_of(events: Iterable[Event], execution_count: int | None) -> list[NotebookNode]:
    """The outputs in order: streams merged and settled as a terminal would, updates where the first display was."""
    board = _Board(execution_count)
    for event in events:
        board.take(event)
    return [_settle(output) for output in board.outputs]


class _Board:
    """The outputs so far."""

    def __init__(self, execution_count: int | None) -> None:
        self.outputs: list[NotebookNode] = []
        self._count = execution_count
        self._by_id: dict[str, list[NotebookNode]] = {}
        self._clear_next = False

    def take(self, event: Event) -> None:
        match event:
            case Text():
                self._text(event.stream, event.text)
            case Display():
                self._display(event)
            case Error():
                traceback = [_clean(frame.text) for frame in event.frames]
                self._add(
                    new_output("error", ename=_clean(event.name), evalue=_clean(event.value), traceback=traceback)
                )
            case Notice():
                self._text("stderr", f"Lockstep: {event.text}\n")
            case Clear(wait=wait):
                self._clear_next = wait
                if not wait:
                    self._clear()
            case Finished(outcome=outcome) if outcome not in _SAID_ALREADY:
                self._text("stderr", f"Lockstep: {outcome_words(outcome)}.\n")

    def _text(self, stream: str, text: str) -> None:
        last = self.outputs[-1] if self.outputs and not self._clear_next else None
        if last is not None and last.output_type == "stream" and last.name == stream:
            last.pieces.append(text)
        else:
            self._add(NotebookNode(output_type="stream", name=stream, pieces=[text]))

    def _display(self, event: Display) -> None:
        data, metadata = _bundle(event.data), _metadata(event.metadata)
        if event.update:
            for output in self._by_id.get(event.display_id or "", ()):
                output.data, output.metadata = NotebookNode(data), NotebookNode(metadata)
            return
        kind = "execute_result" if event.result else "display_data"
        more = {"execution_count": self._count} if event.result else {}
        output = new_output(kind, data=data, metadata=metadata, **more)
        if event.display_id is not None:
            self._by_id.setdefault(event.display_id, []).append(output)
        self._add(output)

    def _add(self, output: NotebookNode) -> None:
        if self._clear_next:
            self._clear()
        self.outputs.append(output)

    def _clear(self) -> None:
        self.outputs.clear()
        self._by_id.clear()
        self._clear_next = False


def _settle(output: NotebookNode) -> NotebookNode:
    if output.output_type != "stream":
        return output
    return new_output("stream", name=output.name, text=settled(_clean("".join(output.pieces))))


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
