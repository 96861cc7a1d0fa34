"""Who may see a comment, and what they may do with it. Pure; ``visible_to`` states the same rule in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from sqlalchemy import ColumnElement, and_, bindparam, or_

from app.accounts.models import Account, Role
from app.comments.models import Comment, CommentState


@dataclass(frozen=True, slots=True)
class Viewer:
    """The person who views a page: anonymous, signed in, or an instructor."""

    account_id: str | None
    instructor: bool

    @classmethod
    def of(cls, account: Account | None) -> Self:
        if account is None:
            return cls(None, False)
        return cls(account.id, account.role in (Role.instructor, Role.admin))


class Permission(StrEnum):
    """An action on a comment."""

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
    """Whether the viewer can see the comment or its stub."""
    if comment.state == CommentState.shown or comment.reply_count > 0:
        return True
    if comment.state == CommentState.deleted:
        return False
    return viewer.instructor or _is_author(comment, viewer)


def can_read(comment: Comment, viewer: Viewer) -> bool:
    """Whether the viewer can read the comment's text; only its author and instructors can if it is not shown."""
    if comment.state == CommentState.deleted:
        return False
    return comment.state == CommentState.shown or viewer.instructor or _is_author(comment, viewer)


def visible_to(viewer: Viewer) -> ColumnElement[bool]:
    """``can_see`` as an SQL condition, with the viewer's ID as the parameter ``viewer``."""
    alive = Comment.state != CommentState.deleted
    conditions = [Comment.state == CommentState.shown, Comment.reply_count > 0]
    if viewer.instructor:
        conditions.append(alive)
    elif viewer.account_id is not None:
        conditions.append(and_(alive, Comment.author_id == bindparam("viewer", viewer.account_id)))
    return or_(*conditions)


def permissions_for(comment: Comment, viewer: Viewer) -> frozenset[Permission]:
    if not can_read(comment, viewer):
        return frozenset()
    mine, shown, root = _is_author(comment, viewer), comment.state == CommentState.shown, comment.thread_id is None
    known = viewer.account_id is not None
    allowed = {
        Permission.reply: shown,
        Permission.react: shown and known and not mine,
        Permission.edit: mine,
        Permission.delete: mine,
        Permission.report: shown and known and not mine and not viewer.instructor,
        Permission.history: comment.edit_count > 0 and (mine or viewer.instructor),
        Permission.pin: viewer.instructor and shown and root,
        Permission.answer: viewer.instructor and shown and not root,
        Permission.hide: viewer.instructor and comment.state != CommentState.hidden,
        Permission.show: viewer.instructor and not shown,
        Permission.dismiss: viewer.instructor and comment.report_count > 0,
    }
    return frozenset(verb for verb, right in allowed.items() if right)


def _is_author(comment: Comment, viewer: Viewer) -> bool:
    return viewer.account_id is not None and comment.author_id == viewer.account_id
