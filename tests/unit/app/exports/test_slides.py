"""Slides: one for each heading, in one file that runs nothing."""

from __future__ import annotations

from app.exports.convert import to_slides
from app.exports.latest_runs import CellRun
from app.exports.notebook import build_notebook
from tests.factories.lesson_source import CELL, render_body

PAGE = "https://example.org/en/courses/course/this"
BODY = f"Opening words.\n\n## One\n\n```text\n# not a heading\n```\n\n### Two\n\n{CELL}\n#### Below two\n\nWords.\n"


def test_each_heading_begins_a_slide() -> None:
    page = to_slides(build_notebook(render_body(BODY), PAGE))

    assert page.count('<section class="slide">') == page.count("</section>") == 3
    slides = page.split('<section class="slide">')[1:]
    assert ["One" in slides[1], "not a heading" in slides[1], "Below two" in slides[2]] == [True, True, True]
    assert "print" in slides[2]
    assert "LogicalDeviceConfiguration" not in page


def test_slides_run_no_script_and_reach_no_other_host() -> None:
    hostile = {"one": CellRun("# </section><script>alert(1)</script>")}
    page = to_slides(build_notebook(render_body(BODY), PAGE, hostile))

    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page
    assert "<script" not in page
    assert page.count("</section>") == 3
