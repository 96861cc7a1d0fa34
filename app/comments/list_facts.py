"""Everything that the first page of a list of threads shows of its comments, without their text, in one query.

A list can be shown again to anyone who gets the facts that it was rendered from: they include what the viewer may see
and what of it is theirs. So no change has to announce itself, and any process may have made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, false, func, literal, null, select, union_all

from app.accounts.models import Account
from app.comments.models import PINNED, Comment, CommentCounter, CommentReaction, ReactionKind
from app.comments.permissions import Viewer, visible_to
from app.comments.queries import PREVIEW_REPLIES, THREADS_PER_PAGE
from app.db import Database
from app.prepared_query import PreparedQuery, Row

_COUNTER = "counter"
"""In place of a state: the row counts the comments of a cell."""
_AFTER_ALL_IDS = "z"


@dataclass(frozen=True, slots=True)
class ListFacts:
    """The facts of one list, for one viewer."""

    counts: Mapping[str, int]
    """Shown comments by cell of the lesson, as ``queries.count_by_cell`` returns them."""
    comments: frozenset[Row]
    """A row of facts for each comment that the list may show. Its text depends on nothing but the ID, the state, the
    number of edits and the version of the renderer."""


async def load_facts(db: Database, viewer: Viewer, lesson: str, cell: str) -> ListFacts:
    """The facts of the first page of threads about a lesson or a cell."""
    query = _facts_query(viewer.instructor, viewer.account_id is not None)
    rows = await query.read(db, lesson=lesson, cell=cell, viewer=viewer.account_id)
    counts = {row[0]: row[2] for row in rows if row[1] == _COUNTER}
    return ListFacts(counts, frozenset(row for row in rows if row[1] not in (_COUNTER, None)))


@lru_cache
def _facts_query(instructor: bool, known: bool) -> PreparedQuery:
    """The query for a kind of viewer. It reads no more of a long list or thread than the page can show."""
    seen = visible_to(Viewer("" if known else None, instructor))
    lesson = bindparam("lesson", type_=Comment.lesson.type)
    here = (Comment.lesson == lesson, Comment.cell == bindparam("cell", type_=Comment.cell.type))
    facts, written = _comment_facts(instructor, known), Account.id == Comment.author_id
    latest = select(*facts).outerjoin(Account, written).order_by(Comment.id.desc()).limit(THREADS_PER_PAGE + 1)
    pinned = latest.where(*here, PINNED).cte("pinned")
    others = latest.where(*here, Comment.thread_id.is_(None), seen, Comment.id.not_in(select(pinned.c.id)))
    listed = others.cte("others")
    roots = union_all(select(pinned.c.id), select(listed.c.id)).cte("roots")
    first_replies = select(Comment.id).where(Comment.thread_id == roots.c.id, seen).order_by(Comment.id)
    last_shown = first_replies.limit(1).offset(PREVIEW_REPLIES).correlate(roots).scalar_subquery()
    previews = select(roots.c.id, last_shown.label("last")).cte("previews")
    of_thread = (Comment.thread_id == previews.c.id, Comment.id <= func.coalesce(previews.c.last, _AFTER_ALL_IDS))
    # An outer join, so that SQLite begins with the few threads whatever it knows about the tables.
    replies = (
        select(*facts).select_from(previews).outerjoin(Comment, and_(*of_thread, seen)).outerjoin(Account, written)
    )
    return PreparedQuery(union_all(select(pinned), select(listed), replies, _counters(lesson, len(facts))))


def _comment_facts(instructor: bool, known: bool) -> list[ColumnElement[Any]]:
    """The columns. The first three are the ID, the state and the number of replies."""
    viewer = bindparam("viewer", type_=Comment.author_id.type)
    reacted = Comment.helpful_count + Comment.same_count + Comment.thanks_count > 0
    bits = {str(kind): 1 << number for number, kind in enumerate(ReactionKind)}
    own = select(func.sum(case(bits, value=CommentReaction.kind, else_=0))).where(
        CommentReaction.comment_id == Comment.id, CommentReaction.account_id == viewer
    )
    columns = (
        *(Comment.id, Comment.state, Comment.reply_count, Comment.edit_count, Comment.renderer_version),
        *(Comment.pinned, Comment.answer_id, Comment.helpful_count, Comment.same_count, Comment.thanks_count),
        *(Comment.reason, Account.name, Account.handle, Account.role),
    )
    return [
        *(column.expression for column in columns),
        (Comment.report_count.expression if instructor else literal(0)).label("reports"),
        (func.coalesce(Comment.author_id == viewer, false()) if known else false()).label("mine"),
        (case((reacted, own.correlate(Comment).scalar_subquery())) if known else null()).label("own_reactions"),
    ]


def _counters(lesson: ColumnElement[str], columns: int) -> Select[Any]:
    """A row for each cell of the lesson that has comments."""
    first: list[ColumnElement[Any]] = [
        CommentCounter.cell.expression,
        literal(_COUNTER),
        CommentCounter.comment_count.expression,
    ]
    counted = select(*first, *[null()] * (columns - len(first)))
    return counted.where(CommentCounter.lesson == lesson, CommentCounter.comment_count > 0)
