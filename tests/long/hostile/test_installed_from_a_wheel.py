"""A wheel installs the lessons next to packages that every session sees: no session may read solutions there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.factories.real_supervisor import RealSupervisor, SessionClient

_REPOSITORY = Path(__file__).resolve().parents[3]
_SECRET = "a-solution-in-the-wheel-51c7"


class InstalledSupervisor(RealSupervisor):
    """A supervisor from another environment than that of the tests."""

    def __init__(self, environment: Path) -> None:
        super().__init__()
        self._python = environment / "bin" / "python"

    @property
    def command(self) -> list[str]:
        """As a wheel's: nothing is imported from the folder that it is started in."""
        return [str(self._python), "-P", *super().command[1:]]


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[InstalledSupervisor]:
    """A copy of this environment with the packages as ``pip install`` of a wheel would install them."""
    environment = tmp_path / "venv"
    if subprocess.run(["cp", "-al", sys.prefix, environment], check=False).returncode:
        pytest.skip("the environment lies on another file system than the temporary folder")
    (packages,) = environment.glob("lib/python3*/site-packages")
    for editable in (
        *packages.glob("*lockstep*.pth"),
        *packages.glob("*lockstep*.dist-info"),
        packages / "_lockstep.pth",
    ):
        shutil.rmtree(editable) if editable.is_dir() else editable.unlink(missing_ok=True)
    shutil.copytree(_REPOSITORY / "runners", packages / "runners")
    solution = packages / "app" / "bundled" / "lessons" / "course" / "lesson" / "checks.py"
    solution.parent.mkdir(parents=True)
    solution.write_text(_SECRET)
    for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        folder.chmod(0o755)
    node = InstalledSupervisor(environment)
    node.start(warm=False)
    yield node
    node.remove()


async def test_no_session_sees_the_lessons_of_a_wheel(installed: InstalledSupervisor) -> None:
    code = """
import os, sys, runners
(packages,) = [path for path in sys.path if path.endswith("site-packages")]
print("app:", os.listdir(os.path.join(packages, "app")), "runners:", len(os.listdir(os.path.join(packages, "runners"))))
for folder, _, names in os.walk(packages):
    for name in {"checks.py", "lesson.md"} & set(names):
        print(name, open(os.path.join(folder, name), errors="replace").read())
"""
    async with installed.client() as client:
        told = await SessionClient(client, topology="cpu").run(code)
    assert "app: [] runners: " in told.stdout, told
    assert _SECRET not in told.stdout
