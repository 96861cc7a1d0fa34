"""Operations on runs in SQL, one function each. They flush; the caller commits."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from app.accounts.merge import resolve_learner_id
from app.db import advisory_lock, now
from app.lessons.model import Cell, Lesson
from app.runs.errors import CodeTooLong, InvalidCode, RunNotFound, TooManyRuns
from app.runs.machines import Machine
from app.runs.models import RUN_ROW_BYTES, Run, RunEvent, RunState
from runners.wire.protocol import EVENT_ADAPTER, MAX_CODE_BYTES, DisplayEvent, Judgement, RunRequest, SessionSpec

_RUN_ID = re.compile(r"[0-9a-z]{1,64}")
"""IDs that every database accepts in a query."""
_UNREADABLE = re.compile("[\0\ud800-\udfff]")
_OWNER_LENGTH = 32
_AFTER_HEXADECIMAL = "g"


def session_id(learner: str, lesson: str, machine: Machine) -> str:
    """The ID of a session at the supervisor. All cells of a lesson on the same machine share a session."""
    words = f"{learner}\n{lesson}\n{machine.topology}\n{machine.keras}"
    return hashlib.sha256(words.encode()).hexdigest()[:40]


def session_owner(learner: str) -> str:
    """The learner in requests to the supervisor: the ID is cut, so that the runner never has all of it."""
    return learner[:_OWNER_LENGTH]


def learner_of_owner(column: InstrumentedAttribute[str], owner: str) -> ColumnElement[bool]:
    """Whether a column has the ID of the learner behind ``owner``, as a range that an index can find."""
    return and_(column >= owner, column < owner + _AFTER_HEXADECIMAL)


def session_spec(learner: str, machine: Machine) -> SessionSpec:
    """The session to request from the supervisor."""
    return SessionSpec(owner=session_owner(learner), topology=machine.topology, keras=machine.keras)


def run_request(run: Run, judgement: Judgement | None = None) -> RunRequest:
    """The run in the form that the supervisor expects, with the data to judge it if it is a judgement."""
    spec = session_spec(run.learner_id, Machine.of(run.topology, run.keras))
    return RunRequest(id=run.id, session=run.session_id, spec=spec, code=run.code, judgement=judgement)


async def start_run(
    session: AsyncSession,
    learner: str,
    lesson: Lesson,
    cell: Cell,
    machine: Machine,
    code: str,
    max_unfinished: int,
    *,
    judgement: bool = False,
    followed_until: datetime | None = None,
) -> Run:
    """Store a new run. A judgement has its own session, which no other run uses.

    ``followed_until`` is when another process may adopt the run, if it is not followed by then.

    Raises:
        CodeTooLong, InvalidCode: the code cannot be run.
        TooManyRuns: the learner already has ``max_unfinished`` unfinished runs.
    """
    check_code(code)
    await advisory_lock(session, f"runs of {learner}")
    run_id = _new_id()
    run = Run(
        id=run_id,
        learner_id=learner,
        session_id=run_id if judgement else session_id(learner, lesson.key, machine),
        lesson=lesson.key,
        cell=cell.name,
        code=code,
        topology=machine.topology,
        keras=machine.keras,
        language=lesson.language,
        created_at=now(),
        followed_until=followed_until,
        judgement=judgement,
        state=RunState.queued,
        last_seq=0,
        stored_bytes=RUN_ROW_BYTES + len(code.encode()),
    )
    session.add(run)
    await session.flush()
    if (heir := await resolve_learner_id(session, learner)) != learner:  # merged into an account during this request
        run.learner_id = heir
        run.session_id = run_id if judgement else session_id(heir, lesson.key, machine)
        await session.flush()
    # Counted after the insert: before it, two web processes could both see room for one more.
    if await _count_unfinished(session, run.learner_id) > max_unfinished:
        raise TooManyRuns(most=max_unfinished)
    return run


def check_code(code: str) -> None:
    """Reject code that cannot be run before it is stored. Raises CodeTooLong or InvalidCode."""
    size = len(code.encode("utf-8", "surrogatepass"))
    if size > MAX_CODE_BYTES:
        raise CodeTooLong(size=size, most_bytes=MAX_CODE_BYTES)
    if _UNREADABLE.search(code):
        raise InvalidCode(reason="")


async def withdraw_run(session: AsyncSession, run_id: str) -> None:
    """Delete a run that never reached the supervisor."""
    await session.execute(delete(Run).where(Run.id == run_id, Run.last_seq == 0))


async def get_run(session: AsyncSession, learner: str | None, run_id: str) -> Run:
    """The learner's run with this ID.

    Raises:
        RunNotFound: it does not exist, or it is another learner's.
    """
    run = await session.get(Run, run_id) if learner and _RUN_ID.fullmatch(run_id) else None
    if run is None or run.learner_id != learner:
        raise RunNotFound
    return run


async def latest_runs(session: AsyncSession, learner: str, lesson: str, *, judgements: bool = False) -> Sequence[Run]:
    """The learner's latest run of each cell of a lesson, and every unfinished one, in order of submission.

    Judgements are not among them; with ``judgements``, there are only judgements.
    """
    place = func.row_number().over(partition_by=Run.cell, order_by=(Run.created_at.desc(), Run.id.desc()))
    mine = (Run.learner_id == learner, Run.lesson == lesson, Run.judgement.is_(judgements))
    ranked = select(Run.id, Run.state, place.label("place")).where(*mine).subquery()
    wanted = select(ranked.c.id).where((ranked.c.place == 1) | (ranked.c.state != RunState.finished))
    runs = select(Run).where(Run.id.in_(wanted)).order_by(Run.created_at, Run.id)
    return (await session.scalars(runs)).all()


async def load_runs_before(session: AsyncSession, learner: str, lesson: str, run_id: str, most: int) -> Sequence[Run]:
    """At most this many runs and judgements of a learner, the newest first, in one lesson or in all.

    With ``run_id``, they are those before the run with this ID: IDs are ordered by time.
    """
    mine = select(Run).where(Run.learner_id == learner)
    if lesson:
        mine = mine.where(Run.lesson == lesson)
    if run_id:
        mine = mine.where(Run.id < run_id)
    return (await session.scalars(mine.order_by(Run.id.desc()).limit(most))).all()


async def has_run(session: AsyncSession, learner: str, lesson: str) -> bool:
    """Whether the learner has a run of the lesson that was started. Judgements do not count."""
    mine = (Run.learner_id == learner, Run.lesson == lesson, Run.started_at.is_not(None), Run.judgement.is_(False))
    return (await session.scalar(select(Run.id).where(*mine).limit(1))) is not None


async def count_runs_ahead(session: AsyncSession, run: Run) -> int:
    """How many unfinished runs of the same session are ahead of this one."""
    if run.finished:
        return 0
    earlier = select(func.count()).where(
        Run.session_id == run.session_id,
        Run.state != RunState.finished,
        (Run.created_at < run.created_at) | ((Run.created_at == run.created_at) & (Run.id < run.id)),
    )
    return (await session.scalar(earlier)) or 0


async def display_data(session: AsyncSession, run_id: str, seq: int) -> dict[str, Any]:
    """What a display event holds, by media type; nothing if the event is of another kind."""
    stored = await session.get(RunEvent, (run_id, seq))
    event = EVENT_ADAPTER.validate_json(stored.payload) if stored is not None and stored.kind == "display" else None
    return event.data if isinstance(event, DisplayEvent) else {}


async def _count_unfinished(session: AsyncSession, learner: str) -> int:
    mine = select(func.count()).where(Run.learner_id == learner, Run.state != RunState.finished)
    return (await session.scalar(mine)) or 0


def _new_id() -> str:
    """Unguessable, and ordered by time, so that indexes grow at their end."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(16)}"
