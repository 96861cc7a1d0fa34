"""The guide to a course from notebooks: its commands, in their order, on a real runner."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories.guides import TEACH, GuideReader, guide_blocks
from tests.factories.real_supervisor import RealSupervisor

GUIDE = "from-notebooks.md"


@pytest.mark.long
async def test_its_notebook_becomes_a_course_whose_cells_all_run(node: RealSupervisor, tmp_path: Path) -> None:
    start, check, preview, again = guide_blocks(GUIDE, "sh")
    notebook, tagged = guide_blocks(GUIDE, "md")
    guide = " ".join((TEACH / GUIDE).read_text(encoding="utf-8").split())
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "training.md").write_text(notebook)
    reader = GuideReader(node.socket, tmp_path)

    *changes, _, last = (await reader.follow(start)).splitlines()
    lesson = tmp_path / "lessons" / "my-course" / "training" / "lesson.md"
    (commented,) = (change for change in changes if "commented out" in change)
    assert f"`{commented}`" in guide
    assert last == "Only instructors see them until each says 'status: published'."
    said = await reader.follow(check, status=1)
    assert "train-2" in said
    assert said.rstrip().endswith("1 unexpected outcome.")

    untagged = tagged.replace(":tags: [skip-execution]\n", "")
    assert untagged in lesson.read_text()
    lesson.write_text(lesson.read_text().replace(untagged, tagged))
    assert (await reader.follow(check)).rstrip().endswith("0 unexpected outcomes.")
    page = await reader.see(preview)
    assert page.url.path == "/en/courses/my-course/training"
    assert "Train on four GPUs" in page.text
    await reader.follow(again)
    assert tagged not in lesson.read_text()
