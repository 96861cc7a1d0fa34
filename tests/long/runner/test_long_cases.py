"""What the tests on a real runner leave to the long tests: Keras 2, and more attempts to pass an exercise unsolved."""

from __future__ import annotations

import pytest

from tests.factories.long_cases import run_long_cases


@pytest.mark.timeout(1800)
def test_programs_and_judgements_hold_in_every_case() -> None:
    assert " passed" in run_long_cases("tests/functional/runner")
