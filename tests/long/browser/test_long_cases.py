"""Every accessible page on a dark phone and in Korean, and what else the tests in Chromium leave to the long tests."""

from __future__ import annotations

import pytest

from tests.factories.long_cases import run_long_cases


@pytest.mark.timeout(1800)
def test_pages_hold_in_every_window_and_language() -> None:
    assert " passed" in run_long_cases("tests/browser", marked="long or windows")
