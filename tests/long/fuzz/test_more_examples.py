"""Every property that the main tier tests on a few fixed examples, on many more random ones."""

from __future__ import annotations

import os

import pytest

from tests.factories import long_cases
from tests.factories.hypothesis_examples import VARIABLE
from tests.factories.long_cases import run_pytest

TIMES = os.environ.get(VARIABLE, "3")
DRAWN = ("tests/functional/test_arbitrary_requests.py", "tests/long/fuzz/fuzz_openapi.py")
"""They draw their examples beforehand, so hypothesis does not mark their tests."""


@pytest.mark.timeout(3600)
def test_no_example_of_many_breaks_a_property() -> None:
    assert " passed" in run_pytest("-m", "hypothesis", "tests/unit", **{VARIABLE: TIMES})


@pytest.mark.timeout(3600)
def test_no_request_of_many_makes_the_server_fail() -> None:
    assert " passed" in run_pytest(*DRAWN, **{VARIABLE: TIMES, long_cases.VARIABLE: "1"})
