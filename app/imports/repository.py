"""Reads one commit of a git repository, without running or following anything that is in it.

Git only fetches, into a new bare repository with no configuration but ours. There is no checkout: the files come out of
``git cat-file`` one by one, so no hook, filter or LFS smudge runs, submodules are not visited, and no symbolic link is
created. Protocols are those of an allow-list, nothing asks for a password, and time, files and bytes are limited.
"""

from __future__ import annotations

import os
import posixpath
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from app.imports.report import CannotImport
from app.imports.source_tree import LFS_POINTER

PROTOCOLS = ("https", "ssh", "file")
MAX_FETCH_BYTES = 1_000_000_000
"""Of what git downloads: one pack, so one file."""
MAX_TREE_BYTES = 1_000_000_000
MAX_TREE_FILES = 20_000
MAX_BLOB_BYTES = 64_000_000
MAX_LISTING_BYTES = 20_000_000
"""Of the names of all files: a few objects can name a tree of billions."""
_MAX_BATCH_BYTES = MAX_BLOB_BYTES + 10_000_000
_MAX_SAID_BYTES = 4_000
TIMEOUT_S = 300
_SCP_ADDRESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^\s:][^\s]*")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_UNSAFE_NAMES = frozenset({"", ".", "..", ".git"})


@dataclass(slots=True)
class Checkout:
    """The files of one commit."""

    commit: str
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """Paths that were left out, and why."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a repository is, and which branch, tag or commit of it is wanted; empty for the default branch."""

    url: str
    revision: str = ""

    def __str__(self) -> str:
        url = re.sub(r"//[^/@]*@", "//", self.url)  # without a name and password
        return f"{url}@{self.revision}" if self.revision else url


def parse_address(text: str) -> Address | None:
    """An address such as ``https://host/owner/name@v2``; None if the text is not the address of a repository.

    Raises:
        CannotImport: it is one that is not allowed.
    """
    scheme, colons, rest = text.partition("://")
    if not colons and "::" in text.partition("/")[0]:
        raise CannotImport(f"'{text[:80]}' is not an allowed address; use https://…, ssh://… or git@host:path")
    if colons:
        if scheme.lower() not in PROTOCOLS:
            raise CannotImport(f"'{scheme[:20]}://' is not an allowed protocol; use {', '.join(PROTOCOLS)}")
        url, _, revision = rest.rpartition("@") if "@" in rest.partition("/")[2] else (rest, "", "")
        url = f"{scheme.lower()}://{url}"
    elif _SCP_ADDRESS.fullmatch(text):
        host, _, path = text.partition(":")
        path, _, revision = path.partition("@")
        url = f"{host}:{path}"
    else:
        return None
    if any(character.isspace() or not character.isprintable() for character in url) or "://-" in url:
        raise CannotImport("the address contains characters that no repository's address has")
    return Address(url, check_revision(revision) if revision else "")


def check_revision(revision: str) -> str:
    """The name of a branch or tag, or a commit.

    Raises:
        CannotImport: no revision has such a name.
    """
    if not _REVISION.fullmatch(revision) or ".." in revision or revision.endswith((".lock", "/", ".")):
        raise CannotImport(f"'{revision[:60]}' is not a branch, a tag or a commit")
    return revision


def read_repository(address: Address, into: Path) -> Checkout:
    """Fetch one commit, and write its files into the folder ``into``, which is created.

    Raises:
        CannotImport: git failed, or something is over a limit.
    """
    if not address.url.startswith(("https://", "file://")) and shutil.which("ssh") is None:
        raise CannotImport("SSH is not installed; install it, or use an address that begins with https://")
    deadline = time.monotonic() + TIMEOUT_S
    # Beside the result: in a container, the usual folder for temporary files is memory.
    with tempfile.TemporaryDirectory(prefix="lockstep-git-", dir=into.parent) as temporary:
        git = _Git(Path(temporary) / "repository", deadline)
        git.run("init", "--quiet", "--bare", "--template=", str(git.folder), inside=False)
        git.run(
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--",
            address.url,
            f"{address.revision or 'HEAD'}:refs/heads/fetched",
            about=str(address),
            most=MAX_FETCH_BYTES,
        )
        commit = git.run("rev-parse", "--verify", "refs/heads/fetched^{commit}").decode().strip()
        checkout = Checkout(commit)
        _write_tree(git, _list_tree(git, commit, checkout), into, checkout)
    return checkout


@dataclass(frozen=True, slots=True)
class _Blob:
    mode: str
    name: str
    size: int


class _Git:
    """Runs git in one bare repository."""

    def __init__(self, folder: Path, deadline: float) -> None:
        self.folder = folder
        self._deadline = deadline

    def run(
        self, *arguments: str, inside: bool = True, stdin: bytes = b"", about: str = "", most: int = _MAX_BATCH_BYTES
    ) -> bytes:
        """The output of a git command, which may write ``most`` bytes: to its output or to any other file.

        Raises:
            CannotImport: it failed, wrote too much, or took too long.
        """
        place = ["--git-dir", str(self.folder)] if inside else []
        command = ["git", *_options(), *place, *arguments]
        beside = self.folder.parent
        with tempfile.TemporaryFile(dir=beside) as output, tempfile.TemporaryFile(dir=beside) as errors:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=errors,
                    env=_environment(os.environ),
                    start_new_session=True,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
                )
            except FileNotFoundError as e:
                raise CannotImport("git is not installed; install it, or import a folder") from e
            try:
                process.communicate(stdin, timeout=max(0.0, self._deadline - time.monotonic()))
            except subprocess.TimeoutExpired as e:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise CannotImport(f"git took more than {TIMEOUT_S} s; try again, or import a folder") from e
            if output.seek(0, os.SEEK_END) >= most:
                raise CannotImport("the repository is too large; import a folder of it")
            if process.returncode:
                raise CannotImport(f"git cannot read {about or self.folder}: {_reason(errors) or 'it was ended'}")
            output.seek(0)
            return output.read()


def _reason(file: IO[bytes]) -> str:
    """Why git failed: the first line that names an error, or else is no warning. The last ones are general advice."""
    file.seek(0)
    text = file.read(_MAX_SAID_BYTES).decode("utf-8", "replace")
    if "detected dubious ownership" in text:
        return f"it belongs to another user; give it to user {os.geteuid()}"
    lines = [line.strip() for line in text.splitlines() if not line.startswith(("warning:", "hint:"))]
    said = (*(line for line in lines if line.startswith(("fatal:", "error:"))), *filter(None, lines), "")
    return said[0][:300]


def _options() -> list[str]:
    allowed = [option for name in PROTOCOLS for option in ("-c", f"protocol.{name}.allow=always")]
    return [
        "-c", "core.hooksPath=/dev/null",
        "-c", "protocol.allow=never",
        *allowed,
        "-c", "fetch.unpackLimit=1",
        "-c", "fetch.fsckObjects=true",
        "-c", "fetch.fsck.zeroPaddedFilemode=ignore",
        "-c", "submodule.recurse=false",
        "-c", "credential.helper=",
        "-c", "gc.auto=0",
        "-c", "safe.directory=*",
    ]  # fmt: skip


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment without git's own variables; proxies and SSH's agent stay."""
    kept = {name: value for name, value in variables.items() if not name.startswith("GIT_")}
    return kept | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS": "false",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=30",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }


# --- files -----------------------------------------------------------------------------------------------------------


def _list_tree(git: _Git, commit: str, checkout: Checkout) -> dict[PurePosixPath, _Blob]:
    blobs: dict[PurePosixPath, _Blob] = {}
    links: dict[PurePosixPath, _Blob] = {}
    total = 0
    listing = git.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit, most=MAX_LISTING_BYTES)
    for entry in listing.split(b"\0"):
        if not entry:
            continue
        about, _, raw = entry.partition(b"\t")
        mode, _kind, name, size = about.decode().split()
        where = raw.decode("utf-8", "replace")
        reason = _refusal(mode, size, where)
        if reason:
            checkout.skipped.append((where, reason))
            continue
        (links if mode == "120000" else blobs)[PurePosixPath(where)] = _Blob(mode, name, int(size))
        total += int(size)
        if len(blobs) + len(links) > MAX_TREE_FILES or total > MAX_TREE_BYTES:
            limits = f"{MAX_TREE_FILES:,} files and {MAX_TREE_BYTES:,} bytes"
            raise CannotImport(f"the repository is too large: the limits are {limits}; import a folder of it")
    for path, link in links.items():
        target = _link_target(git, path, link)
        if target in blobs:
            blobs[path] = blobs[target]
        else:
            checkout.skipped.append((str(path), "a symbolic link to something that is not a file of the repository"))
    return blobs


def _refusal(mode: str, size: str, path: str) -> str:
    """Why an entry is left out; empty if it is not."""
    if mode == "160000":
        return "a submodule, which is not fetched"
    if any(part.lower() in _UNSAFE_NAMES for part in path.split("/")) or "\\" in path or not path.isprintable():
        return "its name is not a safe file name"
    if mode not in ("100644", "100755", "120000"):
        return f"an entry of mode {mode}"
    if int(size) > MAX_BLOB_BYTES:
        return f"it has {int(size):,} bytes, and the limit is {MAX_BLOB_BYTES:,}"
    return ""


def _link_target(git: _Git, path: PurePosixPath, link: _Blob) -> PurePosixPath | None:
    if link.size > 4096:
        return None
    text = git.run("cat-file", "blob", link.name).decode("utf-8", "replace")
    return None if text.startswith("/") else PurePosixPath(posixpath.normpath(posixpath.join(str(path.parent), text)))


def _write_tree(git: _Git, blobs: Mapping[PurePosixPath, _Blob], into: Path, checkout: Checkout) -> None:
    into.mkdir()
    pending: list[tuple[PurePosixPath, _Blob]] = []
    for item in blobs.items():
        if pending and sum(blob.size for _, blob in pending) + item[1].size > MAX_BLOB_BYTES:
            _write_files(git, pending, into, checkout)
            pending = []
        pending.append(item)
    _write_files(git, pending, into, checkout)


def _write_files(git: _Git, files: list[tuple[PurePosixPath, _Blob]], into: Path, checkout: Checkout) -> None:
    """Write some files, with one run of git."""
    output = git.run("cat-file", "--batch", stdin="".join(f"{blob.name}\n" for _, blob in files).encode())
    at = 0
    for path, blob in files:
        start = output.index(b"\n", at) + 1  # behind a line of name, type and size
        at = start + blob.size + 1
        file = into / path
        if output.startswith(LFS_POINTER, start):
            reason = "it is only a pointer of Git LFS, whose files are not fetched; store the file itself in Git"
            checkout.skipped.append((str(path), reason))
            continue
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as out:
                out.write(output[start : start + blob.size])
        except (FileExistsError, NotADirectoryError):  # two names that the file system cannot tell apart
            checkout.skipped.append((str(path), "another file has the same name here"))
