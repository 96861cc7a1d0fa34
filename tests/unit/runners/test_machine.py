"""Looking at the machine that runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys

from runners.protocol import Machine


def test_the_survey_is_a_program_that_needs_no_settings_and_says_what_to_do_about_all_it_misses() -> None:
    command = [sys.executable, "-m", "runners.machine"]
    environment = os.environ | {"LOCKSTEP_MAX_SESSIONS": "nonsense"}
    said = subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment).stdout
    offers = {offer.name: offer for offer in Machine.model_validate_json(said).offers}

    assert offers["kernel"].good
    assert "tensorflow 2" in offers["Python"].detail
    assert {
        "user namespaces",
        "seccomp",
        "Landlock",
        "cgroups",
        "bubblewrap",
        "CPUs",
        "memory",
        "GPUs",
    } <= offers.keys()
    assert all(offer.good or offer.means for offer in offers.values())
