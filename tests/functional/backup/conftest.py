"""Sites to back up. Their database is a copy of one with rows in every table, which is made once per worker."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.accounts.signing import load_secrets
from app.db import Database
from app.settings import Settings
from tests.factories.course import write_course
from tests.factories.databases import postgresql_database
from tests.factories.filled_database import fill_every_table


@pytest.fixture(scope="session")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of SQLite with rows in every table, to copy."""
    path = tmp_path_factory.mktemp("filled") / "lockstep.db"
    asyncio.run(_fill(f"sqlite+aiosqlite:///{path}"))
    return path


@pytest.fixture(scope="session")
def filled_postgresql() -> Iterator[str]:
    """A database of PostgreSQL with rows in every table, to copy."""
    with postgresql_database() as url:
        asyncio.run(_fill(url))
        yield url


async def _fill(url: str) -> None:
    db = Database(url)
    await fill_every_table(db)
    await db.close()


@pytest.fixture
def database_kind(request: pytest.FixtureRequest) -> str:
    """SQLite, or what a test says with ``on_both_databases``."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest, database_kind: str) -> Iterator[Settings]:
    """The settings of a site with secrets, lessons, and rows in every table."""
    data = tmp_path / "data"
    load_secrets(data / "secrets" / "sign-in")
    load_secrets(data / "secrets" / "unsubscribe")
    lessons = write_course(tmp_path / "lessons")
    with ExitStack() as stack:
        if database_kind == "postgresql":
            template = request.getfixturevalue("filled_postgresql")
            url = stack.enter_context(postgresql_database(template))
        else:
            shutil.copy(request.getfixturevalue("filled_file"), data / "lockstep.db")
            url = f"sqlite+aiosqlite:///{data / 'lockstep.db'}"
        yield Settings(data_dir=data, lessons_dir=lessons, database_url=url)


@pytest.fixture
async def db(site: Settings) -> AsyncIterator[Database]:
    """The site's database."""
    db = Database(site.database)
    yield db
    await db.close()


@pytest.fixture
def new_site(tmp_path: Path) -> Settings:
    """The settings of a new site on SQLite, in folders that do not exist yet."""
    return Settings(data_dir=tmp_path / "new" / "data", lessons_dir=tmp_path / "new" / "lessons")


@pytest.fixture
def postgresql() -> Iterator[str]:
    """The URL of an empty database of PostgreSQL."""
    with postgresql_database() as url:
        yield url
