"""Progress, put together: one for each process, made by ``main`` as ``app.state.progress``.

Routes ask for ``TheProgress``; it holds ``ledger`` (award, merge) and ``summary`` (what pages show).
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from app.progress.ledger import Ledger
from app.progress.summary import Summary


class Progress:
    """What features need of progress."""

    def __init__(self, ledger: Ledger, summary: Summary) -> None:
        self.ledger = ledger
        self.summary = summary


async def _progress(request: Request) -> Progress:
    progress: Progress = request.app.state.progress
    return progress


TheProgress = Annotated[Progress, Depends(_progress)]
