"""Badges are small, well-formed, and drawn only with the classes of the style sheet."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from app.progress.badges import BADGES_DIR, HIDDEN_BADGE, badge_names, badge_svg

_MOST_BYTES = 1500
_ELEMENTS = {"svg", "path", "circle", "rect"}
_CLASSES = {*(f"r{i}" for i in range(8)), "f", "s", "i", "k", "t", "hub", "stop", "cut", "thread"}
_ATTRIBUTES = {"class", "d", "cx", "cy", "r", "x", "y", "width", "height", "rx"}


@pytest.mark.parametrize("name", sorted(badge_names()))
def test_a_badge_is_drawn_with_the_classes_of_the_house(name: str) -> None:
    source = (BADGES_DIR / f"{name}.svg").read_text()
    root = ET.fromstring(source)

    assert len(source) < _MOST_BYTES
    assert root.attrib == {"viewBox": "0 0 64 64"}
    for element in root:
        assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in _ELEMENTS
        assert set(element.attrib) <= _ATTRIBUTES
        assert set(element.attrib["class"].split()) <= _CLASSES
    assert not re.search("(?i)svg", badge_svg(name)), "what is put into a page is the drawing without its frame"


def test_no_two_badges_are_the_same_drawing() -> None:
    assert len({badge_svg(name) for name in badge_names()}) == len(badge_names()) >= 24


def test_there_is_one_for_what_is_kept_secret() -> None:
    assert HIDDEN_BADGE in badge_names()
