"""The guide to a first lesson: its commands, in their order, on a real runner."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.factories.guides import GuideReader, guide_blocks
from tests.factories.real_supervisor import RealSupervisor

GUIDE = "first-lesson.md"


@pytest.fixture
async def reader(node: RealSupervisor, tmp_path: Path) -> GuideReader:
    """Somebody who has followed the first step."""
    reader = GuideReader(node.socket, tmp_path)
    await reader.follow(guide_blocks(GUIDE, "sh")[0])
    reader.folder = tmp_path / "teaching"
    return reader


@pytest.mark.long
async def test_the_lesson_that_it_starts_with_passes_as_it_is(reader: GuideReader) -> None:
    _, _, check, _ = guide_blocks(GUIDE, "sh")
    assert (await reader.follow(check)).rstrip().endswith("0 unexpected outcomes.")


@pytest.mark.long
async def test_its_lesson_shows_in_the_preview_and_passes_with_the_cell_of_the_guide(reader: GuideReader) -> None:
    _, preview, check, serve = guide_blocks(GUIDE, "sh")
    assert (preview.startswith("lockstep lesson preview "), serve) == (True, "lockstep serve\n")
    page = await reader.see(preview)
    assert page.url.path == "/en/courses/my-course/averages"
    assert "The global batch size" in page.text

    (cell,) = guide_blocks(GUIDE, "md")
    lesson = reader.folder / "lessons" / "my-course" / "averages" / "lesson.md"
    text = lesson.read_text()
    (first,) = re.findall(r"^```\{code-cell\} ipython3\n:name: replicas\n.*?^```\n", text, re.MULTILINE | re.DOTALL)
    lesson.write_text(text.replace(first, cell))
    said = await reader.follow(check)
    assert said.startswith("1 lesson read, 0 errors.\n")
    assert said.rstrip().endswith("0 unexpected outcomes.")
    assert text.count("status: draft") == 1
