"""What the tests of lessons leave to the long tests: other languages, more tries to pass with a mistake by chance."""

from __future__ import annotations

import pytest

from tests.factories.long_cases import VARIABLE, run_long_cases, run_pytest


@pytest.mark.timeout(1800)
def test_no_usual_mistake_passes_in_a_hundred_tries() -> None:
    assert " passed" in run_pytest("tests/lessons/test_chance.py", **{VARIABLE: "1"})


@pytest.mark.timeout(1800)
def test_exports_hold_in_every_case() -> None:
    assert " passed" in run_long_cases("tests/lessons/test_exports.py")
