"""``lockstep lesson cover``: draws the pictures that other sites show beside links to lessons."""

from __future__ import annotations

import base64
import importlib.util
import io
import unicodedata
from pathlib import Path
from typing import Annotated

import typer
from jinja2 import Environment

from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.cli.lesson_export import write_file
from app.cli.lesson_target import belongs_to
from app.exports.chromium import BrowserUnavailable, find_browser, take_picture
from app.lessons.assets import cover_path
from app.lessons.catalog import Catalog
from app.lessons.model import Lesson
from app.web.assets import ROOT as STATIC

_WIDTH, _HEIGHT = 1200, 630
_COLORS = 32
"""Text of two colors with smooth edges, and five lines of one color each."""
_SHOWN = "Lockstep"
"""The key of a PNG's text that says what it shows, and that Lockstep drew it."""
_LONG_TITLE = 40
"""In columns; a Korean or Chinese character takes two."""
_PAGE = """\
<!DOCTYPE html>
<html lang="{{ lesson.language }}">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; font-src data:; style-src 'unsafe-inline'">
<style>
{% for name, font in fonts.items() %}
@font-face { font-family: "{{ name }}"; font-weight: 100 900; src: url(data:font/woff2;base64,{{ font }}); }
{% endfor %}
* { box-sizing: border-box; margin: 0; }
body { position: relative; width: 1200px; height: 630px; overflow: hidden; padding: 64px 80px 136px; display: flex;
  flex-direction: column; background: #fbfaf6; color: #1a1d26; font: 34px/1.4 Inter, sans-serif; }
:lang(ko) { word-break: keep-all; }
.course { display: flex; align-items: center; gap: 18px; font-weight: 600; font-size: 32px; }
h1, .summary { flex: none; }
h1 { margin-block: auto 24px; font: 600 84px/1.12 "Source Serif 4", serif; text-wrap: balance; }
h1.long { font-size: 64px; }
.summary { margin-bottom: auto; color: #565c69; overflow: hidden; text-wrap: pretty;
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; }
.lines { position: absolute; left: 0; bottom: 0; }
</style>
<p class="course">
  <svg width="60" height="60" viewBox="1 1 24 24" fill="none" stroke-linecap="round" stroke-width="3">
    <path stroke="#0072b2" d="M2 6h22"/><path stroke="#a85500" d="M2 11h22"/><path stroke="#00795a" d="M2 16h22"/>
    <path stroke="#a8456f" d="M2 21h22"/><path stroke="#1a1d26" stroke-width="2.6" d="M14 3v20"/>
  </svg>
  {{ course }}
</p>
<h1 {% if is_long %}class="long"{% endif %}>{{ lesson.title }}</h1>
<p class="summary">{{ lesson.summary }}</p>
<svg class="lines" width="1200" height="100" fill="none" stroke-width="12">
  <path stroke="#0072b2" d="M0 10h1200"/><path stroke="#a85500" d="M0 34h1200"/><path stroke="#00795a" d="M0 58h1200"/>
  <path stroke="#a8456f" d="M0 82h1200"/><path stroke="#1a1d26" stroke-width="10" d="M1040 0v100"/>
</svg>
"""
"""In the style of the pages. It loads nothing."""


def draw_covers(
    target: Annotated[str, typer.Argument(metavar="LESSON|COURSE|PATH", help="A lesson or a course.")],
    force: Annotated[
        bool, typer.Option("--force", help="Draw again what is up to date, and replace pictures of your own.")
    ] = False,
) -> None:
    """Draw a lesson's cover in each of its languages: the picture that other sites show beside a link to it.

    It is written beside the lesson's file, as cover.png, cover.ko.png and so on. Needs Chromium or Chrome, and fonts
    for these languages.
    """
    settings = read_settings()
    browser = find_browser() or fail("Covers are drawn by Chromium or Chrome. Install one of them.")
    if importlib.util.find_spec("PIL") is None:
        fail("Covers need Pillow, which is installed where code runs: pip install 'lockstep[runner]'")
    catalog = Catalog(settings.lessons_dir, quiet=True)
    catalog.reload()
    view = catalog.with_drafts
    lessons = [lesson for lesson in view.every() if belongs_to(lesson.source_path, settings.lessons_dir, target)]
    if not lessons:
        fail(f"There is no lesson and no course '{target}' in {settings.lessons_dir}.", USAGE_ERROR)
    kept: list[str] = []
    for number, lesson in enumerate(lessons, 1):
        course, file = view.course(lesson.course, lesson.language).title, cover_path(lesson.source_path)
        try:
            shows = drawn_words(file.read_bytes()) if file.exists() and not force else ""
            if shows is None:
                kept.append(str(file))
            elif shows != cover_words(course, lesson):
                print_message(f"{number} of {len(lessons)}: {file}")
                write_file(file, draw_cover(course, lesson, browser))
        except BrowserUnavailable as e:
            fail(f"{e}.")
        except OSError as e:
            fail(f"{file} cannot be read or written: {e.strerror}.")
    if kept:
        print_message(
            f"Lockstep did not draw {', '.join(kept)}, and left them as they are. To replace them, add --force"
        )


def draw_cover(course: str, lesson: Lesson, browser: Path) -> bytes:
    """The cover of a lesson in its language, as a PNG. ``course`` is the title of its course.

    Raises:
        BrowserUnavailable: the browser failed.
    """
    from PIL import Image, PngImagePlugin

    fonts = {name: _font(file) for name, file in (("Inter", "inter-latin"), ("Source Serif 4", "source-serif-4-latin"))}
    page = Environment(autoescape=True).from_string(_PAGE)
    html = page.render(course=course, lesson=lesson, fonts=fonts, is_long=_columns(lesson.title) > _LONG_TITLE)
    picture = Image.open(io.BytesIO(take_picture(html, browser, _WIDTH, _HEIGHT, trusted=True)))
    about = PngImagePlugin.PngInfo()
    about.add_itxt(_SHOWN, cover_words(course, lesson))
    small = io.BytesIO()
    picture.convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE).save(small, "PNG", optimize=True, pnginfo=about)
    return small.getvalue()


def cover_words(course: str, lesson: Lesson) -> str:
    """The words on a lesson's cover, which the picture also has as text."""
    return f"{course}\n{lesson.title}\n{lesson.summary}"


def drawn_words(picture: bytes) -> str | None:
    """The words on a cover; None if Lockstep did not draw it."""
    from PIL import Image

    try:
        shown = Image.open(io.BytesIO(picture)).info.get(_SHOWN)
    except (OSError, Image.DecompressionBombError):
        return None
    return None if shown is None else str(shown)


def _columns(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def _font(name: str) -> str:
    """A font of the pages in Base64, or nothing if the front end is not built: then the browser takes its own."""
    file = next((STATIC / "dist/fonts").glob(f"{name}*.woff2"), None)
    return base64.b64encode(file.read_bytes()).decode() if file else ""
