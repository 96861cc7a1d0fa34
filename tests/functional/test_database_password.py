"""The password of Compose's database: made once, kept, and never a new one for a database that has another."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docker" / "database-password.sh"


class Volumes:
    """The script with folders of the test in the place of the volumes. Owners stay as they are."""

    def __init__(self, folder: Path) -> None:
        self.kept, self.database = folder / "kept", folder / "database"
        self.kept.mkdir()
        self.database.mkdir()
        text = SCRIPT.read_text()
        for old, new in (
            ("folder=/run/database-password\n", f"folder={self.kept}\n"),
            ("/var/lib/postgresql/data/", f"{self.database}/"),
            ('  chown "$2" ', '  : "$2" '),
        ):
            assert text.count(old) == 1
            text = text.replace(old, new)
        self._script = folder / "script.sh"
        self._script.write_text(text)

    def start(self, *options: str, **variables: str) -> str:
        """Run it; returns the password that is kept, after checking that all files agree."""
        subprocess.run(["sh", self._script, *options], env={"PATH": "/usr/bin:/bin", **variables}, check=True)
        password = (self.kept / "password").read_text()
        assert (self.kept / "url").read_text() == f"postgresql+asyncpg://lockstep:{password}@db/lockstep"
        assert (self.kept / "change.sql").read_text() == f"ALTER ROLE lockstep PASSWORD '{password}';"
        assert {file.stat().st_mode & 0o777 for file in self.kept.iterdir()} == {0o600}
        assert len(list(self.kept.iterdir())) == 3
        return password


@pytest.fixture
def volumes(tmp_path: Path) -> Volumes:
    return Volumes(tmp_path)


def test_a_new_installation_gets_a_random_password_and_keeps_it(volumes: Volumes, tmp_path: Path) -> None:
    password = volumes.start()
    (volumes.database / "PG_VERSION").touch()

    assert re.fullmatch("[0-9a-f]{48}", password)
    assert volumes.start() == password
    (tmp_path / "other").mkdir()
    assert Volumes(tmp_path / "other").start() != password


def test_a_database_from_before_keeps_the_password_that_it_has(volumes: Volumes) -> None:
    (volumes.database / "PG_VERSION").touch()
    assert volumes.start() == "lockstep"
    assert volumes.start(LOCKSTEP_DB_PASSWORD="chosen1") == "chosen1"
    assert volumes.start() == "chosen1"


def test_a_new_password_is_made_on_request(volumes: Volumes) -> None:
    (volumes.database / "PG_VERSION").touch()
    volumes.start()
    assert re.fullmatch("[0-9a-f]{48}", volumes.start("--new"))
