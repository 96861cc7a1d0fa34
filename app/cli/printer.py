"""Prints events on a terminal: as text for people, or as one JSON object per line for programs."""

from __future__ import annotations

import json
import re
from typing import Any, Protocol, TextIO

from app.cli.ansi_filter import RESET, AnsiFilter, strip_cursor_moves
from app.exports.terminal import render_terminal_text
from app.lessons.machine_labels import topology_label
from app.runs.display_text import display_text
from app.runs.limit_labels import limit_advice, limit_label
from app.runs.line_prefixes import LaneLineBuffer, prefix_lines
from app.runs.status_labels import outcome_label
from runners.wire.error_hints import Need
from runners.wire.protocol import (
    DisplayEvent,
    ErrorEvent,
    Event,
    FinishedEvent,
    NoticeEvent,
    Outcome,
    SessionInfo,
    TextEvent,
    Topology,
)
from runners.wire.reports import NEEDS

_ANSI_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_IN_SCRIPT = re.compile(
    r"^( *)(?:{0})*Cell(?:{0})* ?(?:{0})* ?(?:{0})*In ?\[\d+\](?:{0})*(?=, line \d)".format(r"\x1b\[[0-9;]*m")
)
"""How IPython names the code of a run at the beginning of a frame."""
_ADVICE: dict[Need | None, str] = {
    "keras-2": " Run it with --keras 2.",
    "tpu": " Run it with --topology tpu:8.",
    "servers": " Run it with --topology ps:2+1.",
}
"""How to get a session that has what this one has not."""
_CONTROL = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters that JSON does not have to escape, but that a terminal may execute, or that reorder a line."""


class Printer(Protocol):
    """Shows events as they arrive."""

    def begin(self, machine: SessionInfo) -> None:
        """Called once, before the program's started event."""

    def show(self, event: Event) -> None:
        """Called for each event, in order."""


class JsonPrinter:
    """Prints events in the form of the wire protocol; the last line has the outcome."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._more: dict[str, Any] = {}
        """The machine, printed with the next event."""

    def begin(self, machine: SessionInfo) -> None:
        simulated = Topology.parse(machine.topology).simulated and not machine.real
        self._more = {"machine": {"topology": machine.topology, "keras": machine.keras, "simulated": simulated}}

    def show(self, event: Event) -> None:
        line = event.model_dump_json()
        if self._more:
            line = json.dumps(json.loads(line) | self._more, ensure_ascii=False, separators=(",", ":"))
            self._more = {}
        self._out.write(escape_json_controls(line) + "\n")
        self._out.flush()


class TextPrinter:
    """Prints output to the stream that the script used, and Lockstep's messages to standard error.

    A terminal gets text and colors, but no other control sequences. Output of workers and replicas appears in whole
    lines, each with the name of its lane.
    """

    def __init__(self, out: TextIO, err: TextIO, script: str = "") -> None:
        """``script`` is the name of the program in tracebacks; without it, IPython's own stays."""
        self._script = script
        self._out = _TerminalWriter(out)
        self._err = _TerminalWriter(err)
        self._session_failed = False
        self._lines = LaneLineBuffer(render_terminal_text)
        self._notice: tuple[str | None, str] | None = None
        """The lane and text of the last event, if it was a notice."""
        self._again = 0
        """How often that notice has been repeated since."""

    def begin(self, machine: SessionInfo) -> None:
        words = topology_label(machine.topology, real=machine.real)
        if machine.real:
            self._err.write(f"lockstep: {words}.\n")
        elif Topology.parse(machine.topology).simulated:
            self._err.write(f"lockstep: {words}. Timings say nothing about real devices.\n")

    def show(self, event: Event) -> None:
        notice = (event.lane, event.text) if isinstance(event, NoticeEvent) else None
        if notice and notice == self._notice:
            self._again += 1
            return
        self._say_how_often()
        self._notice = notice
        match event:
            case TextEvent(lane=str(lane), stream=stream, text=text):
                self._sheet(stream).write_lines(self._lines.feed(lane, stream, text))
            case TextEvent(stream=stream, text=text):
                self._sheet(stream).write(text)
            case DisplayEvent(lane=lane, data=data) if text := display_text(data):
                self._whole(lane, self._out, text)
            case ErrorEvent(lane=lane, frames=frames):
                trace = "\n".join(self._named(frame.text.rstrip("\n")) for frame in frames)
                self._whole(lane, self._err, trace if self._err.is_terminal else _ANSI_COLOR.sub("", trace))
            case NoticeEvent(lane=lane, code=code, text=text):
                self._session_failed = self._session_failed or code == "session-failed"
                self._whole(lane, self._err, f"lockstep: {text}{_ADVICE.get(NEEDS.get(code), '')}")
            case FinishedEvent():
                self._end_lines()
                self._out.end()
                self._err.end()
                if event.outcome not in (Outcome.ok, Outcome.error) and not self._session_failed:
                    self._err.write(f"lockstep: {_outcome_message(event)}\n")

    def _named(self, frame: str) -> str:
        """A frame of the script, as ``train.py, line 5``."""
        return _IN_SCRIPT.sub(lambda found: found[1] + self._script, frame, count=1) if self._script else frame

    def _say_how_often(self) -> None:
        """After a repeated notice, which is shown once, say how often it was repeated."""
        if self._notice and self._again:
            lane, again = self._notice[0], self._again
            self._whole(lane, self._err, f"lockstep: (the same {again:,} more time{'s' * (again > 1)})")
        self._again = 0

    def _whole(self, lane: str | None, sheet: _TerminalWriter, text: str) -> None:
        """Write text on separate lines."""
        if lane is None:
            sheet.write(text + "\n")
        else:
            self._end_lines(lane)
            sheet.write_lines(prefix_lines(lane, text) + "\n")

    def _end_lines(self, lane: str | None = None) -> None:
        for _, stream, line in self._lines.rest(lane):
            self._sheet(stream).write_lines(line)

    def _sheet(self, stream: str) -> _TerminalWriter:
        return self._out if stream == "stdout" else self._err


def escape_json_controls(document: str) -> str:
    """JSON with the same meaning that no terminal obeys."""
    return _CONTROL.sub(lambda c: f"\\u{ord(c[0]):04x}", document)


def _outcome_message(last: FinishedEvent) -> str:
    """Say how the run ended, which limit it reached, and what to try."""
    met = f" ({limit_label(last.limit)})" if last.limit else ""
    return f"{outcome_label(last.outcome)}{met}. {limit_advice(last.outcome, last.limit)}".rstrip()


class _TerminalWriter:
    """Writes to a stream. A file or a pipe gets every byte unchanged."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._screen = AnsiFilter() if stream.isatty() else None
        self._coloured = False
        self._in_a_line = False

    @property
    def is_terminal(self) -> bool:
        return self._screen is not None

    def write_lines(self, lines: str) -> None:
        """Write whole lines of a lane, without affecting the position and color of other lanes' lines."""
        if not lines:
            return
        if self._screen is not None:
            lines = "".join(
                strip_cursor_moves(line) + (RESET if "\x1b" in line else "") + "\n" for line in lines.split("\n")[:-1]
            )
        self.write("\n" * self._in_a_line + lines)

    def write(self, text: str) -> None:
        self._in_a_line = not text.endswith("\n") if text else self._in_a_line
        if self._screen is not None:
            text = self._screen.filter(text)
            self._coloured = self._coloured or "\x1b" in text
        self._stream.write(text)
        self._stream.flush()

    def end(self) -> None:
        """Reset the program's colors, and drop a sequence that it did not finish."""
        if self._screen is not None:
            self._screen = AnsiFilter()
            if self._coloured:
                self._stream.write(RESET)
                self._stream.flush()
