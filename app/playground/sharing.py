"""Shared copies of playgrounds: made by accounts, read, run and forked by anyone who knows the link.

Services flush; the caller commits.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, Role
from app.accounts.service import AccountDeleted
from app.db import Database, advisory_lock, now
from app.i18n import gettext
from app.lessons.model import Lesson
from app.lessons.untrusted_markdown import run_in_render_thread
from app.playground.errors import NothingToShare, SharedPlaygroundNotFound, TooManyShares
from app.playground.models import SharedPlayground
from app.playground.pages import OWN, OWN_KEY, SharedCell, SharedCells, own_playground, shared_playground
from app.runs.machines import Machine
from app.runs.scratch_cells import NewCell, add_scratch_cells, clean_title, list_scratch_cells

MAX_SHARES = 20
_ID = re.compile(r"[A-Za-z0-9_-]{22}")


async def find_playground(db: Database, slug: str, language: str) -> Lesson:
    """The learner's own playground, or the shared copy with this ID, as a lesson. Raises SharedPlaygroundNotFound."""
    if slug == OWN:
        return own_playground(language)
    async with db.session() as session:
        share = await get_share(session, slug)
    return await run_in_render_thread(as_lesson, share, language)


async def get_share(session: AsyncSession, share_id: str, *, hidden: bool = False) -> SharedPlayground:
    """The shared copy with this ID.

    Raises:
        SharedPlaygroundNotFound: there is none, or its account is disabled, which ``hidden`` allows.
    """
    this = select(SharedPlayground).where(SharedPlayground.id == share_id)
    if not hidden:
        this = this.join(Account, Account.id == SharedPlayground.account_id).where(Account.disabled_at.is_(None))
    share = await session.scalar(this) if _ID.fullmatch(share_id) else None
    if share is None:
        raise SharedPlaygroundNotFound
    return share


def as_lesson(share: SharedPlayground, language: str) -> Lesson:
    """The copy as a page. Pure. Rendering half a megabyte takes long: call it in the render thread."""
    machine = Machine.of(share.topology, share.keras)
    return shared_playground(share.id, language, share.title, machine, share.cells)


async def list_shares(session: AsyncSession, account: Account) -> Sequence[SharedPlayground]:
    """The account's shared copies, the newest first."""
    mine = select(SharedPlayground).where(SharedPlayground.account_id == account.id)
    return (await session.scalars(mine.order_by(SharedPlayground.created_at.desc(), SharedPlayground.id))).all()


async def share_playground(session: AsyncSession, account: Account, title: str, machine: Machine) -> SharedPlayground:
    """Copy the account's playground as it is now.

    Raises:
        NothingToShare, TooManyShares: there is nothing to copy, or no room for it.
        TextTooLong, TextInvalid: the title cannot be stored.
        AccountDeleted: the account was deleted during this request.
    """
    await advisory_lock(session, f"shares of {account.id}")
    cells = await list_scratch_cells(session, account.learner_id, OWN_KEY)
    kept = [
        SharedCell(kind="code" if cell.kind == "code" else "text", name=cell.name, title=cell.title, source=cell.source)
        for cell in cells
        if cell.source.strip()
    ]
    if not kept:
        raise NothingToShare
    mine = select(func.count()).select_from(SharedPlayground).where(SharedPlayground.account_id == account.id)
    if (await session.scalar(mine) or 0) >= MAX_SHARES:
        raise TooManyShares(most=MAX_SHARES)
    share = SharedPlayground(
        id=secrets.token_urlsafe(16),
        account_id=account.id,
        title=clean_title(title) or gettext("Shared playground"),
        topology=machine.topology,
        keras=machine.keras,
        cells=SharedCells.dump_json(kept).decode(),
        created_at=now(),
    )
    session.add(share)
    try:
        await session.flush()
    except IntegrityError as e:
        raise AccountDeleted from e
    return share


def may_revoke(account: Account | None, share: SharedPlayground) -> bool:
    """Whether someone may revoke a copy: its owner, and whoever moderates. Pure."""
    return account is not None and (account.id == share.account_id or account.role != Role.learner)


async def revoke_share(session: AsyncSession, account: Account, share_id: str) -> None:
    """Delete a shared copy. Raises SharedPlaygroundNotFound if there is none that the account may revoke."""
    share = await get_share(session, share_id, hidden=True)
    if not may_revoke(account, share):
        raise SharedPlaygroundNotFound
    await session.execute(delete(SharedPlayground).where(SharedPlayground.id == share_id))


async def fork_share(session: AsyncSession, learner: str, share: SharedPlayground, language: str) -> None:
    """Add the cells of a copy to the end of a learner's own playground, below a heading with its title.

    Raises TooManyScratchCells or ScratchCellsTooLarge.
    """
    heading = NewCell("text", f"## {share.title}")
    cells = [NewCell(cell.kind, cell.source, cell.title) for cell in SharedCells.validate_json(share.cells)]
    await add_scratch_cells(session, learner, own_playground(language), None, [heading, *cells])
