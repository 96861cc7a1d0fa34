"""The parts of the site that are generated from the code."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from app.lessons.directive_specs import DIRECTIVE_SPECS
from app.lessons.front_matter import _PARSERS
from app.lessons.json_schema import course_schema
from app.lessons.model import CellTag
from app.lessons.roles import ROLES
from docs.reference import PARTS, attribute_docs, fill, settings
from runners.config.settings import Bounds


class Oven(BaseModel):
    """Settings of an oven."""

    heat: Annotated[float, Bounds(50, 250, "degrees")] = 180.0
    """How hot it is, as with ``--heat``.

    The second paragraph
    goes on.
    """
    mode: Literal["fan", "grill"] = "fan"
    """Where the heat comes from."""
    wait_s: int = Field(default=0, ge=0, le=3600)
    """How long to wait."""
    name: str
    """What it is called."""
    light: bool = True
    """Whether it is lit."""


def test_a_setting_shows_its_default_its_bounds_and_its_docstring() -> None:
    page = settings(Oven, "OVEN_")

    assert "{envvar} OVEN_HEAT\nDefault: `180`. Value: 50 to 250 degrees.\n\nHow hot it is, as with `--heat`.\n" in page
    assert "\n\nThe second paragraph goes on.\n````" in page
    assert "OVEN_MODE\nDefault: `fan`. Value: `fan` or `grill`." in page
    assert "OVEN_WAIT_S\nDefault: `0`. Value: 0 to 3,600 seconds." in page
    assert "OVEN_NAME\nrequired." in page
    assert "OVEN_LIGHT\nDefault: `1`. Value: `0` or `1`." in page


def test_docstrings_are_those_below_the_attributes() -> None:
    assert attribute_docs(Oven)["mode"] == "Where the heat comes from."


@pytest.mark.parametrize("name", DIRECTIVE_SPECS)
def test_every_directive_is_in_the_reference_with_each_of_its_options(name: str) -> None:
    section = PARTS["directives"]().partition(f"### `{{{name}}}`\n")[2].partition("\n### ")[0]

    assert section
    assert all(f"`:{option}:`\n: " in section for option in DIRECTIVE_SPECS[name].options)


def test_every_key_of_lessons_and_courses_every_tag_and_role_is_in_the_reference() -> None:
    assert all(f"`{key}`\n: " in PARTS["course file"]() for key in course_schema()["properties"])
    assert all(f"`{key}`\n: " in PARTS["front matter"]() for key in _PARSERS)
    assert all(f"`{tag}`\n: " in PARTS["tags"]() for tag in CellTag)
    assert all(f"`{{{role}}}`\n: " in PARTS["roles"]() for role in ROLES)


def test_a_page_that_asks_for_what_is_not_there_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        fill("<!-- generated: nothing of the kind -->")


def test_a_command_is_shown_as_it_is_typed() -> None:
    page = PARTS["commands"]()

    assert "```sh\nlockstep run [OPTIONS] FILE\n```" in page
    assert "`--role learner|instructor|admin`\n: " in page
    assert "`--password-stdin`\n: " in page
    assert "`--port PORT`\n: " in page
