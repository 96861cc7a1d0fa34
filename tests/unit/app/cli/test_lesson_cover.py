"""``lockstep lesson cover``: a picture for each language, drawn again only when its words change."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from app.cli import lesson_cover
from app.cli.lesson import app
from app.cli.lesson_cover import drawn_words
from app.exports.chromium import find_browser
from app.settings import Settings


@pytest.fixture
def folder(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a lesson."""
    for name in ("data_dir", "lessons_dir"):
        monkeypatch.setenv(f"LOCKSTEP_{name.upper()}", str(getattr(settings, name)))
    return settings.lessons_dir / "small" / "first"


@pytest.fixture
def blank_pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Instead of Chromium's, pictures of nothing; returns the pages that were to be drawn."""
    drawn: list[str] = []
    blank = io.BytesIO()
    Image.new("RGB", (1200, 630)).save(blank, "PNG")

    def take(html: str, *_: object, trusted: bool) -> bytes:
        assert trusted
        drawn.append(html)
        return blank.getvalue()

    monkeypatch.setattr(lesson_cover, "take_picture", take)
    monkeypatch.setattr(lesson_cover, "find_browser", lambda: Path("/chromium"))
    return drawn


def _cover(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["cover", *arguments], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="there is no Chromium or Chrome")
def test_a_cover_shows_the_words_of_its_lesson(folder: Path) -> None:
    result = _cover("first")

    assert result.exit_code == 0, result.output
    cover = (folder / "cover.png").read_bytes()
    picture = Image.open(io.BytesIO(cover))
    assert (picture.format, picture.size) == ("PNG", (1200, 630))
    assert len(picture.convert("RGB").getcolors() or ()) > 8
    assert drawn_words(cover) == "A small course\nThe first lesson\nIt prints."


def test_a_cover_is_drawn_again_when_its_words_change(folder: Path, blank_pages: list[str]) -> None:
    for expected in (1, 1):
        assert _cover("small").exit_code == 0
        assert len(blank_pages) == expected
    lesson = folder / "lesson.md"
    lesson.write_text(lesson.read_text().replace("The first lesson", "Two < three"))
    with (folder / "cover.png").open("rb") as reader:
        assert _cover("small/first").exit_code == 0
        assert "The first lesson" in (drawn_words(reader.read()) or ""), "whoever reads it meanwhile has it whole"

    assert "Two < three" in (drawn_words((folder / "cover.png").read_bytes()) or "")
    assert list(folder.glob(".cover*")) == []
    assert "Two &lt; three</h1>" in blank_pages[-1]
    assert len(blank_pages) == 2


def test_a_picture_that_an_author_made_is_replaced_only_by_force(folder: Path, blank_pages: list[str]) -> None:
    own = b"not even a picture"
    (folder / "cover.png").write_bytes(own)

    result = _cover("first")
    assert (result.exit_code, (folder / "cover.png").read_bytes(), blank_pages) == (0, own, [])
    assert "cover.png" in result.stderr
    assert "--force" in result.stderr
    assert _cover("first", "--force").exit_code == 0
    assert drawn_words((folder / "cover.png").read_bytes())


def test_what_is_missing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, blank_pages: list[str]) -> None:
    unknown = _cover("seconds")
    assert (unknown.exit_code, "no lesson and no course 'seconds'" in unknown.stderr) == (2, True)
    monkeypatch.setattr(lesson_cover, "find_browser", lambda: None)
    without = _cover("first")
    assert (without.exit_code, "Install one of them" in without.stderr) == (1, True)
    assert blank_pages == []
