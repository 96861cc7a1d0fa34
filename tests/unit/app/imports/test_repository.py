"""A repository is read as data: nothing in it runs, leads out of it, or grows beyond a limit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from app.imports import repository
from app.imports.report import CannotImport
from app.imports.repository import Address, parse_address, read_repository


def _git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Author", "-c", "user.email=author@example.org", "-c", "protocol.file.allow=always"]
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote"
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "first.md").write_text("# First\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "two.md").write_text("# Two\n")
    return folder


def _commit(folder: Path) -> str:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message=Change")
    return _git(folder, "rev-parse", "HEAD")


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_a_branch_a_tag_and_a_commit_can_be_read(remote: Path, tmp_path: Path) -> None:
    first = _commit(remote)
    _git(remote, "tag", "v1")
    (remote / "first.md").write_text("# Changed\n")
    second = _commit(remote)

    for number, (revision, commit) in enumerate([("", second), ("main", second), ("v1", first), (first, first)]):
        into = tmp_path / f"copy-{number}"
        assert read_repository(Address(f"file://{remote}", revision), into).commit == commit
        assert _files(into) == ["first.md", "sub/two.md"]


def test_links_submodules_and_filters_do_nothing(remote: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    _git(other, "init", "--quiet")
    (other / "inner.md").write_text("# Inner\n")
    _commit(other)
    ran = tmp_path / "ran"
    (remote / ".gitattributes").write_text("*.md filter=evil\n* export-subst\n")
    (remote / "inside.md").symlink_to("sub/two.md")
    (remote / "outside.md").symlink_to("/etc/passwd")
    (remote / "above.md").symlink_to("../secret.md")
    (remote / "folder").symlink_to("sub")
    _git(remote, "submodule", "add", "--quiet", f"file://{other}", "module")
    hook = remote / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    _git(remote, "config", "filter.evil.smudge", f"touch {ran}")
    _commit(remote)
    into = tmp_path / "copy"
    checkout = read_repository(Address(f"file://{remote}"), into)

    assert _files(into) == [".gitattributes", ".gitmodules", "first.md", "inside.md", "sub/two.md"]
    assert (into / "inside.md").read_text() == "# Two\n"
    assert not any(path.is_symlink() for path in into.rglob("*"))
    assert {path for path, _ in checkout.skipped} == {"outside.md", "above.md", "folder", "module"}
    assert not ran.exists()


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("MAX_TREE_FILES", "the repository is too large"),
        ("MAX_TREE_BYTES", "the repository is too large"),
        ("MAX_FETCH_BYTES", "git cannot read"),
        ("TIMEOUT_S", "git took more than"),
    ],
)
def test_a_repository_over_a_limit_is_refused(
    remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, reason: str
) -> None:
    _commit(remote)
    monkeypatch.setattr(repository, limit, 0 if limit == "TIMEOUT_S" else 1)
    with pytest.raises(CannotImport, match=reason):
        read_repository(Address(f"file://{remote}"), tmp_path / "copy")


def test_a_large_file_is_left_out_by_name(remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (remote / "large.bin").write_bytes(b"x" * 100)
    _commit(remote)
    monkeypatch.setattr(repository, "MAX_BLOB_BYTES", 50)
    checkout = read_repository(Address(f"file://{remote}"), tmp_path / "copy")

    assert checkout.skipped == [("large.bin", "it has 100 bytes, and the limit is 50")]


def test_a_repository_that_does_not_exist_is_named(tmp_path: Path) -> None:
    reason = f"git cannot read file://{tmp_path}/none@v1: fatal: .*/none' does not appear to be a git repository"
    with pytest.raises(CannotImport, match=reason):
        read_repository(Address(f"file://{tmp_path}/none", "v1"), tmp_path / "copy")


@pytest.mark.parametrize(
    ("text", "url", "revision"),
    [
        ("https://example.org/owner/name", "https://example.org/owner/name", ""),
        ("https://example.org/owner/name.git@v1.2", "https://example.org/owner/name.git", "v1.2"),
        ("https://user@example.org/owner/name@main", "https://user@example.org/owner/name", "main"),
        ("https://user@example.org/owner/name", "https://user@example.org/owner/name", ""),
        ("ssh://git@example.org:22/owner/name@0a1b2c", "ssh://git@example.org:22/owner/name", "0a1b2c"),
        ("git@example.org:owner/name.git@topic/one", "git@example.org:owner/name.git", "topic/one"),
    ],
)
def test_an_address_may_end_with_a_revision(text: str, url: str, revision: str) -> None:
    assert parse_address(text) == Address(url, revision)


@pytest.mark.parametrize("text", ["notebook.ipynb", "folder", "../folder@home", "/absolute/path"])
def test_a_path_is_not_an_address(text: str) -> None:
    assert parse_address(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c touch% /tmp/ran",
        "git://example.org/name",
        "http://example.org/name",
        "https://-oProxyCommand=x/name",
        "ssh://-oProxyCommand=touch/name",
        "https://example.org/na me",
        "https://example.org/name@--upload-pack=x",
        "https://example.org/name@a..b",
        "https://example.org/name@a:b",
        "https://example.org/name\n@a",
    ],
)
def test_an_address_that_is_not_allowed_is_refused(text: str) -> None:
    with pytest.raises(CannotImport):
        parse_address(text)


def test_a_few_objects_that_name_billions_of_files_are_refused(
    remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = _git(remote, "hash-object", "-w", "first.md")
    kind = "100644 blob"
    for _ in range(8):
        entries = "".join(f"{kind} {name}\tfile-{number}\n" for number in range(10))
        name = _write_tree(remote, entries)
        kind = "040000 tree"
    commit = _git(remote, "commit-tree", "-m", "Bomb", name)
    _git(remote, "update-ref", "refs/heads/main", commit)
    monkeypatch.setattr(repository, "MAX_LISTING_BYTES", 1_000_000)

    with pytest.raises(CannotImport, match="too large"):
        read_repository(Address(f"file://{remote}"), tmp_path / "copy")


def _write_tree(folder: Path, entries: str) -> str:
    command = ["git", "-C", str(folder), "mktree"]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=entries).stdout.strip()


@pytest.mark.parametrize("url", ["git@example.org:owner/name", "ssh://git@example.org/owner/name"])
def test_without_ssh_an_address_that_needs_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotImport, match="SSH is not installed; install it, or use an address"):
        read_repository(Address(url), tmp_path / "copy")


def test_the_line_that_says_why_git_failed_is_shown(tmp_path: Path) -> None:
    with pytest.raises(CannotImport, match=r"fatal: '.*none' does not appear to be a git repository"):
        read_repository(Address(f"file://{tmp_path}/none"), tmp_path / "copy")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_repository_of_another_user_is_refused_with_what_to_do(remote: Path, tmp_path: Path) -> None:
    _commit(remote)
    for path in (remote, *remote.rglob("*")):
        os.chown(path, 62_000, 62_000)
    with pytest.raises(CannotImport, match="it belongs to another user; give it to user 0"):
        read_repository(Address(f"file://{remote}"), tmp_path / "copy")
