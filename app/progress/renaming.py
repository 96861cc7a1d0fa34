"""The ledger and reading progress follow a lesson, a cell or a question that was renamed. Nothing is awarded twice."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import ColumnElement, and_, delete, exists, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.lessons.former_names import Rename
from app.progress import lesson_progress
from app.progress.models import LedgerEntry, LessonProgress

_LESSON_KINDS = ("lesson", "read", "revisit")
"""The kinds whose subject is a lesson. Other kinds have modules, which may be called like one."""
_QUIET = {"synchronize_session": False}


async def rename_progress(session: AsyncSession, rename: Rename) -> None:
    """Of two entries about the same thing, the earlier is kept."""
    if rename.name:
        before, after = f"{rename.former_lesson}#{rename.former_name}", f"{rename.lesson}#{rename.name}"
        await _rename_subjects(session, before, after, _is_about_cell)
        anchored = update(LessonProgress).where(
            LessonProgress.lesson == rename.former_lesson, LessonProgress.anchor == f"cell-{rename.former_name}"
        )
        await session.execute(anchored.values(anchor=f"cell-{rename.name}").execution_options(**_QUIET))
    else:
        await _rename_subjects(session, rename.former_lesson, rename.lesson, _is_about_lesson)
        await lesson_progress.rename_lesson(session, rename.former_lesson, rename.lesson)


def _is_about_lesson(lesson: str) -> ColumnElement[bool]:
    itself = and_(LedgerEntry.kind.in_(_LESSON_KINDS), LedgerEntry.subject == lesson)
    return or_(itself, LedgerEntry.subject.startswith(f"{lesson}#", autoescape=True))


def _is_about_cell(cell: str) -> ColumnElement[bool]:
    """About the cell or question itself, or one of its checks."""
    return or_(LedgerEntry.subject == cell, LedgerEntry.subject.startswith(f"{cell}/", autoescape=True))


async def _rename_subjects(
    session: AsyncSession, before: str, after: str, is_about: Callable[[str], ColumnElement[bool]]
) -> None:
    """Give the entries about ``before``, whose subjects begin with it, subjects that begin with ``after`` instead."""
    twin = aliased(LedgerEntry)
    same = (twin.learner_id == LedgerEntry.learner_id, twin.kind == LedgerEntry.kind)

    def beginning_with(name: str, instead_of: str) -> ColumnElement[str]:
        return literal(name).concat(func.substr(LedgerEntry.subject, len(instead_of) + 1))

    def twins(name: str, instead_of: str, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
        found = select(1).where(*same, twin.subject == beginning_with(name, instead_of), *conditions)
        return exists(found.correlate(LedgerEntry))

    earlier = twins(after, before, twin.occurred_at <= LedgerEntry.occurred_at)
    await session.execute(delete(LedgerEntry).where(is_about(before), earlier).execution_options(**_QUIET))
    await session.execute(delete(LedgerEntry).where(is_about(after), twins(before, after)).execution_options(**_QUIET))
    moved = update(LedgerEntry).where(is_about(before)).values(subject=beginning_with(after, before))
    await session.execute(moved.execution_options(**_QUIET))
