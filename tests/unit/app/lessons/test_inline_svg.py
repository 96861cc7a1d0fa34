"""A drawing becomes part of the page only if it contains nothing that a page must not have."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from app.lessons.inline_svg import MAX_SVG_BYTES, InvalidSvg, inline_svg
from app.lessons.snapshot import Snapshot, load_snapshot
from tests.factories.lesson_source import FRONT_MATTER

ROOT = Path(__file__).parents[4]
FIGURE = "```{figure} assets/ring.svg\n:alt: A ring\n\nOf four.\n```\n\n![The same](assets/ring.svg)\n"
ASKING = 'class="drawing" viewBox="0 0 10 20"'


def svg(inside: str, attributes: str = 'viewBox="0 0 10 20"') -> bytes:
    return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{inside}</svg>'.encode()


def test_shapes_words_and_colours_of_the_theme_get_through() -> None:
    words = "<desc>Two &amp; two</desc>"
    shape = '<g fill="var(--r0, #0072b2)"><text x="1">a <tspan dy="2">b</tspan> &lt;c</text></g>'

    assert inline_svg(svg(words + shape), 'A "ring"').html == (
        '<svg class="drawing" role="img" aria-label="A &quot;ring&quot;" viewBox="0 0 10 20" width="10" height="20">'
        f"{words}{shape}</svg>"
    )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (svg("<script>alert(1)</script>"), "it has <script>"),
        (svg("<style>a{}</style>"), "it has <style>"),
        (svg("<foreignObject/>"), "it has <foreignObject>"),
        (svg("<image href='x'/>"), "it has <image>"),
        (svg("<a href='javascript:x'><text/></a>"), "it has <a>"),
        (svg("<g xmlns='http://www.w3.org/1999/xhtml'/>"), "it has <"),
        (svg("<g onclick='x'/>"), "the attribute 'onclick'"),
        (svg("<g style='fill:red'/>"), "the attribute 'style'"),
        (svg("<g id='toc'/>"), "the attribute 'id'"),
        (svg("", 'viewBox="0 0 10 20" onload="x"'), "the attribute 'onload'"),
        (svg("<g fill='url(https://elsewhere.example/x)'/>"), "its attribute 'fill'"),
        (svg("<g fill='URL(#a)'/>"), "its attribute 'fill'"),
        (svg("<g fill='&#x6a;avascript:x'/>"), "its attribute 'fill'"),
        (svg("", ""), "viewBox"),
        (svg("", 'viewBox="0 0 1 &quot;"'), "viewBox"),
        (b"<!DOCTYPE svg [<!ENTITY a 'b'>]>" + svg("&a;"), "document type"),
        (svg("<g>"), "not well-formed XML"),
        (svg("<g>" * 5000 + "</g>" * 5000), "too deep"),
        (b"\xff\xfe" + svg("").decode().encode("utf-16-le"), "not well-formed XML"),
        (svg(" " * MAX_SVG_BYTES), "bytes"),
        (b"<html/>", "it must be an <svg>"),
        (svg("<g data-steps='0-2'/>"), "write a step"),
        (svg("<g data-steps='3-2'/>"), "write a step"),
        (svg("<g data-steps='1 onload=x'/>"), "write a step"),
        (svg("<g display='none'/>"), "write a step"),
        (svg("<g data-steps='2-' display='inline'/>"), "'display' is 'inline'"),
        (svg("<g data-steps='1-'/>"), "nothing changes in step 2 of 2"),
        (svg("<g data-steps='2-'/><g data-steps='5-'/>"), "nothing changes in step 3 of 5"),
        (svg("".join(f"<g data-steps='{n}-'/>" for n in range(1, 42))), "at most 40"),
        (svg("<g data-steps='1'/><g data-steps='2'/>"), "lacks display="),
        (svg("<g data-steps='2-' display='none'/>"), "has display="),
    ],
)
def test_anything_else_is_refused_with_a_reason(source: bytes, why: str) -> None:
    with pytest.raises(InvalidSvg) as refused:
        inline_svg(source, "")

    assert why in str(refused.value)


def _course(root: Path, picture: bytes, text: str = FIGURE) -> Snapshot:
    folder = root / "course" / "rings"
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    (root / "course" / "course.toml").write_text(
        'title = "C"\nsummary = "S."\n[[modules]]\nslug = "m"\ntitle = "M"\nlessons = ["rings"]\n', encoding="utf-8"
    )
    (folder / "lesson.md").write_text(f"---\n{FRONT_MATTER}---\n\n{text}", encoding="utf-8")
    (folder / "assets" / "ring.svg").write_bytes(picture)
    return load_snapshot(root, Snapshot())


def _page(snapshot: Snapshot) -> str:
    (by_language,) = snapshot.lessons.values()
    return "".join(str(block.html) for block in by_language["en"].blocks if hasattr(block, "html"))


def test_a_drawing_is_part_of_the_page_and_changes_with_its_file(tmp_path: Path) -> None:
    first = _course(tmp_path, svg('<path d="M0 0"/>', ASKING))
    second = _course(tmp_path, svg('<path d="M1 1L2 2"/>', ASKING))

    assert first.mistakes == ()
    assert '<figure><svg class="drawing" role="img" aria-label="A ring"' in _page(first)
    assert '<path d="M0 0"></path></svg><figcaption>' in _page(first)
    assert '<p><svg class="drawing" role="img" aria-label="The same"' in _page(first)
    assert "M1 1L2 2" in _page(second)
    assert first.digest != second.digest


def test_a_drawing_that_cannot_be_inlined_stays_a_picture_and_is_reported(tmp_path: Path) -> None:
    snapshot = _course(tmp_path, svg("<script>alert(1)</script>", ASKING))

    assert '<img src="rings/assets/ring.svg" alt="A ring"' in _page(snapshot)
    assert "script" not in _page(snapshot)
    assert len(snapshot.mistakes) == 2
    assert "the drawing assets/ring.svg cannot be part of the page: it has <script>" in str(snapshot.mistakes[0])


MOVING = svg('<g data-steps="1" display="none"/><g data-steps="2-3"/><path data-steps="3" d="M0 0"/>', ASKING)
IN_STEPS = "```{figure} assets/ring.svg\n:alt: A ring\n\nOf four.\n\n1. One.\n2. Two.\n\n   - In two parts.\n"


def test_a_drawing_with_steps_says_how_many_and_shows_the_last(tmp_path: Path) -> None:
    snapshot = _course(tmp_path, MOVING, IN_STEPS + "3. Three.\n```\n")

    assert snapshot.mistakes == ()
    assert '<figure><svg class="drawing" data-step-count="3" role="img"' in _page(snapshot)
    assert '<g data-steps="1" display="none"></g><g data-steps="2-3"></g>' in _page(snapshot)


@pytest.mark.parametrize(
    ("text", "told"), [(IN_STEPS + "```\n", 2), (IN_STEPS + "3. Three.\n\nAnd so on.\n```\n", 0), (FIGURE, 0)]
)
def test_each_step_of_a_drawing_needs_a_text(tmp_path: Path, text: str, told: int) -> None:
    snapshot = _course(tmp_path, MOVING, text)

    wrong = f"the drawing assets/ring.svg has 3 steps, and the lesson has a text for {told}"
    assert snapshot.mistakes
    assert all(wrong in str(mistake) for mistake in snapshot.mistakes)


def test_a_translated_drawing_has_the_steps_of_the_english_one(tmp_path: Path) -> None:
    _course(tmp_path, MOVING, IN_STEPS + "3. Three.\n```\n")
    folder = tmp_path / "course" / "rings"
    (folder / "assets" / "ring.ko.svg").write_bytes(
        svg('<g data-steps="1" display="none"/><g data-steps="2"/>', ASKING)
    )
    figure = IN_STEPS.replace("ring.svg", "ring.ko.svg") + "```\n"
    (folder / "lesson.ko.md").write_text(f"---\ntitle: 링\nsummary: 링.\n---\n\n{figure}", encoding="utf-8")

    (mistake,) = load_snapshot(tmp_path, Snapshot()).mistakes

    assert "the drawing assets/ring.ko.svg has 2 steps and ring.svg has 3" in str(mistake)


def test_a_file_that_does_not_ask_stays_a_picture(tmp_path: Path) -> None:
    snapshot = _course(tmp_path, svg("<style>a{}</style>"))

    assert snapshot.mistakes == ()
    assert _page(snapshot).count("<img ") == 2


@pytest.mark.parametrize("file", sorted((ROOT / "lessons").glob("*/*/assets/*.svg")), ids=lambda file: file.stem)
def test_the_lessons_own_drawings_are_fit_and_read_by_text(file: Path) -> None:
    inline_svg(file.read_bytes(), "")

    root = ET.parse(file).getroot()
    title, desc = (root.findtext(f"{{http://www.w3.org/2000/svg}}{name}") or "" for name in ("title", "desc"))
    assert title
    assert len(desc.encode()) > 80  # of bytes: Chinese says the same in a third of the characters
