"""Drawings of sequences."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from docs.sequence import Step, drawing, parse

LINES = [
    "Browser | Web application | Database",
    "Browser -> Web application: POST /runs: the code & the cell",
    "Web application: find the cell",
    "Database -> Browser: a row <of events>",
]


def test_steps_lead_from_one_lane_to_another_or_stay_in_one() -> None:
    names, steps = parse(LINES)

    assert names == ["Browser", "Web application", "Database"]
    assert steps == [
        Step(0, 1, "POST /runs: the code & the cell"),
        Step(1, 1, "find the cell"),
        Step(2, 0, "a row <of events>"),
    ]


@pytest.mark.parametrize("line", ["Browser sends", "Server -> Browser: hello", "Browser -> Server: hello"])
def test_a_line_that_names_an_unknown_participant_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parse([LINES[0], line])


def test_the_drawing_is_well_formed_and_stays_within_its_frame() -> None:
    region = ET.fromstring(drawing(LINES, 'A "run"'))
    (svg,) = region
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])

    words = [element.text for element in svg.iter("text")]
    assert words[:3] == ["Browser", "Web application", "Database"]
    assert "3. a row <of events>" in words
    assert len(list(svg.iter("path"))) == 2
    for element in svg.iter():
        assert 0 <= float(element.get("x", 0)) <= width
        assert 0 <= float(element.get("y", element.get("y1", 0))) <= height
    assert region.attrib["aria-label"] == svg.attrib["aria-label"] == 'A "run"'
