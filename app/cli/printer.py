"""Events on a terminal: as text for people, or one JSON object a line for programs."""

from __future__ import annotations

import re
from typing import Protocol, TextIO

from app.cli.screen import RESET, Screen
from app.runs.limits import advice, limit_words
from app.runs.outcome import outcome_words
from runners.protocol import Display, Error, Event, Finished, Notice, Outcome, Text

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile("[\x7f-\x9f]")
"""What JSON need not escape, and a terminal may obey."""


class Printer(Protocol):
    """Shows events as they come."""

    def show(self, event: Event) -> None:
        """Called for each event, in order."""


class JsonPrinter:
    """The wire's own form; the last line has the outcome."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: Event) -> None:
        self._out.write(_CONTROL.sub(lambda c: f"\\u{ord(c[0]):04x}", event.model_dump_json()) + "\n")
        self._out.flush()


class TextPrinter:
    """Output where the script sent it; what Lockstep has to say on standard error.

    A terminal gets text and colours, and nothing else that it would obey.
    """

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = _Sheet(out)
        self._err = _Sheet(err)
        self._session_failed = False

    def show(self, event: Event) -> None:
        match event:
            case Text(stream="stdout", text=text):
                self._out.write(text)
            case Text(text=text):
                self._err.write(text)
            case Display(data=data) if isinstance(data.get("text/plain"), str):
                self._out.write(data["text/plain"] + "\n")
            case Error(frames=frames):
                trace = "\n".join(frame.text.rstrip("\n") for frame in frames) + "\n"
                self._err.write(trace if self._err.is_terminal else _COLOUR.sub("", trace))
            case Notice(code=code, text=text):
                self._session_failed = self._session_failed or code == "session-failed"
                self._err.write(f"lockstep: {text}\n")
            case Finished():
                self._out.end()
                self._err.end()
                if event.outcome not in (Outcome.ok, Outcome.error) and not self._session_failed:
                    self._err.write(f"lockstep: {_end(event)}\n")


def _end(last: Finished) -> str:
    """How it ended, which limit it met, and what to try."""
    met = f" ({limit_words(last.limit)})" if last.limit else ""
    return f"{outcome_words(last.outcome)}{met}. {advice(last.outcome, last.limit)}".rstrip()


class _Sheet:
    """A stream to write on. A file or a pipe gets every byte as it is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._screen = Screen() if stream.isatty() else None
        self._coloured = False

    @property
    def is_terminal(self) -> bool:
        return self._screen is not None

    def write(self, text: str) -> None:
        if self._screen is not None:
            text = self._screen.tame(text)
            self._coloured = self._coloured or "\x1b" in text
        self._stream.write(text)
        self._stream.flush()

    def end(self) -> None:
        """The program's colours end with it, and so does a sequence that it never finished."""
        if self._screen is not None:
            self._screen = Screen()
            if self._coloured:
                self._stream.write(RESET)
                self._stream.flush()
