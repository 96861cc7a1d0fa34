"""Every property that the main tier tests on a few fixed examples, on many more random ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories.hypothesis_examples import VARIABLE

TIMES = os.environ.get(VARIABLE, "3")
ROOT = Path(__file__).parents[3]
DRAWN = ("tests/functional/test_arbitrary_requests.py", "tests/long/fuzz/fuzz_openapi.py")
"""They draw their examples beforehand, so hypothesis does not mark their tests."""


def more(*arguments: str) -> str:
    """Run those tests on this many times as many examples. Returns pytest's report."""
    command = [sys.executable, "-m", "pytest", "-q", "--timeout", "1500", *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {VARIABLE: TIMES}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.timeout(3600)
def test_no_example_of_many_breaks_a_property() -> None:
    assert " passed" in more("-m", "hypothesis", "tests/unit")


@pytest.mark.timeout(3600)
def test_no_request_of_many_makes_the_server_fail() -> None:
    assert " passed" in more(*DRAWN)
