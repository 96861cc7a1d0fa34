"""The threat model names every isolation layer that the doctor reports, and describes the policy correctly."""

from __future__ import annotations

from pathlib import Path

from runners.config.settings import Limits, RunnerSettings
from runners.diagnostics.inspection import SandboxInspection
from runners.diagnostics.isolation_checks import check_isolation
from runners.sandbox.policy import session_policy

HERE = Path(__file__)
README = (HERE.parents[4] / "runners" / "sandbox" / "README.md").read_text()
ROWS = [line.removeprefix("| ").split(" | ")[0] for line in README.splitlines() if line.startswith("| ")]


def test_every_layer_has_a_row() -> None:
    sight = SandboxInspection.model_validate_json(
        (HERE.parents[1] / "diagnostics" / "inspections" / "plain-user.json").read_text()
    )
    safeguards = [
        safeguard.name
        for safeguard in check_isolation(sight, RunnerSettings(), "bubblewrap")
        if safeguard.kind != "limit"
    ]
    assert len(safeguards) > 10
    assert [name for name in safeguards if not [row for row in ROWS if row.startswith(name)]] == []


def test_figures_are_those_of_the_policy() -> None:
    policy = session_policy(Limits(), None, ())
    assert f"{dict(policy.sysctls)['user/max_inotify_instances']} inotify instances" in README
    assert dict(policy.rlimits)["RLIMIT_CORE"] == 1
    assert "So it is 1" in README
    assert all(f"`{t.path}`" in README or t.path == "/home/learner" for t in policy.tmpfs)
