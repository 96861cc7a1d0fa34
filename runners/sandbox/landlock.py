"""Landlock: restricts which files a process and its children may access and how, whatever the mounts allow.

A ruleset handles only the rights that the running kernel knows. Kernels before ABI 2 would refuse every rename between
folders. With those, and without Landlock, nothing is restricted and ``abi`` says so.
"""

from __future__ import annotations

import os
import stat
from enum import IntFlag
from functools import cache

from runners.sandbox import linux


class AccessRight(IntFlag):
    """Rights on a file or below a folder, as in linux/landlock.h."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    """Rename or link between folders; ABI 2."""
    TRUNCATE = 1 << 14
    """ABI 3."""
    IOCTL_DEV = 1 << 15
    """ABI 5."""


_MAKE = (
    AccessRight.MAKE_DIR | AccessRight.MAKE_REG | AccessRight.MAKE_SOCK | AccessRight.MAKE_FIFO | AccessRight.MAKE_SYM
)
WRITE = (
    AccessRight.WRITE_FILE
    | AccessRight.TRUNCATE
    | _MAKE
    | AccessRight.REMOVE_DIR
    | AccessRight.REMOVE_FILE
    | AccessRight.REFER
)
"""All rights on a session's own folder, except creating devices."""
OVERWRITE = AccessRight.WRITE_FILE | AccessRight.TRUNCATE
"""Rights on files that exist."""
DEVICE = AccessRight.READ_FILE | OVERWRITE | AccessRight.IOCTL_DEV
_OF_FILES = DEVICE | AccessRight.EXECUTE

_FIRST_USEFUL = 2
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1 << 0, 1 << 1
_QUIET = 1 << 0 | 1 << 2
"""Refusals are not logged, neither of our ruleset nor of one created inside."""


@cache
def abi() -> int:
    """The usable Landlock version; 0 if there is none."""
    version = linux.landlock_abi()
    return version if version >= _FIRST_USEFUL else 0


def handled_rights(version: int) -> tuple[AccessRight, int]:
    """(rights on files, scopes) that a kernel with this ABI can restrict."""
    newer = {3: AccessRight.TRUNCATE, 5: AccessRight.IOCTL_DEV}
    rights = ~AccessRight(0)
    for since, right in newer.items():
        if version < since:
            rights &= ~right
    return rights, _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if version >= 6 else 0


def restrict(rules: tuple[tuple[str, int], ...]) -> None:
    """Restrict this process and its descendants to ``rules``: (path, rights).

    Without rules, nothing is restricted; paths that do not exist are skipped. In addition, abstract Unix sockets and
    signals reach only processes that are restricted by the same ruleset.
    """
    version = abi()
    if not version or not rules:
        return
    rights, scopes = handled_rights(version)
    ruleset = linux.landlock_ruleset(rights, scopes, version)
    try:
        for path, allowed in rules:
            _allow(ruleset, path, rights & allowed)
        linux.landlock_restrict(ruleset, _QUIET if version >= 7 else 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _OF_FILES
        linux.landlock_allow(ruleset, handle, rights)
    finally:
        os.close(handle)
