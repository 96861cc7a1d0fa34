"""Finds the account and the auth session of a browser, with facts about the viewer, in one query.

It runs for every request of a signed-in browser, so the objects are built from the row without the ORM's machinery.
They are detached, like any object whose database session is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import BindParameter, Dialect, ScalarSelect, String, bindparam, select
from sqlalchemy.orm import make_transient_to_detached
from sqlalchemy.sql import visitors

from app.accounts.models import Account, AuthSession
from app.accounts.page_pieces import ACCOUNT_ID, LEARNER_ID
from app.db import Base, Database, UtcDateTime
from app.prepared_query import PreparedQuery, Row

B = TypeVar("B", bound=Base)


@dataclass(frozen=True, slots=True)
class FoundPrincipal:
    """What the query found. ``facts`` are in the order of the query's."""

    account: Account
    auth_session: AuthSession
    facts: Row


class PrincipalQuery:
    """The query, with ``facts`` about the account's learner."""

    def __init__(self, facts: Sequence[ScalarSelect[Any]] = ()) -> None:
        self._account, self._session = _Builder(Account), _Builder(AuthSession)
        viewer = (
            select(*self._account.columns(), *self._session.columns())
            .join(AuthSession, AuthSession.account_id == Account.id)
            .where(
                AuthSession.token_hash == bindparam("token", type_=String),
                AuthSession.expires_at > bindparam("at", type_=UtcDateTime()),
                Account.disabled_at.is_(None),
            )
            .cte("viewer")
        )
        ids = {LEARNER_ID.key: viewer.c.accounts_learner_id, ACCOUNT_ID.key: viewer.c.accounts_id}

        def of_viewer(element: Any, **_: Any) -> Any:
            return ids.get(element.key) if isinstance(element, BindParameter) else None

        known = [
            visitors.replacement_traverse(fact, {}, of_viewer).label(f"fact_{number}")
            for number, fact in enumerate(facts)
        ]
        self._query = PreparedQuery(select(viewer, *known))

    async def row(self, db: Database, token_hash: str, at: datetime) -> Row | None:
        """The row about the viewer to whom the session token belongs at that time."""
        rows = await self._query.read(db, token=token_hash, at=at)
        return rows[0] if rows else None

    def build(self, row: Row, dialect: Dialect) -> FoundPrincipal:
        """Objects of a row, as if they had been loaded."""
        middle, end = self._account.width, self._account.width + self._session.width
        account = self._account.build(row[:middle], dialect)
        return FoundPrincipal(account, self._session.build(row[middle:end], dialect), row[end:])


class _Builder:
    """Builds objects of one table from what a driver returns."""

    def __init__(self, table: type[B]) -> None:
        self._table = table
        self._names = [attribute.key for attribute in table.__mapper__.column_attrs]
        self._converters: dict[str, list[tuple[str, Any]]] = {}
        self.width = len(self._names)

    def columns(self) -> list[Any]:
        """Their columns, each with a name of its own."""
        name = self._table.__tablename__
        return [getattr(self._table, each).label(f"{name}_{each}") for each in self._names]

    def build(self, row: Row, dialect: Dialect) -> Any:
        """The object, as if it had been loaded."""
        if (converters := self._converters.get(dialect.name)) is None:
            types = [getattr(self._table, name).type.dialect_impl(dialect) for name in self._names]
            converters = self._converters[dialect.name] = [
                (name, each.result_processor(dialect, None)) for name, each in zip(self._names, types, strict=True)
            ]
        built = self._table()
        for (name, convert), value in zip(converters, row, strict=True):
            built.__dict__[name] = value if convert is None else convert(value)
        make_transient_to_detached(built)
        return built
