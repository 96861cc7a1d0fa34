"""Cases that tests of the main tier leave to the long tests: more windows, languages, versions of Keras, and attacks.

They are marked ``long``. ``tests/long`` runs them in a pytest of its own, which has ``LOCKSTEP_TEST_LONG_CASES`` set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TypeVar

VARIABLE = "LOCKSTEP_TEST_LONG_CASES"
LONG_CASES = bool(os.environ.get(VARIABLE))
_Case = TypeVar("_Case")
_ROOT = Path(__file__).parents[2]
_SUMMARY = " short test summary info "


def long_only(*cases: _Case) -> tuple[_Case, ...]:
    """These cases of a loop in the long tests, and none in the main tier."""
    return cases if LONG_CASES else ()


def run_pytest(*arguments: str, **variables: str) -> str:
    """Run tests in a pytest of their own, with more variables. Returns its report.

    If a test fails, so does this, with the summary, which names all of them, and the end of the report.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--timeout", "1500", *arguments]
    done = subprocess.run(command, cwd=_ROOT, env=os.environ | variables, capture_output=True, text=True, check=False)
    report, summary, failures = done.stdout.rpartition(_SUMMARY)
    assert done.returncode == 0, f"{summary}{failures}\n{report[-8000:]}{done.stderr[-2000:]}"
    return done.stdout


def run_long_cases(*folders: str, marked: str = "long") -> str:
    """Run the long cases of folders, with other options of pytest. Returns its report."""
    return run_pytest("-m", marked, *folders, **{VARIABLE: "1"})
