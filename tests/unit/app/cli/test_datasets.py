"""``lockstep datasets`` passes everything on to the runner's tool: arguments, data directory and exit status."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.datasets import app


def _run(*arguments: str) -> int:
    return CliRunner().invoke(app, list(arguments)).exit_code


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(tmp_path))
    return tmp_path


def test_the_real_tool_lists_the_cache_of_the_data_directory(data_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (data_dir / "datasets" / "fashion_mnist").mkdir(parents=True)
    assert _run("list") == 0
    assert "train-images-idx3-ubyte.gz: it is missing" in capfd.readouterr().out


def test_the_exit_status_of_the_real_tool_is_ours(data_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (data_dir / "datasets" / "fashion_mnist").mkdir(parents=True)
    assert _run("verify") == 1
    assert _run("fetch") == 2
    assert "Name data sets, or use --all" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "handed"),
    [
        (["list", "--json"], ["list", "--json"]),
        (["fetch", "a", "b"], ["fetch", "--", "a", "b"]),
        (["fetch", "--all", "--source", "--x"], ["fetch", "--all", "--source=--x", "--"]),
        (["verify", "--", "-a"], ["verify", "--", "-a"]),
    ],
)
def test_arguments_are_handed_over_as_they_are(
    arguments: list[str], handed: list[str], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        seen.append(command)
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", run)
    assert _run(*arguments) == 3
    assert seen[0][1:] == ["-m", "runners.datasets", f"--cache={data_dir / 'datasets'}", *handed]


def test_without_the_runners_packages_a_sentence_says_where_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    answer = CliRunner().invoke(app, ["list"])
    assert answer.exit_code == 1
    assert (
        answer.stderr
        == "The runner's packages are not installed here. Run this command where the runner is installed.\n"
    )


def test_a_data_directory_setting_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_LOG_LEVEL", "shout")
    answer = CliRunner().invoke(app, ["list"])
    assert answer.exit_code == 2
    assert "LOCKSTEP_LOG_LEVEL" in answer.stderr
