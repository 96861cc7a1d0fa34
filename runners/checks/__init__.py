"""What the author of an exercise writes ``checks.py`` with: see ``docs/teach/exercises.md``.

Everything here works without a server: a check is a plain function, and ``InProcessWork`` stands in for the judge.
"""

from runners.checks.compare import CheckFailed, close, equal, fail
from runners.checks.declare import DeclaredCheck, check
from runners.checks.in_process import InProcessWork
from runners.checks.plain_data import NotPlainData, PlainData
from runners.checks.work import Graph, Work

__all__ = [
    "CheckFailed",
    "DeclaredCheck",
    "Graph",
    "InProcessWork",
    "NotPlainData",
    "PlainData",
    "Work",
    "check",
    "close",
    "equal",
    "fail",
]
