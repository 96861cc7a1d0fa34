"""Sends notices about the simulation to learners."""

from __future__ import annotations

import sys

from runners.guest.reporting import publisher
from runners.wire.reports import NOTICES

_said: set[str] = set()


def notify_once(code: str, **values: str | float) -> None:
    """Like ``notify``, but only once in this process for each code."""
    if code not in _said:
        _said.add(code)
        notify(code, **values)


def notify(code: str, **values: str | float) -> None:
    """Send one of the notices in ``runners.wire.reports.NOTICES``.

    It goes to the page, or, if nothing receives reports, as in a notebook of another Jupyter client, to standard error.
    """
    if publisher.has_sink():
        publisher.notice(code, None, **values)
    else:
        print(NOTICES[code].format_map(values), file=sys.stderr)
