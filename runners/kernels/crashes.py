"""How a kernel crashed, in what Python's faulthandler wrote as its last words. Pure.

The words come from inside: a program can write the same, and does so at its own expense. What is read here is bounded
in every direction, and shown to nobody but its author and the operator.
"""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

from runners.wire.protocol import TracebackFrame

_MOST_CALLS = 40
"""Of many the outermost and the innermost, half each."""
_THREAD = re.compile(r"^(Current thread|Thread) 0x[0-9a-f]{1,16} (?:\[[^\]\n]{1,40}\] )?\(most recent call first\):$")
_CALL = re.compile(r'^  File "([^"\n]{1,300})", line (\d{1,7}) in ([^\n]{1,200})$')
_CELL = re.compile(r"<ipython-input-\d+-[0-9a-f]+>")
"""What IPython says that a cell's code lies in."""
_PACKAGES = "/site-packages/"


class StackCall(NamedTuple):
    """A call that was in progress: ``line``, counted from 1, is where it had got to."""

    file: str
    line: int
    function: str

    @property
    def of_cell(self) -> bool:
        """Whether a cell's code was called."""
        return bool(_CELL.fullmatch(self.file))


def describe_signal(status: int) -> tuple[str, str]:
    """The signal that ended a process with the exit status ``status``, as in ``SIGSEGV``, and what it means."""
    try:
        ended_by = signal.Signals(-status)
    except ValueError:
        return "Crash", f"exit status {status}"
    return ended_by.name, signal.strsignal(ended_by) or ""


def parse_stack(trace: str) -> list[StackCall]:
    """The calls from a cell's code to the crash, outermost first; empty if ``trace`` tells of none.

    They are those of the thread that crashed. One of TensorFlow's own threads runs no Python: then those of the thread
    that runs the cell, which is the last one told of.
    """
    current: list[StackCall] = []
    threads: list[list[StackCall]] = []
    for line in trace.splitlines():
        if begins := _THREAD.match(line):
            threads.append([])
            if begins[1] == "Current thread":
                current = threads[-1]
        elif threads and (call := _CALL.match(line)):
            threads[-1].append(StackCall(call[1], int(call[2]), call[3]))
    for calls in (current, *reversed(threads)):
        own = [depth for depth, call in enumerate(calls) if call.of_cell]
        if own:
            return _ends(calls[own[-1] :: -1])
    return []


def _ends(calls: list[StackCall]) -> list[StackCall]:
    half = _MOST_CALLS // 2
    return calls if len(calls) <= _MOST_CALLS else [*calls[:half], *calls[-half:]]


def to_traceback_frames(stack: list[StackCall], code: str) -> list[TracebackFrame]:
    """The calls as the pieces of a traceback; ``code`` is that of the cell which ran, the outermost one."""
    lines = code.splitlines()
    return [_frame(call, lines if call.file == stack[0].file else None) for call in stack]


def _frame(call: StackCall, code: list[str] | None) -> TracebackFrame:
    if not call.of_cell:
        return TracebackFrame(
            text=f"File {call.file.rpartition(_PACKAGES)[2]}:{call.line}, in {call.function}", own=False
        )
    if code is None:
        return TracebackFrame(text=f"An earlier cell, line {call.line}, in {call.function}", own=True)
    shown = f"\n----> {call.line} {code[call.line - 1]}" if 0 < call.line <= len(code) else ""
    return TracebackFrame(text=f"This cell, line {call.line}, in {call.function}{shown}", own=True)
