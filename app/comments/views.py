"""Comments as templates need them: with authors, the viewer's permissions, reactions and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, Role
from app.comments import queries
from app.comments.models import Comment, ReactionKind
from app.comments.permissions import Permission, Viewer, can_read, permissions_for
from app.comments.queries import CommentThread


@dataclass(frozen=True, slots=True)
class ReactionView:
    """One kind of reaction to a comment."""

    kind: ReactionKind
    count: int
    mine: bool


@dataclass(frozen=True, slots=True)
class CommentView:
    """A comment on a page. ``author`` is None if the account was deleted; ``readable`` is False for a stub."""

    comment: Comment
    author: Account | None
    mine: bool
    readable: bool
    may: frozenset[Permission]
    reactions: tuple[ReactionView, ...]
    reports: tuple[str, ...]
    is_answer: bool

    @property
    def html(self) -> Markup:
        """Its text, which was sanitized when it was stored."""
        return Markup(self.comment.html)  # noqa: S704 - comments.markdown cleaned it

    @property
    def more(self) -> bool:
        """Whether the viewer has permissions that not everybody has."""
        return bool(self.may - {Permission.reply, Permission.react, Permission.history})

    @property
    def by_instructor(self) -> bool:
        """Whether its author is an instructor or admin."""
        return self.author is not None and self.author.role != Role.learner


@dataclass(frozen=True, slots=True)
class ThreadView:
    """A thread on a page. ``after`` is the cursor of later replies; ``earlier``: there are earlier ones."""

    root: CommentView
    replies: tuple[CommentView, ...]
    earlier: bool
    after: str | None


async def comment_views(
    session: AsyncSession, viewer: Viewer, comments: Sequence[Comment], answers: Mapping[str, str | None] | None = None
) -> list[CommentView]:
    """The views of comments; ``answers`` gives the ID of each thread's answer."""
    authors = await queries.get_authors(session, comments)
    mine = await queries.get_own_reactions(session, viewer, comments)
    reports = await queries.get_open_report_reasons(session, comments) if viewer.instructor else {}
    return [
        CommentView(
            comment=comment,
            author=authors.get(comment.author_id or ""),
            mine=viewer.account_id is not None and comment.author_id == viewer.account_id,
            readable=can_read(comment, viewer),
            may=permissions_for(comment, viewer),
            reactions=tuple(
                ReactionView(kind, getattr(comment, kind.counter), (comment.id, kind) in mine) for kind in ReactionKind
            ),
            reports=tuple(reports.get(comment.id, ())),
            is_answer=(answers or {}).get(comment.root_id) == comment.id,
        )
        for comment in comments
    ]


async def thread_views(session: AsyncSession, viewer: Viewer, threads: Sequence[CommentThread]) -> list[ThreadView]:
    everything = [comment for thread in threads for comment in (thread.root, *thread.replies)]
    answers = {thread.root.id: thread.root.answer_id for thread in threads}
    views = {view.comment.id: view for view in await comment_views(session, viewer, everything, answers)}
    return [
        ThreadView(
            views[thread.root.id], tuple(views[reply.id] for reply in thread.replies), thread.earlier, thread.after
        )
        for thread in threads
    ]
