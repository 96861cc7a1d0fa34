"""What the tests of the application leave to the long tests: the other database, and what needs many processes."""

from __future__ import annotations

import pytest

from tests.factories.long_cases import run_long_cases


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "folders", [["tests/unit"], ["tests/functional", "--ignore=tests/functional/runner"]], ids=" ".join
)
def test_the_application_and_its_commands_hold_in_every_case(folders: list[str]) -> None:
    assert " passed" in run_long_cases(*folders)
