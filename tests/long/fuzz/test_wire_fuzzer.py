"""The coverage-guided fuzzer finds nothing within its time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ_S = int(os.environ.get("LOCKSTEP_TEST_FUZZ_S", "30"))
"""Seconds in which the fuzzer makes up inputs."""


@pytest.mark.timeout(FUZZ_S + 120)
def test_no_input_makes_the_wire_fail_or_hold_more_than_it_may(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris has wheels for Linux on x86-64 only")
    program = Path(__file__).with_name("fuzz_wire.py")
    command = [
        sys.executable,
        str(program),
        f"-max_total_time={FUZZ_S}",
        "-max_len=4096",
        f"-artifact_prefix={tmp_path}/",
    ]

    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-5000:]
    features = [int(number) for number in re.findall(r"cov: \d+ ft: (\d+)", done.stderr)]
    assert features[-1] > 2 * features[0], "it went deep, not only past the door"
