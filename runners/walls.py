"""Which walls and limits are in force around learner code on this machine."""

from __future__ import annotations

from runners.protocol import Wall
from runners.sandbox.cgroups import Groups
from runners.settings import Limits
from runners.zygotes import Zygote


def walls_of(zygote: Zygote, groups: Groups, limits: Limits) -> list[Wall]:
    """Every wall and every limit, and whether it is in force."""
    version = groups.version
    counted = f"cgroup version {version}" if version else "no cgroup may be written here"
    return [
        Wall(name="outer wall", in_force=zygote.wall != "none", detail=f"{zygote.wall} around the zygote"),
        Wall(name="namespaces", in_force=zygote.ready, detail="user, mount, PID, network, IPC, UTS; own root folder"),
        Wall(name="seccomp", in_force=zygote.ready, detail="libseccomp filter, no capabilities, no new privileges"),
        Wall(
            name="memory limit",
            in_force=True,
            detail=f"{limits.memory_mb} MiB; {counted}" + ("" if version else ": watched four times a second"),
        ),
        Wall(
            name="process limit",
            in_force=True,
            detail=f"{limits.processes}; {counted if version else 'RLIMIT_NPROC'}",
        ),
        Wall(name="CPU limit", in_force=version > 0, detail=f"{limits.cpu_cores:g} cores; {counted}"),
    ]
