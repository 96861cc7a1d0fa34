"""The commands of the runbook for accounts, secrets and maintenance, in its order, on a site's database."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.factories.cli_process import lockstep

RUNBOOK = Path(__file__).parents[2] / "docs" / "operate" / "runbook.md"
PASSWORD = b"correct horse battery staple 9\n"


def commands() -> list[list[str]]:
    """The arguments of each ``lockstep`` that works on the database, in the order in which they are to be typed."""
    typed = re.findall(r"docker compose exec web lockstep ([^`|\n]+)", RUNBOOK.read_text(encoding="utf-8"))
    return [shlex.split(line) for line in typed if not line.startswith("doctor")]


async def test_its_commands_do_what_it_says(tmp_path: Path, migrated_file: Path) -> None:
    shutil.copy(migrated_file, tmp_path / "lockstep.db")
    created = await lockstep("user", "create", "eve@example.org", "--password-stdin", typed=PASSWORD, data_dir=tmp_path)
    assert created.status == 0, created.err

    said = {}
    for arguments in commands():
        ended = await lockstep(*arguments, data_dir=tmp_path)
        assert ended.status == 0, ended.err
        said[" ".join(arguments)] = ended.out + ended.err

    assert "eve@example.org" in said["user list"]
    assert "eve@example.org is disabled." in said["user disable eve@example.org"]
    assert "eve@example.org is enabled." in said["user enable eve@example.org"]
    assert said["maintenance on"] == "Maintenance mode is on.\n"
    assert list(said)[-1] == "user enable eve@example.org"
    assert sorted(path.name for path in (tmp_path / "secrets").iterdir()) == ["sign-in", "unsubscribe"]
    with closing(sqlite3.connect(tmp_path / "lockstep.db")) as db:
        assert db.execute("SELECT name FROM site_switches").fetchall() == []
