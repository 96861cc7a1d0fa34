"""Folders that only root may enter, such as a clone in its home: how another user reaches what it needs below them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runners.sandbox import linux

_STAGE = Path("/mnt")


def cover_closed_folders(needed: Sequence[Path]) -> None:
    """Let every user enter the needed folders, and no others below a folder that only root may enter.

    In a mount namespace of its own, such a folder becomes an empty one with the needed folders in it.

    Raises:
        OSError: this process may not mount anything.
    """
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("none", str(_STAGE), "tmpfs", 0)
    for number, folder in enumerate(needed):
        (_STAGE / str(number)).mkdir()
        linux.mount(str(folder), str(_STAGE / str(number)), None, linux.MS_BIND | linux.MS_REC)
    covered: list[Path] = []
    for folder in sorted(needed):  # a needed one may hold a closed one that holds a needed one: a clone and its data
        if at := closed_at(folder):
            linux.mount("none", str(at), "tmpfs", 0, "mode=755")
            covered.append(at)
        if any(folder.is_relative_to(at) for at in covered):
            folder.mkdir(parents=True, exist_ok=True)
            stage = _STAGE / str(needed.index(folder))
            linux.mount(str(stage), str(folder), None, linux.MS_BIND | linux.MS_REC)


def closed_at(folder: Path) -> Path | None:
    """The outermost folder on the path that other users may not enter."""
    return next((at for at in reversed(folder.parents) if not at.stat().st_mode & 0o001), None)
