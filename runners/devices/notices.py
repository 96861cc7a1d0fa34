"""What the simulation tells learners, each sentence once in a process."""

from __future__ import annotations

import sys

from runners.kernel import report
from runners.reports import NOTICES

_said: set[str] = set()


def once(code: str, **values: str | float) -> None:
    """Say one of the sentences of ``runners.reports.NOTICES``, unless it was said before.

    It goes to the page; where nobody takes reports, as in a notebook of another Jupyter client, to standard error.
    """
    if code in _said:
        return
    _said.add(code)
    if report.heard():
        report.notice(code, None, **values)
    else:
        print(NOTICES[code].format_map(values), file=sys.stderr)
