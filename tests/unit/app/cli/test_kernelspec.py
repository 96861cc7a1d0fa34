"""``lockstep kernelspec`` passes everything on to the runner's tool: arguments, paths and exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.kernelspec import app
from app.settings import Settings

USUAL_NAMES = {
    "lockstep-cpu",
    "lockstep-gpu-2",
    "lockstep-gpu-4",
    "lockstep-gpu-4-keras-2",
    "lockstep-gpu-8",
    "lockstep-ps-2-1",
    "lockstep-ps-2-2",
    "lockstep-tpu-8",
    "lockstep-workers-2",
    "lockstep-workers-2xgpu-2",
    "lockstep-workers-3",
}


def _run(*arguments: str) -> int:
    return CliRunner().invoke(app, list(arguments)).exit_code


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("LOCKSTEP_RUNNER_SOCKET", "JUPYTER_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    return tmp_path


def _spec(folder: Path, name: str) -> dict[str, object]:
    return dict(json.loads((folder / "kernels" / name / "kernel.json").read_text()))


def test_the_usual_kernels_are_for_the_user_and_know_where_lockstep_is(data_dir: Path) -> None:
    assert _run("install") == 0

    kernels = data_dir / "jupyter" / "kernels"
    assert {k.name for k in kernels.iterdir()} == USUAL_NAMES
    spec = _spec(data_dir / "jupyter", "lockstep-gpu-4")
    assert spec["display_name"] == "Lockstep, 4 simulated GPUs"
    assert spec["metadata"] == {
        "debugger": False,
        "kernel_provisioner": {
            "provisioner_name": "lockstep-zygote",
            "config": {
                "topology": "gpu:4",
                "keras": 3,
                "socket": str(Settings.read().socket),
                "python": sys.executable,
                "data_dir": str(data_dir / "data"),
            },
        },
    }
    assert (kernels / "lockstep-cpu" / "logo-svg.svg").read_text().startswith("<svg")


def test_a_kernel_of_ones_own_has_its_machine_name_and_place(data_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    place = data_dir / "elsewhere"
    assert _run("install", "--topology", "gpu:2", "--keras", "2", "--name", "mine", "--prefix", str(place)) == 0

    spec = _spec(place / "share" / "jupyter", "mine")
    assert spec["display_name"] == "Lockstep, 2 simulated GPUs, Keras 2"
    assert capfd.readouterr().out.endswith(f"export JUPYTER_PATH={place}/share/jupyter\n")


def test_kernels_are_listed_and_removed_and_anothers_are_left_alone(
    data_dir: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = data_dir / "jupyter" / "kernels" / "other"
    other.mkdir(parents=True)
    (other / "kernel.json").write_text('{"argv": ["x"], "display_name": "Other", "language": "x"}')
    assert _run("install") == 0
    capfd.readouterr()

    assert _run("list", "--json") == 0
    assert set(json.loads(capfd.readouterr().out)) == USUAL_NAMES
    assert _run("remove", "other") == 2
    assert "No Lockstep kernel named other is installed" in capfd.readouterr().err
    assert _run("remove", "--all") == 0
    assert [k.name for k in other.parent.iterdir()] == ["other"]
    capfd.readouterr()
    assert _run("remove", "--all") == 0
    assert "Nothing to remove" in capfd.readouterr().out
    assert _run("list") == 0
    assert "run `lockstep kernelspec install`" in capfd.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--topology", "gpu:9"], "possible: cpu, gpu:1 … gpu:8"),
        (["--name", "mine"], "--name needs a single kernel"),
        (["--topology", "cpu", "--name", "a b"], "Kernel names can only contain"),
        (["--topology", "cpu", "--prefix", "/proc/x"], "cannot be installed"),
    ],
)
def test_what_cannot_be_installed_is_refused_with_a_sentence(
    arguments: list[str], complaint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _run("install", *arguments) == 2
    error = capfd.readouterr().err
    assert complaint in error
    assert "Traceback" not in error


def test_two_places_are_one_too_many() -> None:
    result = CliRunner().invoke(app, ["install", "--user", "--sys-prefix"])
    assert result.exit_code == 2
    assert "one of --user, --prefix, and --sys-prefix" in result.output


def test_without_the_runners_packages_a_sentence_says_where_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr(subprocess, "run", lambda *_: pytest.fail("nothing to run"))
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 1
    assert "packages are not installed here" in result.output
