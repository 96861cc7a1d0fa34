"""An account's shared copies, as it can download them. They are deleted with the account's row."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.db import stream_scalars
from app.playground.models import SharedPlayground
from app.playground.pages import SharedCells

_EXPORTED_NAMES = ("id", "title", "topology", "keras", "created_at")


async def export_shares(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """All copies, in the order in which they were shared."""
    mine = select(SharedPlayground).where(SharedPlayground.account_id == account.id)
    async for share in stream_scalars(session, mine.order_by(SharedPlayground.created_at, SharedPlayground.id)):
        cells = [cell.model_dump() for cell in SharedCells.validate_json(share.cells)]
        yield {name: getattr(share, name) for name in _EXPORTED_NAMES} | {"cells": cells}
