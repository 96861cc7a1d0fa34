"""The command line as a whole: errors are reported before anything unnecessary is loaded."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.main import import_quickly
from app.version import described_version

HEAVY = {"alembic", "fastapi", "httpx", "jinja2", "sqlalchemy", "structlog", "uvicorn"}
"""What pages, databases and runners need."""
REFUSED = """
import sys
from app.cli.main import app
try:
    app(sys.argv[1:])
except SystemExit as e:
    print(e.code, *sorted({name.partition(".")[0] for name in sys.modules}))
"""
NOT_XML = "LOCKSTEP_LOG_FORMAT cannot be 'xml': it must be 'console' or 'json'."
NONSENSE = "Invalid settings:\nLOCKSTEP_DEVICES: must be 'auto', 'simulate', 'gpu' or 'tpu'"


def test_the_version_is_printed_without_loading_or_creating_anything(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", REFUSED, "--version"],
        env=os.environ | {"LOCKSTEP_DATA_DIR": str(tmp_path / "data"), "LOCKSTEP_LOG_FORMAT": "xml"},
        capture_output=True,
        text=True,
        check=True,
    )

    said, (status, *loaded) = told.stdout.splitlines()[0], told.stdout.splitlines()[-1].split()
    assert said == f"lockstep {described_version()}"
    assert status == "0"
    assert HEAVY.isdisjoint(loaded)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (["run", "--topology", "gpu:9", "x.py"], {}, "topology 'gpu:9' is too large"),
        (["run", "x.py", "--keras", "4"], {}, "--keras"),
        (["run", "x.py"], {"LOCKSTEP_LOG_FORMAT": "xml"}, NOT_XML),
        (["doctor"], {"LOCKSTEP_LOG_FORMAT": "xml"}, NOT_XML),
        (["doctor"], {"LOCKSTEP_DEVICES": "nonsense"}, NONSENSE),
        (["lessons"], {}, "Did you mean 'lesson'?"),
    ],
)
def test_a_refusal_loads_neither_database_nor_client(
    tmp_path: Path, arguments: list[str], settings: dict[str, str], words: str
) -> None:
    told = subprocess.run(
        [sys.executable, "-c", REFUSED, *arguments],
        env=os.environ | {"LOCKSTEP_DATA_DIR": str(tmp_path), "COLUMNS": "200"} | settings,
        capture_output=True,
        text=True,
        check=True,
    )

    status, *loaded = told.stdout.splitlines()[-1].split()
    assert status == "2"
    assert words in re.sub(r"\x1b\[[0-9;]*m", "", told.stdout + told.stderr)
    if "LOCKSTEP_DEVICES" in settings:  # the application's own settings were read: they bring the log
        loaded = [name for name in loaded if name != "structlog"]
    assert HEAVY.isdisjoint(loaded)


@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_mistakes_in_settings_of_both_programs_are_listed_at_once(tmp_path: Path, command: str) -> None:
    wrong = {
        "LOCKSTEP_LOG_FORMAT": "xml",
        "LOCKSTEP_MAX_UNFINISHED_RUNS": "many",
        "LOCKSTEP_DEVICES": "nonsense",
        "LOCKSTEP_LIMITS__MEMORY_MB": "lots",
        "LOCKSTEP_WARM_TOPOLOGY": "moon:3",
    }
    told = subprocess.run(
        [sys.executable, "-c", REFUSED, command],
        env=os.environ | {"LOCKSTEP_DATA_DIR": str(tmp_path)} | wrong,
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout.splitlines()[-1].startswith("2 ")
    said = told.stdout + told.stderr
    for name in wrong:
        assert len(re.findall(rf"^{name}\b", said, re.MULTILINE)) == 1
    assert "Value error" not in said
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_garbage_is_searched_for_again_after_an_import_that_fails() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_quickly("app.cli.no_such_command")

    assert gc.isenabled()
