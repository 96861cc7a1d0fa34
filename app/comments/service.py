"""What can be done with comments: one function per verb. They flush; the caller commits.

Whoever asks comes as a ``Viewer`` or as an Account; whether they may is decided in ``sight``. Counters (the comments
of a place, the replies of a thread, reactions, reports) change here only, with what they count.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app import i18n
from app.accounts.models import Account, Role
from app.comments import markdown, pace
from app.comments.errors import (
    ChangedMeanwhile,
    CommentUnknown,
    EditedTooOften,
    NotYourOwn,
    NotYours,
    ReportedTooOften,
    ThreadClosed,
    TooFast,
    WriteFirst,
)
from app.comments.models import Comment, CommentReaction, Place, Reaction, Report, State, Version
from app.comments.sight import Viewer, can_see
from app.db import Base, growing_id, insert_into, now, one_at_a_time
from app.notifications.models import Kind
from app.notifications.service import notify, withdraw
from app.progress.facts import Fact
from app.progress.ledger import Ledger
from app.web.text import tidy

MOST_CHARACTERS = 10_000
HELPFUL_XP = 20
"""For the first comment of an account that helped somebody."""
MOST_EDITS = 50
MOST_REASON = 500
MOST_REPORTS = 20
"""Of one account within a day."""
_A_DAY = timedelta(days=1)
_AGAIN = timedelta(minutes=10)
"""For so long the same words of one author at one place are the same comment."""
_LATEST = 10
_MOST_TOLD = 200
"""Of the latest replies of a thread, whose authors are told of a new one."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody wants to say. ``key`` comes from the form and is the same when it is sent twice."""

    lesson: str
    cell: str
    thread_id: str | None
    text: str
    key: str
    language: str


class Why(StrEnum):
    """Why somebody is told of a comment."""

    mention = "mention"
    reply = "reply"


@dataclass(frozen=True, slots=True)
class Told:
    """Somebody who is told of a new comment."""

    account_id: str
    why: Why


async def get(session: AsyncSession, viewer: Viewer, comment_id: str) -> Comment:
    """The comment.

    Raises:
        CommentUnknown: there is none of that id that this viewer may see.
    """
    comment = await session.get(Comment, comment_id) if comment_id.isascii() and "\0" not in comment_id else None
    if comment is None or not can_see(comment, viewer):
        raise CommentUnknown
    return comment


async def write(session: AsyncSession, author: Account, draft: Draft, hold_first: int = 0) -> Comment:
    """Store a comment, or find the one that the same form has stored already.

    Raises:
        TextEmpty, TextTooLong, NotText: the text cannot be kept.
        TooFast: the author has written too much lately.
        CommentUnknown, ThreadClosed: it answers what is not there.
    """
    text = tidy(draft.text, MOST_CHARACTERS)
    await one_at_a_time(session, f"comments of {author.id}")
    key = _key(draft, text)
    if (before := await _of_key(session, author, key)) is not None:
        return before
    if (again := await _said_again(session, author, draft, text)) is not None:
        return again
    lesson, cell = draft.lesson, draft.cell
    if draft.thread_id is not None:
        root = await get(session, Viewer.of(author), draft.thread_id)
        if root.thread_id is not None or root.state != State.shown:
            raise ThreadClosed
        lesson, cell = root.lesson, root.cell
    await _check_pace(session, author)
    await _alone_at(session, lesson, cell)
    values = {
        "id": growing_id(),
        "lesson": lesson,
        "cell": cell,
        "thread_id": draft.thread_id,
        "author_id": author.id,
        "key": key,
        "source": text,
        "html": await _html(session, text),
        "renderer": markdown.VERSION,
        "language": draft.language,
        "state": State.held if await _waits(session, author, hold_first) else State.shown,
        "created_at": now(),
    }
    added = await _add_once(session, Comment, values)
    comment = await _of_key(session, author, key)
    if comment is None:
        raise CommentUnknown
    if added and comment.state == State.shown:
        await _count(session, comment, 1)
        await _tell(session, comment)
    return comment


async def change(session: AsyncSession, author: Account, comment_id: str, text: str, edits: int) -> Comment:
    """Replace the text; the one before is kept as a version. ``edits`` is how often it was changed when it was read.

    Raises:
        ChangedMeanwhile: it says something else by now.
    """
    comment = await _own(session, author, comment_id)
    text = tidy(text, MOST_CHARACTERS)
    if text == comment.source:
        return comment
    if edits != comment.edits:
        raise ChangedMeanwhile
    if comment.edits >= MOST_EDITS:
        raise EditedTooOften(most=MOST_EDITS)
    version = Version(
        comment_id=comment.id,
        number=comment.edits,
        source=comment.source,
        written_at=comment.edited_at or comment.created_at,
    )
    changed = await session.execute(
        update(Comment)
        .where(Comment.id == comment.id, Comment.edits == edits)
        .values(
            source=text,
            html=await _html(session, text),
            renderer=markdown.VERSION,
            edits=edits + 1,
            edited_at=now(),
        )
        .execution_options(synchronize_session=False)
    )
    if _rows(changed) != 1:
        raise ChangedMeanwhile
    session.add(version)
    await session.flush()
    await session.refresh(comment)
    return comment


async def remove(session: AsyncSession, author: Account, comment_id: str) -> Comment:
    """Take a comment back: its text and what it said before are gone; a stub stays where others have answered."""
    comment = await _own(session, author, comment_id)
    await _move(
        session, comment, State.deleted, source="", html="", pinned=False, helpful=0, same=0, thanks=0, reports=0
    )
    for table in (Version, CommentReaction, Report):
        await session.execute(delete(table).where(table.comment_id == comment.id))
    await withdraw(session, comment.id)
    if comment.thread_id is not None:
        answered = (Comment.id == comment.thread_id, Comment.answer_id == comment.id)
        await session.execute(update(Comment).where(*answered).values(answer_id=None))
    return comment


async def react(session: AsyncSession, account: Account, comment_id: str, kind: Reaction, *, on: bool) -> Comment:
    """Add a reaction or take it back; twice is once."""
    comment = await get(session, Viewer.of(account), comment_id)
    if comment.state != State.shown:
        raise CommentUnknown
    if comment.author_id == account.id:
        raise NotYourOwn
    own = {"comment_id": comment.id, "account_id": account.id, "kind": kind}
    if on:
        changed = int(await _add_once(session, CommentReaction, {**own, "at": now()}))
    else:
        changed = -_rows(await session.execute(delete(CommentReaction).filter_by(**own)))
    if changed:
        await _add(session, Comment, comment.id, **{kind: changed})
        await session.refresh(comment)
    return comment


async def report(session: AsyncSession, account: Account, comment_id: str, reason: str) -> Comment:
    """Tell the instructors that something is wrong with a comment; a second report takes the place of one's first."""
    comment = await get(session, Viewer.of(account), comment_id)
    if comment.author_id == account.id:
        raise NotYourOwn
    if comment.state != State.shown:
        raise CommentUnknown
    reason = _reason(reason)
    lately = select(Report.comment_id).where(Report.account_id == account.id, Report.at > now() - _A_DAY)
    if len((await session.scalars(lately.limit(MOST_REPORTS))).all()) == MOST_REPORTS:
        raise ReportedTooOften(most=MOST_REPORTS)
    own = {"comment_id": comment.id, "account_id": account.id}
    if await _add_once(session, Report, {**own, "reason": reason, "at": now(), "settled": False}):
        await _add(session, Comment, comment.id, reports=1)
    else:
        await session.execute(update(Report).filter_by(**own).values(reason=reason, at=now()))
    return comment


# --- for instructors --------------------------------------------------------------------------------------------------


async def pin(session: AsyncSession, instructor: Account, comment_id: str, *, on: bool) -> Comment:
    """Keep a thread on top of its list, or no longer."""
    comment = await get(session, Viewer.of(instructor), comment_id)
    if comment.thread_id is not None or comment.state != State.shown:
        raise CommentUnknown
    comment.pinned = on
    await session.flush()
    return comment


async def answer(session: AsyncSession, instructor: Account, comment_id: str, *, on: bool) -> Comment:
    """Say that a reply answers what began its thread, or no longer."""
    comment = await get(session, Viewer.of(instructor), comment_id)
    if comment.thread_id is None or comment.state != State.shown:
        raise CommentUnknown
    root = await session.get_one(Comment, comment.thread_id)
    root.answer_id = comment.id if on else None
    await session.flush()
    if on and root.author_id not in (None, comment.author_id):
        await notify(session, [root.author_id], Kind.answered, comment.id, instructor.id)
    return comment


async def hide(session: AsyncSession, instructor: Account, comment_id: str, reason: str) -> Comment:
    """Take a comment out of sight; its author can read why. Its reports are settled."""
    comment = await get(session, Viewer.of(instructor), comment_id)
    await _move(session, comment, State.hidden, reason=_reason(reason), pinned=False, **_by(instructor))
    await _settle(session, comment)
    return comment


async def show(session: AsyncSession, instructor: Account, comment_id: str) -> Comment:
    """Approve a comment that was held, or bring a hidden one back."""
    comment = await get(session, Viewer.of(instructor), comment_id)
    if comment.state in (State.held, State.hidden):
        await _move(session, comment, State.shown, reason="", **_by(instructor))
        await _tell(session, comment)
    return comment


async def dismiss(session: AsyncSession, instructor: Account, comment_id: str) -> Comment:
    """Nothing is wrong with it: its reports are settled."""
    comment = await get(session, Viewer.of(instructor), comment_id)
    await _settle(session, comment)
    return comment


# --- others -----------------------------------------------------------------------------------------------------------


async def told_of(session: AsyncSession, comment: Comment) -> list[Told]:
    """Who is told of a new comment: whom it mentions, and who wrote in its thread; each once, never its author."""
    mentioned = await _known(session, markdown.mentioned(comment.source))
    told = dict.fromkeys(mentioned.values(), Why.mention)
    if comment.thread_id is not None:
        wrote = select(Comment.author_id).where(Comment.thread_id == comment.thread_id, Comment.state == State.shown)
        latest = await session.scalars(wrote.order_by(Comment.id.desc()).limit(_MOST_TOLD))
        began = await session.scalar(select(Comment.author_id).where(Comment.id == comment.thread_id))
        for account_id in filter(None, (began, *latest)):
            told.setdefault(account_id, Why.reply)
    told.pop(comment.author_id or "", None)
    return [Told(account_id, why) for account_id, why in told.items()]


async def honour(session: AsyncSession, ledger: Ledger, comment: Comment) -> str | None:
    """Enter into the ledger that somebody else found a comment helpful, or that it answers a question.

    Returns:
        the learner it was awarded to; None if it was not the first time, or the author's account is gone.
    """
    author = await session.get(Account, comment.author_id) if comment.author_id else None
    if author is None:
        return None
    awarded = await ledger.award(session, author.learner_id, [Fact("helpful", "first", HELPFUL_XP)])
    return awarded.learner_id if awarded.entries else None


async def refresh_html(session: AsyncSession, comments: Iterable[Comment]) -> None:
    """Render anew what an earlier renderer made; nothing is stored unless the caller commits."""
    for comment in comments:
        if comment.renderer != markdown.VERSION:
            comment.html = await _html(session, comment.source)
            comment.renderer = markdown.VERSION


# --- beneath ----------------------------------------------------------------------------------------------------------


def _key(draft: Draft, text: str) -> str:
    """Another text from the same form, as after the browser's back button, is another comment."""
    parts = (draft.key or secrets.token_hex(16), draft.lesson, draft.cell, draft.thread_id or "", text)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()


async def _of_key(session: AsyncSession, author: Account, key: str) -> Comment | None:
    return await session.scalar(select(Comment).where(Comment.author_id == author.id, Comment.key == key))


async def _said_again(session: AsyncSession, author: Account, draft: Draft, text: str) -> Comment | None:
    """The same words at the same place a moment ago: the back button shows the form anew, with another key."""
    lately = select(Comment).where(Comment.author_id == author.id).order_by(Comment.id.desc()).limit(_LATEST)
    for comment in await session.scalars(lately):
        same = comment.source == text and comment.thread_id == draft.thread_id and now() - comment.created_at < _AGAIN
        here = draft.thread_id is not None or (comment.lesson, comment.cell) == (draft.lesson, draft.cell)
        if same and here and comment.state != State.deleted:
            return comment
    return None


async def _own(session: AsyncSession, author: Account, comment_id: str) -> Comment:
    comment = await get(session, Viewer.of(author), comment_id)
    if comment.author_id != author.id:
        raise NotYours
    if comment.state == State.deleted:
        raise CommentUnknown
    return comment


async def _html(session: AsyncSession, text: str) -> str:
    return markdown.to_html(text, await _known(session, markdown.mentioned(text)))


async def _known(session: AsyncSession, handles: list[str]) -> dict[str, str]:
    """Those of the handles that are somebody's, with the account."""
    if not handles:
        return {}
    live = select(Account.handle, Account.id).where(Account.handle.in_(handles), Account.disabled_at.is_(None))
    return {row.handle: row.id for row in await session.execute(live)}


async def _check_pace(session: AsyncSession, author: Account) -> None:
    at = now()
    latest = select(Comment.created_at).where(Comment.author_id == author.id).order_by(Comment.id.desc())
    written = list(await session.scalars(latest.limit(pace.MOST_KNOWN)))
    wait = pace.wait(written, at, pace.rules_for(at - author.created_at))
    if wait:
        raise TooFast(wait=i18n.length(wait))


async def _waits(session: AsyncSession, author: Account, hold_first: int) -> bool:
    """Whether an instructor looks at it first: until ``hold_first`` of a learner's comments are in the open."""
    if not hold_first or author.role != Role.learner:
        return False
    shown = select(Comment.id).where(Comment.author_id == author.id, Comment.state == State.shown).limit(hold_first)
    return len((await session.scalars(shown)).all()) < hold_first


async def _move(session: AsyncSession, comment: Comment, to: State, **values: Any) -> None:
    """Give it another state, unless somebody else has meanwhile, and count."""
    await _alone_at(session, comment.lesson, comment.cell)
    await session.refresh(comment)
    was = comment.state
    still = update(Comment).where(Comment.id == comment.id, Comment.state == was)
    moved = await session.execute(still.values(state=to, **values).execution_options(synchronize_session=False))
    if _rows(moved):
        await _count(session, comment, (to == State.shown) - (was == State.shown))
    await session.refresh(comment)


async def _alone_at(session: AsyncSession, lesson: str, cell: str) -> None:
    """Counters of a place change one after the other: nobody waits for a row while holding the next."""
    await one_at_a_time(session, f"comments at {lesson}#{cell}")


async def _count(session: AsyncSession, comment: Comment, change: int) -> None:
    if not change:
        return
    place = {"lesson": comment.lesson, "cell": comment.cell}
    await _add_once(session, Place, {**place, "shown": 0})
    counted = update(Place).filter_by(**place).values(shown=Place.shown + change)
    await session.execute(counted.execution_options(synchronize_session=False))
    if comment.thread_id is not None:
        await _add(session, Comment, comment.thread_id, replies=change)


async def _tell(session: AsyncSession, comment: Comment) -> None:
    """Tell those who are told of a new comment."""
    told = await told_of(session, comment)
    for why in Why:
        of_these = [one.account_id for one in told if one.why is why]
        await notify(session, of_these, Kind(why), comment.id, comment.author_id)


async def _settle(session: AsyncSession, comment: Comment) -> None:
    await session.execute(update(Report).where(Report.comment_id == comment.id).values(settled=True))
    await session.execute(update(Comment).where(Comment.id == comment.id).values(reports=0))


async def _add(session: AsyncSession, table: type[Comment], comment_id: str, **changes: int) -> None:
    values = {name: getattr(table, name) + change for name, change in changes.items()}
    one = update(table).where(table.id == comment_id).values(**values)
    await session.execute(one.execution_options(synchronize_session=False))


async def _add_once(session: AsyncSession, table: type[Base], values: dict[str, Any]) -> bool:
    """Add a row unless one of its keys is taken: whether it was added."""
    return bool(_rows(await session.execute(insert_into(session, table).values(values).on_conflict_do_nothing())))


def _rows(result: Any) -> int:
    return int(result.rowcount)


def _reason(text: str) -> str:
    if not text.strip() or len(text) > MOST_REASON:
        raise WriteFirst(most=MOST_REASON)
    return tidy(text, MOST_REASON)


def _by(instructor: Account) -> dict[str, Any]:
    return {"moderated_by": instructor.id, "moderated_at": now()}
