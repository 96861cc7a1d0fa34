"""What the simulation tells learners."""

from __future__ import annotations

import sys

from runners.guest.reporting import publisher
from runners.wire.reports import NOTICES

_said: set[str] = set()


def notify_once(code: str, **values: str | float) -> None:
    """``notify`` a sentence, unless one of its code was said in this process."""
    if code not in _said:
        _said.add(code)
        notify(code, **values)


def notify(code: str, **values: str | float) -> None:
    """Say one of the sentences of ``runners.wire.reports.NOTICES``.

    It goes to the page; where nobody takes reports, as in a notebook of another Jupyter client, to standard error.
    """
    if publisher.has_sink():
        publisher.notice(code, None, **values)
    else:
        print(NOTICES[code].format_map(values), file=sys.stderr)
