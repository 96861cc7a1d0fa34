"""How much memory and how many processes this process and its children may have: what cgroups and the machine allow."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from runners.config.settings import MiB
from runners.sandbox.cgroups import own_paths

_OF_A_WHOLE_MACHINE = 0.75
_ENDLESS = 1 << 60
"""Bytes; cgroup version 1 writes a number larger than this where there is no limit."""
_CGROUPS = Path("/sys/fs/cgroup")
_MEMORY = ("memory.max", "memory.limit_in_bytes")
_PROCESSES = ("pids.max",)


@dataclass(frozen=True, slots=True)
class AvailableResources:
    """What the runner and all its sessions may use together."""

    memory_mb: int
    processes: int | None = None
    """Processes and threads; None if nothing limits them."""
    memory_is_limited: bool = False
    """Whether a cgroup limits the memory, and not only the machine's size."""


def available_resources(root: Path = _CGROUPS, own: Mapping[str, str] | None = None) -> AvailableResources:
    """Find out what this process and its children may use."""
    own = own_paths() if own is None else own
    total = psutil.virtual_memory().total
    memory = min(_limits(root, own, "memory", _MEMORY), default=_ENDLESS)
    processes = min([*_limits(root, own, "pids", _PROCESSES), *_users_processes()], default=None)
    if memory < total:
        return AvailableResources(memory // MiB, processes, memory_is_limited=True)
    return AvailableResources(int(total * _OF_A_WHOLE_MACHINE) // MiB, processes)


def _users_processes() -> list[int]:
    """The process limit of the user that sessions share; empty if the supervisor is root and each has its own."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    return [limit] if os.geteuid() and limit != resource.RLIM_INFINITY else []


def _limits(root: Path, own: Mapping[str, str], controller: str, files: tuple[str, ...]) -> list[int]:
    """The limits around this process: of its own group and all parents; a container may show its group as the root."""
    found = []
    for name in (controller, ""):
        if name not in own:
            continue
        top = root / name
        group = top / own[name].lstrip("/")
        for folder in {top, group, *(parent for parent in group.parents if parent.is_relative_to(top))}:
            for file in files:
                try:
                    text = (folder / file).read_text().strip()
                except OSError:
                    continue
                if text.isdigit() and int(text) < _ENDLESS:
                    found.append(int(text))
    return found
