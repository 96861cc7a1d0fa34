"""The workflows on GitHub: they run commands that anybody can run, with only the right to read, but for a release."""

from __future__ import annotations

import re
import subprocess
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
    more = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    to_publish = {
        "build": {"contents": "read", "packages": "write"},
        "publish": {"packages": "write", "id-token": "write"},
    }
    assert more == (to_publish if workflow["name"] == "release" else {})


def test_only_a_tag_of_a_version_releases_and_nothing_of_it_is_run_as_code() -> None:
    release = read_release()
    assert release[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+*"]}}  # YAML reads `on` as a truth value
    assert not re.search(r"\$\{\{ (?!matrix\.)", commands(release["jobs"]["build"], release["jobs"]["publish"]))


def test_a_release_has_both_architectures_an_inventory_its_origin_and_a_signature() -> None:
    build, publish = read_release()["jobs"]["build"], read_release()["jobs"]["publish"]
    for part in ('--platform "linux/${{ matrix.architecture }}"', "--sbom=true", "--provenance=mode=max", "--push"):
        assert part in commands(build)
    assert publish["needs"] == "build"
    for architecture in build["strategy"]["matrix"]["architecture"]:
        assert f'"$IMAGE:$version-{architecture}"' in commands(publish)
    assert "cosign sign --yes" in commands(publish)
    assert build["strategy"]["matrix"]["image"] == publish["strategy"]["matrix"]["image"]
    for image in build["strategy"]["matrix"]["image"]:
        assert (ROOT / "docker" / f"{image}.Dockerfile").exists()
        assert f"lockstep-{image}:${{LOCKSTEP_VERSION:-0.1.0.dev0}}" in (ROOT / "docker-compose.yml").read_text()


def test_no_architecture_of_a_release_is_emulated() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert "matrix.architecture == 'arm64' && 'ubuntu-24.04-arm'" in text
    assert "qemu" not in text


@pytest.mark.parametrize("prefix", ["", "school/", "registry.example.org/school"])
def test_a_release_without_the_name_of_a_registry_stops_with_a_sentence(prefix: str) -> None:
    (check,) = [step["run"] for step in read_release()["jobs"]["build"]["steps"] if "PREFIX" in step.get("env", {})]
    for value, status in ((prefix, 1), ("registry.example.org/school/", 0)):
        done = subprocess.run(["bash", "-ec", check], env={"PREFIX": value}, capture_output=True, text=True)
        assert done.returncode == status
        assert ("LOCKSTEP_IMAGE_PREFIX to registry/owner/" in done.stdout) == bool(status)


def read_release() -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    return read


def commands(*jobs: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for job in jobs for step in job["steps"])


def test_a_workflow_has_an_end_and_one_run_at_a_time(workflow: dict[str, Any]) -> None:
    assert workflow["concurrency"]["group"]
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())


def test_an_action_is_named_by_the_hash_of_a_commit(workflow: dict[str, Any]) -> None:
    for job in workflow["jobs"].values():
        for action in [step["uses"] for step in job["steps"] if "uses" in step]:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)


def test_a_change_and_a_night_run_what_the_readme_names() -> None:
    checks = [path for path in WORKFLOWS if path.stem != "release"]
    jobs = {path.stem: next(iter(yaml.safe_load(path.read_text())["jobs"].values())) for path in checks}
    last = {name: job["steps"][-1]["run"] for name, job in jobs.items()}
    assert last == {"check": ".ci/run", "nightly": "make test-all"}
    for command in last.values():
        assert (ROOT / command).exists() or re.search(rf"^{command.removeprefix('make ')}:", MAKEFILE, re.MULTILINE)
