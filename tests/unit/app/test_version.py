"""The version of the program, and the commit of a checkout."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from app.version import checkout_commit, described_version


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message=First")
    return tmp_path


def test_the_commit_is_that_of_the_branch_even_when_git_has_packed_it(clone: Path) -> None:
    commit = git(clone, "rev-parse", "HEAD")
    assert checkout_commit(clone) == commit

    git(clone, "pack-refs", "--all")
    assert not (clone / ".git" / "refs" / "heads" / "main").exists()
    assert checkout_commit(clone) == commit

    git(clone, "checkout", "--quiet", "--detach")
    assert checkout_commit(clone) == commit


def test_a_folder_that_is_no_clone_or_a_damaged_one_has_no_commit(tmp_path: Path) -> None:
    assert checkout_commit(tmp_path) == ""
    (tmp_path / ".git").mkdir()
    for head in (b"ref: refs/heads/main\n", b"\xff\xfe", b"", b"not a commit"):
        (tmp_path / ".git" / "HEAD").write_bytes(head)
        assert checkout_commit(tmp_path) == ""


def test_a_clone_without_a_commit_has_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert checkout_commit(tmp_path) == ""


def test_the_version_for_people_begins_with_that_of_the_package() -> None:
    assert described_version().split(",")[0] == version("lockstep")
