"""Events on a terminal: as text for people, or one JSON object a line for programs."""

from __future__ import annotations

import re
from typing import Protocol, TextIO

from app.runs.outcome import outcome_words
from runners.protocol import Display, Error, Event, Finished, Notice, Outcome, Text

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Printer(Protocol):
    """Shows events as they come."""

    def show(self, event: Event) -> None:
        """Called for each event, in order."""


class JsonPrinter:
    """The wire's own form; the last line has the outcome."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: Event) -> None:
        self._out.write(event.model_dump_json() + "\n")
        self._out.flush()


class TextPrinter:
    """Output where the script sent it; what Lockstep has to say on standard error."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err

    def show(self, event: Event) -> None:
        match event:
            case Text(stream="stdout", text=text):
                _write(self._out, text)
            case Text(text=text):
                _write(self._err, text)
            case Display(data=data) if isinstance(data.get("text/plain"), str):
                _write(self._out, data["text/plain"] + "\n")
            case Error(frames=frames):
                trace = "\n".join(frame.text.rstrip("\n") for frame in frames) + "\n"
                _write(self._err, trace if self._err.isatty() else _COLOUR.sub("", trace))
            case Notice(text=text):
                _write(self._err, f"lockstep: {text}\n")
            case Finished(outcome=outcome) if outcome not in (Outcome.ok, Outcome.error):
                _write(self._err, f"lockstep: {outcome_words(outcome)}.\n")


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
