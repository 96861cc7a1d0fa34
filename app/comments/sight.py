"""Who sees a comment, and what they may do with it. Pure; ``listing`` has the same rules as SQL."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from sqlalchemy import ColumnElement, and_, bindparam, or_

from app.accounts.models import Account, Role
from app.comments.models import Comment, State


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whoever looks: nobody known, an account, an instructor's account."""

    account_id: str | None
    instructor: bool

    @classmethod
    def of(cls, account: Account | None) -> Self:
        """The viewer that an account is."""
        if account is None:
            return cls(None, False)
        return cls(account.id, account.role in (Role.instructor, Role.admin))


class May(StrEnum):
    """What can be done with a comment."""

    reply = "reply"
    react = "react"
    edit = "edit"
    delete = "delete"
    report = "report"
    history = "history"
    pin = "pin"
    answer = "answer"
    hide = "hide"
    show = "show"
    dismiss = "dismiss"


def can_see(comment: Comment, viewer: Viewer) -> bool:
    """Whether the comment, or the stub of it, is there for this viewer."""
    if comment.state == State.shown or comment.replies > 0:
        return True
    if comment.state == State.deleted:
        return False
    return viewer.instructor or _is_author(comment, viewer)


def can_read(comment: Comment, viewer: Viewer) -> bool:
    """Whether this viewer may read its text: of a stub nobody else may."""
    if comment.state == State.deleted:
        return False
    return comment.state == State.shown or viewer.instructor or _is_author(comment, viewer)


def seen_by(viewer: Viewer) -> ColumnElement[bool]:
    """``can_see`` as a condition; the id of who looks is its parameter ``viewer``."""
    alive = Comment.state != State.deleted
    conditions = [Comment.state == State.shown, Comment.replies > 0]
    if viewer.instructor:
        conditions.append(alive)
    elif viewer.account_id is not None:
        conditions.append(and_(alive, Comment.author_id == bindparam("viewer", viewer.account_id)))
    return or_(*conditions)


def may(comment: Comment, viewer: Viewer) -> frozenset[May]:
    """What this viewer may do."""
    if not can_read(comment, viewer):
        return frozenset()
    mine, shown, root = _is_author(comment, viewer), comment.state == State.shown, comment.thread_id is None
    known = viewer.account_id is not None
    allowed = {
        May.reply: shown,
        May.react: shown and known and not mine,
        May.edit: mine,
        May.delete: mine,
        May.report: shown and known and not mine and not viewer.instructor,
        May.history: comment.edits > 0 and (mine or viewer.instructor),
        May.pin: viewer.instructor and shown and root,
        May.answer: viewer.instructor and shown and not root,
        May.hide: viewer.instructor and comment.state != State.hidden,
        May.show: viewer.instructor and not shown,
        May.dismiss: viewer.instructor and comment.reports > 0,
    }
    return frozenset(verb for verb, right in allowed.items() if right)


def _is_author(comment: Comment, viewer: Viewer) -> bool:
    return viewer.account_id is not None and comment.author_id == viewer.account_id
