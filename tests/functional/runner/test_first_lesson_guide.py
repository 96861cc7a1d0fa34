"""The guide to a first lesson: its commands, in their order, on a real runner."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import httpx
import pytest

from tests.factories.real_supervisor import RealSupervisor

GUIDE = Path(__file__).parents[3] / "docs" / "teach" / "first-lesson.md"


def blocks(language: str) -> list[str]:
    """The examples of the guide in a language, without those inside others."""
    found = re.findall(r"^(`{3,})(\w+)\n(.*?)^\1$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [text for _, name, text in found if name == language]


class Reader:
    """Somebody who types the commands of the guide into a shell."""

    def __init__(self, node: RealSupervisor, home: Path) -> None:
        program = home / "bin" / "lockstep"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from app.cli.main import app; app()" "$@"\n')
        program.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LOCKSTEP_")}
        own = {"LOCKSTEP_RUNNER_SOCKET": str(node.socket), "LOCKSTEP_DATA_DIR": str(home / "data")}
        paths = {"PATH": f"{program.parent}:{kept['PATH']}", "PYTHONPATH": str(GUIDE.parents[2])}
        self.environment = kept | own | paths
        self.folder = home
        self.lesson = home / "teaching" / "lessons" / "my-course" / "averages" / "lesson.md"

    async def follow(self, commands: str) -> str:
        """What the commands print. A later one starts in the folder that the first ones have made."""
        shell = await asyncio.create_subprocess_exec(
            *("sh", "-e", "-c", commands),
            cwd=self.folder,
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await shell.communicate()
        assert shell.returncode == 0, out.decode()
        self.folder = self.lesson.parents[3]
        return out.decode()


@pytest.fixture
def reader(node: RealSupervisor, tmp_path: Path) -> Reader:
    return Reader(node, tmp_path)


@pytest.mark.long
async def test_the_lesson_that_it_starts_with_passes_as_it_is(reader: Reader) -> None:
    start, _, check, _ = blocks("sh")
    await reader.follow(start)
    assert (await reader.follow(check)).rstrip().endswith("0 unexpected outcomes.")


@pytest.mark.long
async def test_its_lesson_shows_in_the_preview_and_passes_with_the_cell_of_the_guide(reader: Reader) -> None:
    start, preview, check, serve = blocks("sh")
    assert (preview.startswith("lockstep lesson preview "), serve) == (True, "lockstep serve\n")
    await reader.follow(start)
    await _see(preview, reader)

    (cell,) = blocks("md")
    text = reader.lesson.read_text()
    (first,) = re.findall(r"^```\{code-cell\} ipython3\n:name: replicas\n.*?^```\n", text, re.MULTILINE | re.DOTALL)
    reader.lesson.write_text(text.replace(first, cell))
    said = await reader.follow(check)
    assert said.startswith("1 lesson read, 0 errors.\n")
    assert said.rstrip().endswith("0 unexpected outcomes.")
    assert text.count("status: draft") == 1


async def _see(command: str, reader: Reader) -> None:
    """Start the preview, open its link, and see the lesson."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f"exec {command.strip()} --port 0"),
        cwd=reader.folder,
        env=reader.environment,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        line = (await process.stderr.readline()).decode()
        link = re.search(r"http://localhost(\S+)", line)
        assert link is not None, line
        async with httpx.AsyncClient(follow_redirects=True, timeout=60) as browser:
            page = await browser.get(f"http://127.0.0.1{link[1]}")
        assert page.url.path == "/en/courses/my-course/averages"
        assert "The global batch size" in page.text
    finally:
        process.terminate()
        await process.communicate()
    assert process.returncode == 0
