"""A SELECT by the driver itself.

What SQLAlchemy does around a statement (a session, a transaction, the metadata of columns) takes several times as long
as a page's query. Errors are SQLAlchemy's, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Dialect
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine


@contextmanager
def raising_sqlalchemy_errors(dialect: Dialect, statement: str) -> Iterator[None]:
    """Turn errors of the driver into those of SQLAlchemy."""
    errors = dialect.loaded_dbapi.Error
    try:
        yield
    except errors as e:
        raise DBAPIError.instance(statement, None, e, errors, dialect=dialect) from e


async def read_directly(engine: AsyncEngine, statement: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """All rows, as asyncpg returns them, on a connection of SQLAlchemy's pool, outside a transaction.

    Raises:
        sqlalchemy.exc.DBAPIError: what the driver or the network reported.
        sqlalchemy.exc.TimeoutError: no connection became free.
    """
    with raising_sqlalchemy_errors(engine.dialect, statement):
        connection = await engine.raw_connection()
        driver: Any = connection.driver_connection
        try:
            return [tuple(row) for row in await driver.fetch(statement, *parameters)]
        except OSError as e:  # including timeouts: the connection's state is unknown
            connection.invalidate(e)
            raise OperationalError(statement, None, e) from e
        except Exception as e:
            adapted: Any = connection.dbapi_connection
            adapted._handle_exception(e)  # raises what SQLAlchemy's driver would
            raise
        finally:
            connection.close()
