"""The API with which authors write ``checks.py``: ``@check`` declares a check, and its ``Work`` is the submission.

``docs/teach/exercises.md`` shows how to use it, and ``docs/develop/judging.md`` what a check can conclude and why. The
judge (``runners.guest.judging.judge``) runs checks in a sandbox without learner code; what submissions answer gets
there as plain data. So this package needs only NumPy and the standard library. Checks also run without a server:
a check is a plain function, and ``InProcessWork`` stands in for the judge.
"""

from runners.checks.compare import CheckFailed, close, equal, fail
from runners.checks.declare import DeclaredCheck, check
from runners.checks.in_process import InProcessWork
from runners.checks.plain_data import NotPlainData, PlainData
from runners.checks.structure import names_behind, untouched
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
    "names_behind",
    "untouched",
]
