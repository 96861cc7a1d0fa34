"""Parses how a kernel crashed from the output of Python's faulthandler. Pure.

The output comes from inside the sandbox, so a program can forge it, which harms only itself. Everything read here is
bounded, and shown only to its author and the operator.
"""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

from runners.wire.protocol import TracebackFrame

_MOST_CALLS = 40
"""The most calls kept: half of them the outermost, half the innermost."""
_THREAD = re.compile(r"^(Current thread|Thread) 0x[0-9a-f]{1,16} (?:\[[^\]\n]{1,40}\] )?\(most recent call first\):$")
_CALL = re.compile(r'^  File "([^"\n]{1,300})", line (\d{1,7}) in ([^\n]{1,200})$')
_CELL = re.compile(r"<ipython-input-\d+-[0-9a-f]+>")
"""The file name that IPython gives to a cell's code."""
_PACKAGES = "/site-packages/"


class StackCall(NamedTuple):
    """A call that was in progress; ``line``, counted from 1, is the one being executed."""

    file: str
    line: int
    function: str

    @property
    def of_cell(self) -> bool:
        return bool(_CELL.fullmatch(self.file))


def describe_signal(status: int) -> tuple[str, str]:
    """The signal that ended a process with exit status ``status``, such as ``SIGSEGV``, and its meaning."""
    try:
        ended_by = signal.Signals(-status)
    except ValueError:
        return "Crash", f"exit status {status}"
    return ended_by.name, signal.strsignal(ended_by) or ""


def parse_stack(trace: str) -> list[StackCall]:
    """The calls from a cell's code to the crash, outermost first; empty if ``trace`` has none.

    They are the calls of the thread that crashed. If that is one of TensorFlow's own threads, which run no Python, they
    are the calls of the thread that runs the cell, which is listed last.
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
    """Convert the calls to frames of a traceback; ``code`` is the code of the cell that ran."""
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
