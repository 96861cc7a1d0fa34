"""Queries on the hottest paths, compiled once.

For each execution, SQLAlchemy would otherwise derive a cache key from the whole statement, which takes longer than the
database needs for a page's query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import BindParameter, Dialect, bindparam
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session
from sqlalchemy.sql import visitors
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.selectable import SelectBase

from app.db import Database

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter in its position: its name, its value if none is given, and how its type converts a value."""

    name: str
    default: Any
    convert: Callable[[Any], Any] | None

    def value(self, given: dict[str, Any]) -> Any:
        value = given.get(self.name, self.default)
        return value if self.convert is None else self.convert(value)


class PreparedQuery:
    """A query whose rows are plain tuples of what the driver returns: the types of columns convert nothing."""

    def __init__(self, query: SelectBase) -> None:
        self._query = cast(SelectBase, visitors.replacement_traverse(query, {}, _constant))
        self._compiled: dict[str, tuple[str, tuple[_Parameter, ...]]] = {}

    async def read(self, db: Database, **values: Any) -> list[Row]:
        """All rows, with these values of the query's parameters, in one trip to the database."""
        statement, parameters = self._compile(db.engine.dialect)
        return await db.read(statement, tuple([each.value(values) for each in parameters]))

    async def rows(self, session: AsyncSession, **values: Any) -> list[Row]:
        """The same in a session, which sees what it has written."""
        return await session.run_sync(self._rows, values)

    def _rows(self, session: Session, values: dict[str, Any]) -> list[Row]:
        connection = session.connection()
        statement, parameters = self._compile(connection.dialect)
        found = connection.exec_driver_sql(statement, tuple([each.value(values) for each in parameters]))
        return [tuple(row) for row in found]

    def _compile(self, dialect: Dialect) -> tuple[str, tuple[_Parameter, ...]]:
        if (known := self._compiled.get(dialect.name)) is None:
            compiled = self._query.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            assert isinstance(compiled, SQLCompiler)
            assert compiled.positiontup is not None, "the drivers number parameters"
            known = self._compiled[dialect.name] = (
                compiled.string,
                tuple(
                    _Parameter(
                        name,
                        compiled.params[name],
                        compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect),
                    )
                    for name in compiled.positiontup
                ),
            )
        return known


def _constant(element: Any, **_: Any) -> Any:
    """In place of a value that the code states, the same in the text: SQLite plans again for each parameter."""
    if not isinstance(element, BindParameter) or element.literal_execute:
        return None
    if element.unique:
        return element.render_literal_execute()
    return bindparam(element.key, element.value, type_=element.type)
