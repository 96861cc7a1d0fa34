"""Every table there is: importing this module fills ``Base.metadata``."""

from __future__ import annotations

from app.runs.models import Run, RunEvent

TABLES = (Run.__table__, RunEvent.__table__)
