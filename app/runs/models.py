"""The tables of runs, their events, drafts of the code of cells, and the cells that learners add."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base, UtcDateTime

_UNPRUNED = text("pruned_at IS NULL")
JUDGED = text("judgement")
UNSUCCESSFUL = text("NOT judgement AND outcome NOT IN ('ok', 'interrupted', 'lost')")
"""Conditions of partial indexes. Queries must repeat them word for word, or the database does not use the index."""
RUN_ROW_BYTES = 1_000
"""The space of a run in the database apart from its code and events: its row and index entries."""
EVENT_ROW_BYTES = 150
"""The space of an event apart from its JSON. For short lines, that is more than the JSON itself."""


class RunState(StrEnum):
    queued = "queued"
    running = "running"
    finished = "finished"


class Run(Base):
    """One execution of one cell by one learner, or one judgement of a submission for it.

    The columns after ``state`` are derived from the events. ``last_seq`` is the number of the last stored event, and
    the lock of the log (see ``runs.event_log``).
    """

    __tablename__ = "runs"
    __table_args__ = (
        CheckConstraint("state IN ('queued', 'running', 'finished')", name="state_known"),
        CheckConstraint("(state = 'finished') = (outcome IS NOT NULL)", name="finished_has_outcome"),
        Index("ix_runs_learner_lesson", "learner_id", "lesson", "created_at"),
        Index("ix_runs_state", "state"),
        Index("ix_runs_session_id", "session_id"),
        Index("ix_runs_learner_stored", "learner_id", "stored_bytes"),
        Index("ix_runs_unpruned", "finished_at", sqlite_where=_UNPRUNED, postgresql_where=_UNPRUNED),
        # For groups: the tries at exercises, and what did not end well, without reading the other runs.
        Index(
            "ix_runs_judged",
            *("learner_id", "lesson", "cell", "created_at", "id"),
            sqlite_where=JUDGED,
            postgresql_where=JUDGED,
        ),
        Index(
            "ix_runs_unsuccessful",
            *("learner_id", "lesson", "cell", "outcome", "created_at"),
            sqlite_where=UNSUCCESSFUL,
            postgresql_where=UNSUCCESSFUL,
        ),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    learner_id: Mapped[str] = mapped_column(String(64))
    """A visitor's ID or an account's ``learner_id``."""
    session_id: Mapped[str] = mapped_column(String(64))
    lesson: Mapped[str] = mapped_column(String(200))
    """``course/slug``."""
    cell: Mapped[str] = mapped_column(String(100))
    code: Mapped[str] = mapped_column(Text)
    topology: Mapped[str] = mapped_column(String(64))
    keras: Mapped[int]
    language: Mapped[str] = mapped_column(String(8))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    submitted_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When the supervisor accepted the run; until then it is submitted again."""
    followed_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Until when a process follows the run, as far as we know. Then another adopts it (``runs.adoption``)."""

    judgement: Mapped[bool] = mapped_column(default=False)
    """Whether the code is a submission, which checks judge in separate sandboxes (``app.exercises``)."""
    state: Mapped[str] = mapped_column(String(16), default=RunState.queued)
    outcome: Mapped[str | None] = mapped_column(String(16))
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    first_output_ms: Mapped[int | None]
    duration_ms: Mapped[int | None]
    peak_bytes: Mapped[int | None] = mapped_column(BigInteger)
    last_seq: Mapped[int] = mapped_column(default=0)
    stored_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    """The run's size in the database: its row, code and events. Quotas count it (``runs.quotas``)."""
    pruned_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When its output was deleted (``runs.pruning``). A notice among its events says why."""

    @property
    def finished(self) -> bool:
        """True once no more events can follow."""
        return self.state == RunState.finished


class RunEvent(Base):
    """One event of a run. ``payload`` is the whole event as JSON, as on the wire (``protocol.EVENT_ADAPTER``)."""

    __tablename__ = "run_events"

    run_id: Mapped[str] = mapped_column(String(64), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(16))
    at_ms: Mapped[int] = mapped_column(BigInteger)
    payload: Mapped[str] = mapped_column(Text)


class CodeDraft(Base):
    """An account's edit of a cell, which its browsers share."""

    __tablename__ = "code_drafts"

    account_id: Mapped[str] = mapped_column(String(32), ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    cell: Mapped[str] = mapped_column(String(100), primary_key=True)
    code: Mapped[str | None] = mapped_column(Text)
    """None if the cell was reset: the code is the lesson's."""
    original_digest: Mapped[str] = mapped_column(String(16))
    """The browser's digest of the lesson's code that the draft was made from."""
    version: Mapped[int]
    """Counts the changes from 1. A browser can only replace the version that it has seen."""
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class ScratchCell(Base):
    """A cell that a learner has added to a page: to a lesson, or to the playground, which has no others."""

    __tablename__ = "scratch_cells"
    __table_args__ = (CheckConstraint("kind IN ('code', 'text')", name="kind_known"),)

    learner_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    """A visitor's ID or an account's ``learner_id``."""
    lesson: Mapped[str] = mapped_column(String(200), primary_key=True)
    """The key of the page: ``course/slug`` for a lesson."""
    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    kind: Mapped[str] = mapped_column(String(8))
    title: Mapped[str] = mapped_column(String(100), default="")
    source: Mapped[str] = mapped_column(Text)
    """Python or, if it is a text, Markdown."""
    anchor: Mapped[str] = mapped_column(String(100), default="")
    """The cell of the lesson that it follows; empty at the start of the page."""
    position: Mapped[int]
    """Counts the scratch cells after the same cell of the lesson from 0."""
    version: Mapped[int]
    """Counts the changes of the source from 1. A browser can only replace the source that it has seen."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
