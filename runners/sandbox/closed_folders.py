"""Folders that only root may enter, such as a clone in its home: how another user reaches what it needs below them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from runners.sandbox import linux


def cover_closed_folders(needed: Sequence[Path]) -> None:
    """Let every user enter the needed folders, and no others below a folder that only root may enter.

    In a mount namespace of its own, such a folder becomes an empty one with the needed folders in it.

    Raises:
        OSError: this process may not mount anything.
    """
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    with ExitStack() as opened:
        handles: dict[Path, int] = {}  # they lead to the folders even when those are covered
        for folder in needed:
            handles[folder] = os.open(folder, os.O_PATH | os.O_DIRECTORY)
            opened.callback(os.close, handles[folder])
        covered: list[Path] = []
        for folder in sorted(handles):  # one may hold a closed folder that holds another: a clone and its data
            if at := closed_at(folder):
                linux.mount("none", str(at), "tmpfs", 0, "mode=755")
                covered.append(at)
            if any(folder.is_relative_to(at) for at in covered):
                folder.mkdir(parents=True, exist_ok=True)
                source = f"/proc/self/fd/{handles[folder]}"
                linux.mount(source, str(folder), None, linux.MS_BIND | linux.MS_REC)


def closed_at(folder: Path) -> Path | None:
    """The outermost folder on the path that other users may not enter. What is covered already need not be there."""
    return next((at for at in reversed(folder.parents) if at.exists() and not at.stat().st_mode & 0o001), None)
