"""The workflows on GitHub: they run commands that anybody can run, with only the right to read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def workflow(request: pytest.FixtureRequest) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(request.param.read_text())
    return read


def test_a_workflow_may_only_read(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())


def test_a_workflow_has_an_end_and_one_run_at_a_time(workflow: dict[str, Any]) -> None:
    assert workflow["concurrency"]["group"]
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())


def test_an_action_is_named_by_the_hash_of_a_commit(workflow: dict[str, Any]) -> None:
    for job in workflow["jobs"].values():
        for action in [step["uses"] for step in job["steps"] if "uses" in step]:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)


def test_a_change_and_a_night_run_what_the_readme_names() -> None:
    last = {path.stem: yaml.safe_load(path.read_text())["jobs"].popitem()[1]["steps"][-1]["run"] for path in WORKFLOWS}
    assert last == {"check": ".ci/run", "nightly": "make test-all"}
    for command in last.values():
        assert (ROOT / command).exists() or re.search(rf"^{command.removeprefix('make ')}:", MAKEFILE, re.MULTILINE)
