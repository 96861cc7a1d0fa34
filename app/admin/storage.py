"""How much the database holds, by kind and by learner, as cheaply as each database can say it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.db import Base
from app.runs.models import Run

MAX_LEARNERS = 20
"""The learners that store most."""
_MAX_COUNTED_BYTES = 1 << 30
"""SQLite reads a whole file to find out what its tables take: with a larger one, a page would take too long."""
_OTHER = "other"


@dataclass(frozen=True, slots=True)
class StoredKind:
    """What one feature's tables and their indexes take. ``kind`` is the name of the feature's package."""

    kind: str
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class StoredLearner:
    """What the runs of one learner take. The account is None for a visitor."""

    learner: str
    stored_bytes: int
    account_id: str | None
    handle: str | None


@dataclass(frozen=True, slots=True)
class StorageReport:
    """``kinds`` is empty for a SQLite file that is too large to be read for a page."""

    total_bytes: int
    kinds: Sequence[StoredKind]
    learners: Sequence[StoredLearner]


async def load_storage(session: AsyncSession) -> StorageReport:
    """The largest come first."""
    if session.get_bind().dialect.name == "postgresql":
        total = await session.scalar(text("SELECT pg_database_size(current_database())"))
        tables = await _postgresql_tables(session)
    else:
        total = await session.scalar(text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"))
        tables = await _sqlite_tables(session) if (total or 0) <= _MAX_COUNTED_BYTES else {}
    return StorageReport(int(total or 0), by_kind(tables), await _largest_learners(session))


def by_kind(tables: dict[str, int]) -> list[StoredKind]:
    """The sizes of tables added up by the package that has their models. Pure."""
    models = [(mapper.local_table.name, mapper.class_.__module__.split(".")) for mapper in Base.registry.mappers]  # type: ignore[attr-defined]
    kinds = {table: where[1] for table, where in models if where[-1] == "models"}
    sizes: dict[str, int] = defaultdict(int)
    for table, size in tables.items():
        sizes[kinds.get(table, _OTHER)] += size
    return sorted((StoredKind(kind, size) for kind, size in sizes.items()), key=lambda one: -one.stored_bytes)


async def _postgresql_tables(session: AsyncSession) -> dict[str, int]:
    """The sizes of tables with their indexes, which PostgreSQL knows without reading them."""
    sizes = text("SELECT relname, pg_total_relation_size(relid) AS size FROM pg_stat_user_tables")
    found = await session.execute(sizes)
    return {row.relname: row.size for row in found}


async def _sqlite_tables(session: AsyncSession) -> dict[str, int]:
    """The sizes of tables with their indexes; empty if this SQLite was built without ``dbstat``."""
    if await session.scalar(text("SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')")) != 1:
        return {}
    owners = text(
        "SELECT s.tbl_name AS name, sum(d.pgsize) AS size FROM dbstat d JOIN sqlite_schema s ON s.name = d.name "
        "WHERE d.aggregate = TRUE GROUP BY s.tbl_name"
    )
    return {row.name: row.size for row in await session.execute(owners)}


async def _largest_learners(session: AsyncSession) -> list[StoredLearner]:
    """Reads only an index of runs."""
    stored = func.sum(Run.stored_bytes)
    largest = select(Run.learner_id, stored.label("size")).group_by(Run.learner_id).order_by(stored.desc())
    rows = list(await session.execute(largest.limit(MAX_LEARNERS)))
    some = Account.learner_id.in_([row.learner_id for row in rows])
    found = await session.execute(select(Account.learner_id, Account.id, Account.handle).where(some))
    accounts = {row.learner_id: (row.id, row.handle) for row in found}
    nobody = (None, None)
    return [StoredLearner(row.learner_id, int(row.size or 0), *accounts.get(row.learner_id, nobody)) for row in rows]
