"""The wheel carries everything it needs: installed into an empty environment, it serves pages from any folder.

Third-party packages are taken from this checkout's environment: what is tried is what the wheel itself holds.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import Distribution, distributions
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from app import i18n

ROOT = Path(__file__).parents[3]
LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with nothing of Lockstep except the wheel, built from a source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    _do("-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder), cwd=ROOT)
    (source,) = folder.glob("*.tar.gz")
    offline = ["--no-deps", "--no-index", "--no-cache-dir", "--quiet"]
    _do("-m", "pip", "wheel", "--no-build-isolation", *offline, "--wheel-dir", str(folder), str(source), cwd=folder)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "environment", symlinks=True)
    python = folder / "environment" / "bin" / "python"
    _do("-m", "pip", "--python", str(python), "install", *offline, str(wheel), cwd=folder)
    others = sysconfig.get_path("purelib")
    (_packages(folder / "environment") / "others.pth").write_text(f"{others}\n")  # nothing of Lockstep's is there
    return folder / "environment"


def _do(*arguments: str, cwd: Path) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _packages(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python3.*/site-packages")
    return folder


def _installed(environment: Path) -> Distribution:
    (found,) = distributions(name="lockstep", path=[str(_packages(environment))])
    return found


@asynccontextmanager
async def _served(environment: Path, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """``lockstep serve`` in an empty folder, without a runner, because a runner needs TensorFlow in the environment."""
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LOCKSTEP_RUNNER_SOCKET": str(folder / "none.sock")}
    process = await asyncio.create_subprocess_exec(
        environment / "bin" / "lockstep", "serve", "--port", "0", cwd=folder, env=clean, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    said = ""
    try:
        async with asyncio.timeout(120):
            while not (url := re.search(r"at (http://\S+)/ ", said)):
                line = (await process.stderr.readline()).decode()
                assert line, said
                said += line
        reading = asyncio.create_task(process.stderr.read())
        async with httpx.AsyncClient(base_url=url[1], headers={"origin": url[1]}, timeout=60) as client:
            yield client
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
    await reading


async def test_it_serves_the_home_page_and_a_lesson_with_their_styles_and_scripts(
    environment: Path, tmp_path: Path
) -> None:
    async with _served(environment, tmp_path) as client:
        home = await client.get("/", follow_redirects=True)
        lesson = await client.get(LESSON)

        assert (home.status_code, lesson.status_code) == (200, 200)
        assert "Replicas" in lesson.text
        files = set(re.findall(r'(?:src|href)="(/static/[^"]+|/[^"]+/assets/[^"]+)"', home.text + lesson.text))
        assert any(".css" in file for file in files)
        assert any(".js" in file for file in files)
        for file in sorted(files):
            assert (await client.get(file)).status_code == 200, file
        with i18n.use_language("ko"):
            assert i18n.gettext("Skip to main content") in (await client.get("/ko/")).text


def test_all_of_it_comes_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    program = "import app.migrate, runners, app.settings as s; print(app.__file__, runners.__file__)\n"
    program += "print(app.migrate.MIGRATIONS_DIR, s.Settings.read().lessons_dir)"
    done = subprocess.run(
        [environment / "bin" / "python", "-c", program],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(Path(place).is_relative_to(environment) for place in done.stdout.split()), done.stdout


def test_its_metadata_asks_for_what_the_project_names(environment: Path) -> None:
    """``tests/unit/test_locks.py`` holds the locks to the same names and versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {_key(Requirement(one), "") for one in project["dependencies"]}
    for extra, listed in project["optional-dependencies"].items():
        named |= {_key(Requirement(one), extra) for one in listed}
    wheel = _installed(environment)

    assert {_key(Requirement(one), _extra(Requirement(one))) for one in wheel.requires or ()} == named
    assert SpecifierSet(wheel.metadata["Requires-Python"]) == SpecifierSet(project["requires-python"])


def _key(requirement: Requirement, extra: str) -> tuple[str, str, str]:
    return requirement.name, str(requirement.specifier), extra


def _extra(requirement: Requirement) -> str:
    found = re.search(r"extra == ['\"](\w+)", str(requirement.marker or ""))
    return found[1] if found else ""
