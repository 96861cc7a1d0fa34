"""Scratch cells: cells that learners add to a page, with or without an account. Services flush; the caller commits.

A scratch cell follows a cell of the lesson, its anchor, and runs on the same machines, in the same sessions. What it
runs earns nothing: a learner can add as many cells as the limits allow.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup
from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.merge import resolve_learner_id
from app.db import advisory_lock, now
from app.lessons.model import Cell, Lesson
from app.runs.errors import ScratchCellNotFound, ScratchCellsTooLarge, TooManyScratchCells
from app.runs.models import ScratchCell
from app.runs.service import check_code
from app.web.user_text import TextEmpty, clean_text

MAX_CELLS_PER_PAGE = 200
MAX_CELLS_PER_LEARNER = 1_000
MAX_PAGE_BYTES = 500_000
"""All scratch cells of a page together. A page with more would be slow to open."""
MAX_TITLE_LENGTH = 100
NAME_PATTERN = r"scratch-[0-9a-f]{12}"
_NAME = re.compile(NAME_PATTERN)
_UNSHOWN = Markup()
ScratchKind = Literal["code", "text"]


@dataclass(frozen=True, slots=True)
class NewCell:
    """A cell to add. ``name`` is that of a deleted cell to bring back; by default, the cell gets a new one."""

    kind: ScratchKind
    source: str = ""
    title: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ScratchChange:
    """A browser's change to a cell; None leaves a value as it is."""

    seen_version: int
    source: str | None = None
    title: str | None = None


def is_scratch_name(name: str) -> bool:
    """Whether a cell with this name was added by a learner. Pure."""
    return _NAME.fullmatch(name) is not None


def new_scratch_name() -> str:
    return f"scratch-{secrets.token_hex(6)}"


def as_cell(scratch: ScratchCell, lesson: Lesson, title: str = "", highlighted: Markup = _UNSHOWN) -> Cell:
    """The cell as part of its page, with the machines of the cell that it follows. Pure.

    If the lesson no longer has that cell, those of the last one; in the playground, those of the page. Only a page
    needs its code highlighted, which takes long.
    """
    machines = lesson.cell(scratch.anchor) or (lesson.cells[-1] if lesson.cells else lesson)
    return Cell(
        name=scratch.name,
        title=title or scratch.title,
        language="python",
        code=scratch.source,
        line=1,
        topology=machines.topology,
        keras=machines.keras,
        topologies=machines.topologies,
        kerases=machines.kerases,
        tags=frozenset(),
        expect=(),
        highlighted=highlighted,
    )


async def find_scratch_cell(session: AsyncSession, learner: str | None, lesson: str, name: str) -> ScratchCell | None:
    """The learner's cell with this name, if there is one."""
    if learner is None or not is_scratch_name(name):
        return None
    return await session.get(ScratchCell, (learner, lesson, name))


async def list_scratch_cells(session: AsyncSession, learner: str | None, lesson: str) -> Sequence[ScratchCell]:
    """The learner's cells of a page: those with the same anchor are in their order."""
    if learner is None:
        return []
    mine = select(ScratchCell).where(ScratchCell.learner_id == learner, ScratchCell.lesson == lesson)
    order = (ScratchCell.anchor, ScratchCell.position, ScratchCell.name)
    return (await session.scalars(mine.order_by(*order))).all()


def in_page_order(cells: Sequence[ScratchCell], lesson: Lesson) -> dict[str, list[ScratchCell]]:
    """The cells by the name of the lesson's cell that they follow. Pure.

    Those whose anchor is gone follow the last cell.
    """
    names = ["", *(cell.name for cell in lesson.shown_cells)]
    found: dict[str, list[ScratchCell]] = {name: [] for name in names}
    for cell in cells:
        found[cell.anchor if cell.anchor in found else names[-1]].append(cell)
    return found


async def add_scratch_cells(
    session: AsyncSession, learner: str, lesson: Lesson, after: str | None, new: Sequence[NewCell]
) -> list[ScratchCell]:
    """Add cells after a cell of the lesson or another scratch cell; None adds them at the end of the page.

    Raises:
        CodeTooLong, InvalidCode, TextTooLong, TextInvalid: a cell cannot be stored.
        TooManyScratchCells, ScratchCellsTooLarge: the page or the learner has no room for them.
    """
    learner = await _lock(session, learner)
    there = list(await list_scratch_cells(session, learner, lesson.key))
    known = {cell.name for cell in there}
    added = [_make_cell(learner, lesson.key, cell) for cell in new if cell.name not in known]
    await _check_room(session, learner, there, added)
    anchor, index = _place(there, lesson, after)
    siblings = [cell for cell in there if cell.anchor == anchor]
    siblings[index:index] = added
    _number(siblings, anchor)
    session.add_all(added)
    await session.flush()
    return added


async def change_scratch_cell(
    session: AsyncSession, learner: str, lesson: str, name: str, change: ScratchChange
) -> ScratchCell:
    """Store a change. Returns the cell that is then stored.

    If another browser has changed the source since, the new source is left out. A title replaces any other: it says
    nothing about the source that a browser has seen.

    Raises:
        ScratchCellNotFound: the learner has no such cell; another browser may have deleted it.
        CodeTooLong, InvalidCode, TextTooLong, TextInvalid, ScratchCellsTooLarge: it cannot be stored.
    """
    learner = await _lock(session, learner)
    before = await list_scratch_cells(session, learner, lesson)
    if all(cell.name != name for cell in before):
        raise ScratchCellNotFound
    size = _bytes(before)
    mine = update(ScratchCell).filter_by(learner_id=learner, lesson=lesson, name=name)
    if change.title is not None:
        await session.execute(mine.values(title=clean_title(change.title), updated_at=now()))
    if change.source is not None:
        check_code(change.source)
        seen = mine.filter_by(version=change.seen_version)
        await session.execute(seen.values(source=change.source, version=ScratchCell.version + 1, updated_at=now()))
    session.expire_all()
    page = await list_scratch_cells(session, learner, lesson)
    if _bytes(page) > max(MAX_PAGE_BYTES, size):  # a visitor may have brought more, which can be shortened step by step
        raise ScratchCellsTooLarge(most_bytes=MAX_PAGE_BYTES)
    return next(cell for cell in page if cell.name == name)


async def move_scratch_cell(session: AsyncSession, learner: str, lesson: Lesson, name: str, after: str) -> None:
    """Move a cell after a cell of the lesson or another scratch cell; empty means the start of the page.

    Raises ScratchCellNotFound.
    """
    learner = await _lock(session, learner)
    there = list(await list_scratch_cells(session, learner, lesson.key))
    moved = next((cell for cell in there if cell.name == name), None)
    if moved is None:
        raise ScratchCellNotFound
    there.remove(moved)
    anchor, index = _place(there, lesson, after)
    siblings = [cell for cell in there if cell.anchor == anchor]
    siblings.insert(index, moved)
    _number(siblings, anchor)
    await session.flush()


async def delete_scratch_cell(session: AsyncSession, learner: str, lesson: str, name: str) -> None:
    """Delete a cell, if it is there. Its runs stay, so that undoing this shows its output again."""
    learner = await _lock(session, learner)
    await session.execute(delete(ScratchCell).filter_by(learner_id=learner, lesson=lesson, name=name))


async def delete_scratch_cells(session: AsyncSession, learner: str, lesson: str) -> None:
    """Delete all cells that the learner has added to a page. Their runs stay, too."""
    learner = await _lock(session, learner)
    await session.execute(delete(ScratchCell).filter_by(learner_id=learner, lesson=lesson))


def check_cell_count(count: int) -> None:
    """Raise TooManyScratchCells if no page can have so many cells."""
    if count > MAX_CELLS_PER_PAGE:
        raise TooManyScratchCells(most=MAX_CELLS_PER_PAGE)


def clean_title(title: str) -> str:
    """The title to store, in one line; may be empty. Raises TextTooLong or TextInvalid."""
    try:
        return " ".join(clean_text(title, MAX_TITLE_LENGTH).split())
    except TextEmpty:
        return ""


def _make_cell(learner: str, lesson: str, new: NewCell) -> ScratchCell:
    check_code(new.source)
    at = now()
    return ScratchCell(
        learner_id=learner,
        lesson=lesson,
        name=new.name if is_scratch_name(new.name) else new_scratch_name(),
        kind=new.kind,
        title=clean_title(new.title),
        source=new.source,
        anchor="",
        position=0,
        version=1,
        created_at=at,
        updated_at=at,
    )


async def _check_room(
    session: AsyncSession, learner: str, there: Sequence[ScratchCell], added: Sequence[ScratchCell]
) -> None:
    check_cell_count(len(there) + len(added))
    if _bytes([*there, *added]) > MAX_PAGE_BYTES:
        raise ScratchCellsTooLarge(most_bytes=MAX_PAGE_BYTES)
    mine = select(func.count()).select_from(ScratchCell).where(ScratchCell.learner_id == learner)
    if (await session.scalar(mine) or 0) + len(added) > MAX_CELLS_PER_LEARNER:
        raise TooManyScratchCells(most=MAX_CELLS_PER_LEARNER)


def _place(there: Sequence[ScratchCell], lesson: Lesson, after: str | None) -> tuple[str, int]:
    """The anchor and the position of what follows the cell named ``after``."""
    if after is None:
        anchor = lesson.shown_cells[-1].name if lesson.shown_cells else ""
        return anchor, sum(cell.anchor == anchor for cell in there)
    neighbor = next((cell for cell in there if cell.name == after), None)
    if neighbor is None:
        cell = lesson.cell(after)
        return (cell.name if cell is not None else ""), 0
    siblings = [cell for cell in there if cell.anchor == neighbor.anchor]
    return neighbor.anchor, siblings.index(neighbor) + 1


def _number(siblings: Sequence[ScratchCell], anchor: str) -> None:
    for position, cell in enumerate(siblings):
        cell.anchor, cell.position = anchor, position


def _bytes(cells: Sequence[ScratchCell]) -> int:
    return sum(len(cell.source.encode()) for cell in cells)


async def _lock(session: AsyncSession, learner: str) -> str:
    """Change a learner's cells one request at a time. Returns the current ID of the learner."""
    await advisory_lock(session, f"scratch cells of {learner}")
    heir = await resolve_learner_id(session, learner)
    if heir != learner:
        await advisory_lock(session, f"scratch cells of {heir}")
    return heir
