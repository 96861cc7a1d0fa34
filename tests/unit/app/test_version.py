"""The version of the program, and the commit of a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from app.version import checkout_commit, described_version


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


ROOT = Path(__file__).parents[3]


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


def built_version(folder: Path, **variables: str) -> str:
    """The version that the package gets which is built in a folder."""
    (folder / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    program = (
        "from hatchling.metadata.core import ProjectMetadata as P; from hatchling.plugin.manager import PluginManager"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nprint(P('.', PluginManager()).version)"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_version_is_that_of_the_newest_tag(clone: Path) -> None:
    git(clone, "tag", "v1.4.0")
    git(clone, "commit", "--quiet", "--allow-empty", "--message=Later")
    assert built_version(clone) == "1.4.0"


def test_a_tree_without_git_or_a_tag_has_a_version_unless_one_is_named(clone: Path, tmp_path: Path) -> None:
    assert built_version(clone) == "0.1.0.dev0"
    shutil.rmtree(clone / ".git")
    assert built_version(tmp_path, SETUPTOOLS_SCM_PRETEND_VERSION="") == "0.1.0.dev0"
    assert built_version(tmp_path, SETUPTOOLS_SCM_PRETEND_VERSION="1.2.0") == "1.2.0"
