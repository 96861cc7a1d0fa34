"""The operator's commands: their output and exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runners.datasets.__main__ import main
from runners.datasets.download import DownloadProgress
from tests.unit.runners.datasets.conftest import Server, Tiny, make_later


@pytest.fixture(autouse=True)
def only_tiny(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.datasets.__main__.read_catalog", lambda: {"fashion_mnist": tiny.data_set})


def _run(cache: Path, *arguments: str) -> int:
    return main([f"--cache={cache}", *arguments])


def test_a_list_says_what_sessions_get(tmp_path: Path, tiny: Tiny, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, "list") == 0
    assert " ".join(capsys.readouterr().out.split()) == "fashion_mnist stand-in 0.0 MB Fashion-MNIST; licence: none"
    tiny.put(tmp_path / "fashion_mnist")
    assert _run(tmp_path, "list", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["served"], row["problem"]) == ("real", "")
    (tmp_path / "fashion_mnist" / "x_test.gz").write_bytes(b"")
    assert _run(tmp_path, "list") == 0
    assert "refused" in (out := capsys.readouterr().out)
    assert "x_test.gz: it has 0 bytes instead of" in out


def test_a_fetch_verifies_prepares_and_says_so(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, "fetch", f"--source={server.url}", "fashion_mnist") == 0
    out, err = capsys.readouterr()
    assert out == "Fashion-MNIST: verified and ready.\n"
    assert err.count("verified\n") == 4
    assert (tmp_path / ".prepared" / "fashion_mnist" / "record.json").exists()
    assert _run(tmp_path, "fetch", f"--source={server.url}", "--all") == 0
    assert capsys.readouterr().out == "Fashion-MNIST: already cached and verified.\n"


def test_a_failed_fetch_says_why_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, "fetch", f"--source={tmp_path / 'stick'}", "fashion_mnist") == 1
    assert "cannot be read (No such file or directory). Name a directory that contains it with --source." in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("arguments", [["fetch"], ["fetch", "--all", "fashion_mnist"]])
def test_a_fetch_of_nothing_or_of_all_and_some_is_a_mistake(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, *arguments) == 2
    assert capsys.readouterr().err == "Name data sets, or use --all. Known: fashion_mnist.\n"


def test_an_unknown_name_fails_with_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, "verify", "cifar11") == 1
    assert capsys.readouterr().err == "There is no data set 'cifar11'; known data sets: fashion_mnist.\n"


def test_verify_fails_for_a_changed_byte_and_names_the_file(
    tmp_path: Path, tiny: Tiny, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, "verify") == 0
    assert "its stand-in is served" in capsys.readouterr().out
    folder = tiny.put(tmp_path / "fashion_mnist")
    assert _run(tmp_path, "verify") == 0
    assert capsys.readouterr().out == "fashion_mnist: every file is valid.\n"
    (folder / "y_test.gz").write_bytes(bytes(len(tiny.contents["y_test.gz"])))
    make_later(folder / "y_test.gz")
    assert _run(tmp_path, "verify") == 1
    assert "fashion_mnist/y_test.gz in this node's cache was rejected: its SHA256 is" in capsys.readouterr().err


def test_prepare_says_what_is_ready(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, "prepare") == 0
    assert capsys.readouterr().out == "fashion_mnist: stand-in, ready\n"
    assert _run(tmp_path, "prepare", "fashion_mnist") == 0
    assert _run(tmp_path, "prepare", "fashoin") == 1


def test_an_interrupted_fetch_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("runners.datasets.__main__.Fetcher.fetch", interrupted)
    assert _run(tmp_path, "fetch", "--all") == 130
    assert "are kept for the next fetch" in capsys.readouterr().err


def test_the_module_runs_as_a_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runners.datasets", "list"],
        env={**os.environ, "LOCKSTEP_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("fashion_mnist       stand-in")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [
        *("mnist", "cifar10", "cifar100", "imdb", "boston_housing", "california_housing")
    ]


def test_progress_is_redrawn_on_a_terminal_and_one_line_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    progress = DownloadProgress(sys.stdout)
    progress.begin("x.gz", 2_000_000)
    progress.at(1_000_000)
    progress.end("verified")
    assert capsys.readouterr().out == "x.gz  2.0 MB  verified\n"
    progress._redraws = True
    progress.begin("x.gz", 2_000_000)
    assert capsys.readouterr().out == "\r\x1b[Kx.gz    0 %  0.0 of 2.0 MB"
