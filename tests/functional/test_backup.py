"""The documented recipe to back up and restore, followed word for word.

``docker`` is a stand-in that runs what the recipe wants run in a container on this machine: ``pg_dump``, ``psql`` and
``tar`` are real, and so is a database server that comes up as the image's does, first on its socket only.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.factories.http_server import free_port

ROOT = Path(__file__).parents[2]
STAND_IN = Path(__file__).parent / "programs" / "docker.sh"
PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=Path("initdb")).parent

pytestmark = pytest.mark.skipif(not (PROGRAMS / "initdb").exists(), reason="PostgreSQL's server is not installed")


def recipes() -> tuple[str, str]:
    """The two blocks of commands: for the backup, and for restoring it."""
    section = (ROOT / "docs" / "operate" / "backup.md").read_text()
    back_up, restore = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return back_up, restore


class Installation:
    """The volumes of one installation, and the containers' programs on this machine."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.data = folder / "data"
        self.data.mkdir()
        self.database = folder / "database"
        self.log = folder / "log"
        tools = folder / "bin"
        tools.mkdir()
        shutil.copy(STAND_IN, tools / "docker")
        (tools / "docker").chmod(0o755)
        self.environment = {
            "PATH": f"{tools}:{PROGRAMS}:{os.environ['PATH']}",
            "PGPORT": str(free_port()),
            "PGHOST": str(folder),
            "DATABASE": str(self.database),
            "DATA": str(self.data),
            "LOG": str(self.log),
        }

    def follow(self, commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run commands in a shell in ``folder``, until one fails."""
        return subprocess.run(
            ["bash", "-e", "-c", commands],
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def query(self, sql: str) -> str:
        """Query the database."""
        command = ["psql", "-At", "-U", "lockstep", "-c", sql, "lockstep"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def remove(self) -> None:
        """Stop its database, if it is running."""
        subprocess.run(["docker", "compose", "down"], env=self.environment, capture_output=True, check=False)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the database's user can enter, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="lockstep-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def installations(folder: Path) -> Iterator[tuple[Installation, Installation]]:
    """An old and a new installation."""
    both = Installation(folder / "old"), Installation(folder / "new")
    yield both
    for each in both:
        each.remove()


def test_the_recipe_restores_every_row_and_every_secret_into_a_new_installation(
    installations: tuple[Installation, Installation], tmp_path: Path
) -> None:
    old, new = installations
    back_up, restore = recipes()
    started, answers = (
        "docker compose up --detach db",
        "docker compose exec -T db pg_isready -q -h 127.0.0.1 -U lockstep",
    )
    assert old.follow(f"{started}; until {answers}; do sleep 0.1; done", tmp_path).returncode == 0, old.log.read_text()
    old.query(
        "CREATE TABLE account (name text); INSERT INTO account SELECT 'learner ' || n FROM generate_series(1, 500) n"
    )
    (old.data / "secrets").mkdir(mode=0o700)
    (old.data / "secrets" / "sign-in").write_bytes(b"\x00secret\xff")
    (old.data / "secrets" / "sign-in").chmod(0o600)

    saved = old.follow(back_up, tmp_path)
    assert saved.returncode == 0, saved.stderr
    for file in ("lockstep.sql", "lockstep-secrets.tar"):
        assert stat.S_IMODE((tmp_path / file).stat().st_mode) == 0o600
    restored = new.follow(restore, tmp_path)

    assert restored.returncode == 0, restored.stderr + new.log.read_text()
    everybody = "SELECT count(*), min(name), max(name) FROM account"
    assert new.query(everybody) == old.query(everybody) == "500|learner 1|learner 99"
    secret = new.data / "secrets" / "sign-in"
    assert secret.read_bytes() == b"\x00secret\xff"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert "started everything" in new.log.read_text()
