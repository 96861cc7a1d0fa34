"""Programs that only tests start: installed on this machine, or unpacked by ``make setup-tests``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

_UNPACKED = Path(__file__).parents[2] / ".venv" / "programs" / "usr"


def program(name: str) -> str:
    """The path of a program. Skips the test if there is none."""
    folders = [os.environ.get("PATH", ""), "/usr/sbin", str(_UNPACKED / "bin"), str(_UNPACKED / "sbin")]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        pytest.skip(f"{name} is not installed, and 'make setup-tests' could not unpack it")
    return found


def with_unpacked_libraries() -> dict[str, str]:
    """The environment of a program whose libraries may have been unpacked with it."""
    folders = os.pathsep.join(map(str, (_UNPACKED / "lib").glob("*-linux-gnu*")))
    return {**os.environ, "LD_LIBRARY_PATH": folders}
