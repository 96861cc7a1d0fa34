"""Judges which isolation layers are in force, from what ``runners.diagnostics.inspection`` observed. Pure.

A layer is in force only if the operating system shows it on a real sandbox; that it was requested proves nothing.
``essential`` layers and limits decide whether untrusted code may run. ``means`` explains the consequence of a missing
one and what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runners.config.settings import ACCEPTANCE, RunnerSettings
from runners.diagnostics.inspection import NAMESPACES, InspectedProcess, MountEntry, SandboxInspection
from runners.diagnostics.limit_checks import check_limits
from runners.wire.protocol import Safeguard

UNSAFE_MESSAGE = (
    "No code is run here: untrusted users can reach this server, and an isolation layer or a limit around their code "
    "is missing. The operator can run 'lockstep doctor' for details."
)
"""The message for a learner who presses Run."""

_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_OWN_KINDS = frozenset({"tmpfs", "devpts", "proc", "mqueue"})
_HARMLESS_DEVICES = frozenset(f"/{name}" for name in ("null", "zero", "full", "random", "urandom"))
_NAMESPACES_REFUSED = (
    "Code could reach beyond its session. Allow ordinary users to create namespaces: sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile that allows them (Ubuntu), sysctl "
    "user.max_user_namespaces=15000; in a container docker/runner.seccomp.json."
)


def check_isolation(sight: SandboxInspection, settings: RunnerSettings, outer: str) -> list[Safeguard]:
    """Check every isolation layer and limit.

    Args:
        sight: an inspected sandbox.
        settings: the runner's settings; only the operator's declaration about the outer sandbox is used.
        outer: the outer sandbox in which the zygote was started, ``bubblewrap`` or ``none``.
    """
    return [
        _bubblewrap(sight) if outer == "bubblewrap" else _container(sight, asserted=settings.outer_sandbox == "none"),
        _user_namespace(sight),
        _own_root(sight),
        _pid_namespace(sight),
        _network(sight),
        _ipc_and_uts(sight),
        _plain_user(sight),
        _no_capabilities(sight),
        _no_new_privileges(sight),
        _seccomp(sight),
        _hidden_init(sight),
        _landlock(sight),
        _own_proc(sight),
        *check_limits(sight, settings),
    ]


def find_gaps(safeguards: Iterable[Safeguard]) -> list[Safeguard]:
    """Filter the safeguards that untrusted code needs and that are not in force."""
    return [safeguard for safeguard in safeguards if safeguard.is_gap]


def why_unsafe(safeguards: Iterable[Safeguard], settings: RunnerSettings) -> str:
    """Tell the operator in a sentence why this runner must not run any code; empty if it may."""
    gaps = find_gaps(safeguards)
    if not settings.untrusted_users or not gaps or settings.unsafe_runner == ACCEPTANCE:
        return ""
    names = ", ".join(safeguard.name for safeguard in gaps)
    return (
        "Untrusted users can reach this server, so it runs no code until its isolation is complete: 'lockstep doctor' "
        f"says what to do. Missing: {names}."
    )


# --- the outer sandbox ------------------------------------------------------------------------------------------


_FILTERS = 2
"""Seccomp filters of a sandbox, in addition to those of the zygote."""
_NO_OUTER_SANDBOX = (
    "A bug in the sandbox setup would expose this machine. As root: apt-get install bubblewrap; then restart the "
    "runner. In its own container without a network: LOCKSTEP_OUTER_SANDBOX=none, as an unprivileged user; a runner "
    "started as root needs bubblewrap."
)


def _bubblewrap(sight: SandboxInspection) -> Safeguard:
    apart = [n for n in ("mnt", "net", "ipc", "uts") if _apart(sight.zygote, sight.supervisor, n)]
    plain = _outside_uid(sight.zygote) not in ("", "0")
    good = len(apart) == 4 and plain and sight.zygote.interfaces == ("lo",)
    detail = f"bubblewrap: the zygote is uid {_outside_uid(sight.zygote) or '?'} and has {', '.join(apart)} of its own"
    return Safeguard(name="outer sandbox", in_force=good, detail=detail, essential=True, means=_NO_OUTER_SANDBOX)


def _container(sight: SandboxInspection, *, asserted: bool) -> Safeguard:
    """A container counts if the operator declares it as the outer sandbox and every check of that claim passes."""
    if not asserted:
        detail = "none: bubblewrap was not found, and no container was declared as the outer sandbox"
        return Safeguard(name="outer sandbox", in_force=False, detail=detail, essential=True, means=_NO_OUTER_SANDBOX)
    me = sight.supervisor
    checks = {
        "there is no sign of a container": bool(sight.container),
        "the runner is root": _outside_uid(me) not in ("", "0"),
        f"it has a network ({', '.join(me.interfaces)})": me.interfaces == ("lo",),
        "it has capabilities": not _capabilities(me, ("CapPrm", "CapEff", "CapBnd")),
        "it may gain privileges": me.status.get("NoNewPrivs") == "1",
        "it has no seccomp filter": me.status.get("Seccomp") == "2",
    }
    wrong = [what for what, fine in checks.items() if not fine]
    found = f"container ({sight.container}), no network, uid {_outside_uid(me)}, no capabilities, a seccomp filter"
    means = (
        "LOCKSTEP_OUTER_SANDBOX=none declares that a container isolates the runner, but none does. Start it "
        "as in docker-compose.yml: an unprivileged user, network_mode none, cap_drop ALL, no-new-privileges, a seccomp "
        "profile."
    )
    detail = f"a container was declared as the outer sandbox, but: {'; '.join(wrong)}" if wrong else found
    return Safeguard(name="outer sandbox", in_force=not wrong, detail=detail, essential=True, means=means)


# --- the isolation layers of each session -----------------------------------------------------------------------


def _user_namespace(sight: SandboxInspection) -> Safeguard:
    kernel = sight.kernel
    words = kernel.uid_map.split()
    one = len(words) == 3 and words[2] == "1"
    detail = (
        f"its own, with one user: {words[0]} inside, {words[1]} outside" if one else f"maps {kernel.uid_map or '?'}"
    )
    return _namespace("user namespace", one and _apart(kernel, sight.supervisor, "user"), detail)


def _own_root(sight: SandboxInspection) -> Safeguard:
    kernel = sight.kernel
    root = next((mount for mount in reversed(kernel.mounts) if mount.point == "/"), None)
    foreign = [m.point for m in kernel.mounts if "ro" not in m.options and not _is_own(m)]
    own = root is not None and root.kind == "tmpfs" and "ro" in root.options
    if not kernel.mounts:
        detail = "its mounts cannot be read"
    elif foreign:
        detail = f"it can write to {', '.join(foreign)}"
    else:
        files = sum(m.kind not in _OWN_KINDS for m in kernel.mounts)
        detail = f"a root of its own; {files} folders and files of the host, read-only" if own else "the host's root"
    return _namespace("mount namespace", own and not foreign and _apart(kernel, sight.supervisor, "mnt"), detail)


def _is_own(mount: MountEntry) -> bool:
    """Whether a mount is private to the session, or is one of the devices that store nothing."""
    return mount.kind in _OWN_KINDS or (mount.kind == "devtmpfs" and mount.root in _HARMLESS_DEVICES)


def _pid_namespace(sight: SandboxInspection) -> Safeguard:
    depth = [len(p.status.get("NSpid", "").split()) for p in (sight.kernel, sight.supervisor)]
    first = sight.init.status.get("NSpid", "").split()[-1:] == ["1"]
    detail = "sees and signals only its own processes" if depth[0] > depth[1] else "sees other processes"
    return _namespace("PID namespace", depth[0] > depth[1] > 0 and first, detail)


def _network(sight: SandboxInspection) -> Safeguard:
    kernel = sight.kernel
    detail = f"interfaces: {', '.join(kernel.interfaces) or '?'}"
    alone = kernel.interfaces == ("lo",) and _apart(kernel, sight.supervisor, "net")
    return _namespace("network namespace", alone, detail + (", its own" if alone else ""))


def _ipc_and_uts(sight: SandboxInspection) -> Safeguard:
    apart = [name for name in ("ipc", "uts") if _apart(sight.kernel, sight.supervisor, name)]
    detail = (
        "no access to others' shared memory or abstract sockets" if len(apart) == 2 else f"apart: {apart or 'none'}"
    )
    return _namespace("IPC, UTS namespaces", len(apart) == 2, detail)


def _namespace(name: str, in_force: bool, detail: str) -> Safeguard:
    return Safeguard(name=name, in_force=in_force, detail=detail, essential=True, means=_NAMESPACES_REFUSED)


def _plain_user(sight: SandboxInspection) -> Safeguard:
    uids = {uid for process in (sight.init, sight.kernel) for uid in process.status.get("Uid", "0").split()}
    means = "Code that escapes its session is root. Start the runner as an unprivileged user, or report this as a bug."
    detail = f"uid {', '.join(sorted(uids))} outside"
    return Safeguard(name="plain user", in_force="0" not in uids, detail=detail, essential=True, means=means)


def _no_capabilities(sight: SandboxInspection) -> Safeguard:
    held = [f"{name} {value}" for p in (sight.init, sight.kernel) for name, value in _capabilities(p, _CAPABILITIES)]
    detail = f"PID 1 and kernel hold {'; '.join(held)}" if held else "PID 1 and kernel hold none and can gain none"
    means = "Code has rights over its mounts and network, where kernel exploits start. Report this as a bug."
    return Safeguard(name="no capabilities", in_force=not held, detail=detail, essential=True, means=means)


def _no_new_privileges(sight: SandboxInspection) -> Safeguard:
    good = all(process.status.get("NoNewPrivs") == "1" for process in (sight.init, sight.kernel))
    means = "Set-uid programs give code more rights. Report this as a bug."
    detail = "set-uid programs give no rights" if good else "set-uid programs work"
    return Safeguard(name="no_new_privs", in_force=good, detail=detail, essential=True, means=means)


def _seccomp(sight: SandboxInspection) -> Safeguard:
    modes = [process.status.get("Seccomp", "?") for process in (sight.init, sight.kernel)]
    means = (
        "Code can attack every system call of the kernel. As root: apt-get install libseccomp2; the kernel needs "
        "CONFIG_SECCOMP_FILTER."
    )
    own = [_own_filters(process, sight.zygote) for process in (sight.init, sight.kernel)]
    if modes != ["2", "2"]:
        wrong = f"mode {' and '.join(modes)}, not 2"
    elif any(number is not None and number < _FILTERS for number in own):
        wrong = f"{' and '.join(map(str, own))} filters more than the zygote, not {_FILTERS}: they are a container's"
    else:
        wrong = ""
    detail = wrong or "both filters in PID 1 and kernel, which refuse what only they refuse"
    return Safeguard(name="seccomp", in_force=not wrong, detail=detail, essential=True, means=means)


def _own_filters(process: InspectedProcess, zygote: InspectedProcess) -> int | None:
    """Filters in addition to those that the zygote has itself; None if the kernel does not count them."""
    counts = [p.status.get("Seccomp_filters", "") for p in (process, zygote)]
    return int(counts[0]) - int(counts[1]) if all(map(str.isdigit, counts)) else None


def _hidden_init(sight: SandboxInspection) -> Safeguard:
    hidden = sight.init.hidden
    means = "Code can rewrite the process that reports to the supervisor. Report this as a bug."
    detail = f"code {'cannot' if hidden else 'can'} access the memory of PID 1"
    return Safeguard(name="hidden PID 1", in_force=hidden, detail=detail, essential=True, means=means)


def _landlock(sight: SandboxInspection) -> Safeguard:
    means = (
        "Only the mount namespace isolates files. Linux 5.19 or later has Landlock if it is listed among the "
        "security modules at boot: lsm=landlock,…"
    )
    detail = f"version {sight.landlock}, according to PID 1" if sight.landlock else "not applied"
    return Safeguard(name="Landlock", in_force=sight.landlock > 0, detail=detail, means=means)


def _own_proc(sight: SandboxInspection) -> Safeguard:
    fresh = any(mount.point == "/proc" and mount.kind == "proc" for mount in sight.kernel.mounts)
    means = (
        "Nothing leaks, but ps and /proc/self do not work in a session, and in a container, one can take all inotify "
        "instances. There: security_opt systempaths=unconfined (Compose 2.15 or later)."
    )
    detail = "a fresh one" if fresh else "an empty one: the machine's /proc is partly covered"
    return Safeguard(name="own /proc", in_force=fresh, detail=detail, means=means)


# --- reading the inspection --------------------------------------------------------------------------------------


def _apart(one: InspectedProcess, other: InspectedProcess, namespace: str) -> bool:
    """Whether two processes are known to be in different namespaces; unreadable ones do not count."""
    assert namespace in NAMESPACES
    mine, theirs = one.namespaces.get(namespace), other.namespaces.get(namespace)
    return bool(mine and theirs and mine != theirs)


def _outside_uid(process: InspectedProcess) -> str:
    """The effective uid; empty if unknown."""
    return [*process.status.get("Uid", "").split(), "", ""][1]


def _capabilities(process: InspectedProcess, kinds: Sequence[str]) -> list[tuple[str, str]]:
    """The capability sets that are not empty, or not known."""
    return [(kind, process.status.get(kind, "?")) for kind in kinds if process.status.get(kind, "?").strip("0")]
