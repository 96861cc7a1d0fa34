"""The fixtures of most tests of the application: a course, a database, a scripted supervisor, a client."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import httpx
import hypothesis
import pytest
import structlog
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST
from fastapi import FastAPI

from app import migrate
from app.accounts import passwords
from app.db import Database, now
from app.main import create_app
from app.settings import Settings
from tests.factories.browser_client import browser_client
from tests.factories.course import write_course
from tests.factories.database_session_guard import SecondSession, allow_one_session_per_task
from tests.factories.databases import BACKENDS, delete_rows, drop_tables, postgresql_database, share_compiled_statements
from tests.factories.hypothesis_examples import example_count
from tests.factories.long_cases import LONG_CASES
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.tensorflow_forks import Forges, TensorFlowForkServer

hypothesis.settings.register_profile("lockstep", example_count(50))
hypothesis.settings.load_profile("lockstep")

structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        # As the application sets it up. By default Rich draws the locals of each frame: seconds for one error.
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

_LOGGERS = ("", "uvicorn", "uvicorn.error", "uvicorn.access")
"""The loggers that we configure, or uvicorn: the root first."""
_TERMINAL = (
    *("CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "FORCE_COLOR", "GITHUB_ACTIONS", "NO_COLOR", "PY_COLORS", "TERM"),
    *("COLUMNS", "LINES", "TERMINAL_WIDTH", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
)
"""What Typer, Rich, and Python read to decide about colors and the width of lines."""
_CHEAP_HASH = PasswordHasher.from_parameters(CHEAPEST).hash("the password of no account")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage, and never look among the million objects that this leaves.

    Python would look again and again while modules are imported, which takes a quarter of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that only the long tests run."""
    if LONG_CASES:
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture(scope="session", autouse=True)
def _nothing_from_outside() -> Iterator[None]:
    """Make commands print the same on a terminal, in a pipe, and in CI, and hide the caller's settings from tests."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in list(os.environ):
            setting = name.startswith("LOCKSTEP_") and not name.startswith("LOCKSTEP_TEST_")
            if setting or name in _TERMINAL:
                monkeypatch.delenv(name)
        yield


@pytest.fixture(scope="session", autouse=True)
def _statements_compiled_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        share_compiled_statements(monkeypatch)
        yield


@pytest.fixture(autouse=True)
def _process_as_before() -> Iterator[None]:
    """Reset what a command or a kernel in this process sets: the environment, the umask, and logging.

    Logs would go to a standard error that is closed after the test, and a kernel asks every program for colors.
    """
    config = structlog.get_config()
    found = [logging.getLogger(name) for name in _LOGGERS]
    loggers = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in found]
    environment, umask = os.environ.copy(), os.umask(0o022)
    yield
    os.umask(umask)
    for name in (environment.keys() | os.environ.keys()) - {"PYTEST_CURRENT_TEST"}:
        if name not in environment:
            del os.environ[name]
        elif os.environ.get(name) != environment[name]:
            os.environ[name] = environment[name]
    structlog.configure(**config)
    for logger, handlers, level, propagate in loggers:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagate


@pytest.fixture(autouse=True)
def password_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords in microseconds; the product's parameters take 0.2 s of CPU. Tests of hashing override this."""
    monkeypatch.setattr(passwords, "PARAMETERS", CHEAPEST)
    monkeypatch.setattr(passwords, "DUMMY_HASH", _CHEAP_HASH)


@pytest.fixture
def rate_limit_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of rate limits: on a busy machine, a wait of two seconds is over before the next request."""
    moment = now()
    monkeypatch.setattr("app.rate_limit.now", lambda: moment)


@pytest.fixture(autouse=True)
def second_sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[SecondSession]]:
    """Fails a test in which a task opens a second database session, even where the application hides the error."""
    errors = allow_one_session_per_task(monkeypatch)
    yield errors
    assert not errors, errors[0]


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with every table, as a template."""
    path = tmp_path_factory.mktemp("database") / "lockstep.db"

    async def make() -> None:
        db = Database(f"sqlite+aiosqlite:///{path}")
        await migrate.upgrade(db)
        await db.close()

    asyncio.run(make())
    return path


@pytest.fixture(scope="session")
def migrated_postgresql() -> Iterator[str]:
    """This process's PostgreSQL database with every table."""

    async def make(url: str) -> None:
        db = Database(url)
        await migrate.upgrade(db)
        await db.close()

    with postgresql_database() as url:
        asyncio.run(make(url))
        yield url


@pytest.fixture(scope="session")
def unmigrated_postgresql() -> Iterator[str]:
    """Another PostgreSQL database of this process."""
    with postgresql_database() as url:
        yield url


@pytest.fixture(params=BACKENDS)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind, for tests of migrations."""
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path / 'empty' / 'lockstep.db'}"
    url: str = request.getfixturevalue("unmigrated_postgresql")
    asyncio.run(drop_tables(url))
    return url


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A migrated database of each kind."""
    if request.param == "postgresql":
        url: str = request.getfixturevalue("migrated_postgresql")
        return url
    path = tmp_path / "database" / "lockstep.db"
    path.parent.mkdir()
    shutil.copy(request.getfixturevalue("migrated_file"), path)
    return f"sqlite+aiosqlite:///{path}"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A migrated database of each kind, without rows. It waits for as long as a busy machine may take."""
    db = Database(database_url, wait_s=60.0)
    if db.file() is None:
        await delete_rows(db)
    yield db
    await db.close()


@pytest.fixture(scope="session")
def forges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forges]:
    """The process that has imported TensorFlow for a Keras version, from which tests fork programs.

    It is started when first needed. All tests of a process share it.
    """
    started: dict[int, TensorFlowForkServer] = {}

    def forge(keras: int) -> TensorFlowForkServer:
        if keras not in started:
            started[keras] = TensorFlowForkServer(keras, tmp_path_factory.mktemp("home"))
        return started[keras]

    yield forge
    for each in started.values():
        each.close()


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """A short path, because pytest's own are often too long for a socket."""
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        yield Path(folder) / "s.sock"


@pytest.fixture
def settings(tmp_path: Path, socket_path: Path, migrated_file: Path) -> Settings:
    """Settings of an application."""
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(migrated_file, data / "lockstep.db")
    lessons = write_course(tmp_path / "lessons")
    return Settings(data_dir=data, lessons_dir=lessons, runner_socket=socket_path, submit_timeout_s=0.2)


@pytest.fixture
async def supervisor(socket_path: Path) -> AsyncIterator[ScriptedSupervisor]:
    """A running supervisor."""
    supervisor = ScriptedSupervisor(socket_path)
    await supervisor.start()
    yield supervisor
    await supervisor.stop()


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    """The application, started."""
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A visitor's browser."""
    async with browser_client(app) as client:
        yield client


@pytest.fixture
async def stranger(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Another visitor's browser."""
    async with browser_client(app) as client:
        yield client
