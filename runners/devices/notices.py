"""What the simulation tells learners."""

from __future__ import annotations

import sys

from runners.kernel import report
from runners.reports import NOTICES

_said: set[str] = set()


def once(code: str, **values: str | float) -> None:
    """``say`` a sentence, unless one of its code was said in this process."""
    if code not in _said:
        _said.add(code)
        say(code, **values)


def say(code: str, **values: str | float) -> None:
    """Say one of the sentences of ``runners.reports.NOTICES``.

    It goes to the page; where nobody takes reports, as in a notebook of another Jupyter client, to standard error.
    """
    if report.heard():
        report.notice(code, None, **values)
    else:
        print(NOTICES[code].format_map(values), file=sys.stderr)
