"""Judging walls and limits by what was recorded on real machines (``sights/``), whole and with a piece missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runners.config.settings import ACCEPTANCE, Limits, RunnerSettings
from runners.diagnostics.inspection import InspectedProcess, MountEntry, SandboxInspection
from runners.diagnostics.isolation_checks import check_isolation, missing_essentials, why_unsafe
from runners.diagnostics.isolation_checks import find_gaps as all_gaps
from runners.wire.protocol import Health, Safeguard

SIGHTS = Path(__file__).parent / "inspections"
PLAIN = RunnerSettings(outer_wall="auto")
IN_A_CONTAINER = RunnerSettings(outer_wall="none")


def recorded(name: str) -> SandboxInspection:
    return SandboxInspection.model_validate_json((SIGHTS / f"{name}.json").read_text())


def judged(
    sight: SandboxInspection, outer: str = "bubblewrap", settings: RunnerSettings = PLAIN
) -> dict[str, Safeguard]:
    return {wall.name: wall for wall in check_isolation(sight, settings, outer)}


def off(walls: dict[str, Safeguard]) -> list[str]:
    return [wall.name for wall in walls.values() if not wall.in_force]


def gaps(walls: dict[str, Safeguard]) -> list[str]:
    return [wall.name for wall in missing_essentials(walls.values())]


def changed(sight: SandboxInspection, who: str, **facts: Any) -> SandboxInspection:
    process: InspectedProcess = getattr(sight, who)
    return sight.model_copy(update={who: process.model_copy(update=facts)})


def with_status(sight: SandboxInspection, who: str, **status: str) -> SandboxInspection:
    return changed(sight, who, status=getattr(sight, who).status | status)


# --- machines ---------------------------------------------------------------------------------------------------


def test_on_a_machine_that_has_everything_all_is_in_force() -> None:
    assert off(judged(recorded("root-with-cgroups"))) == []


def test_a_plain_user_without_cgroups_lacks_the_limit_on_memory_and_the_share_of_cpu() -> None:
    walls = judged(recorded("plain-user"))

    assert off(walls) == ["memory", "CPU share"]
    assert "RLIMIT_NPROC" in walls["processes"].detail
    assert walls["memory"].detail == "only watched; memfd, sockets and page tables escape"
    assert "people you trust" in walls["memory"].means


@pytest.mark.parametrize("name", ["plain-user", "container"])
def test_memory_that_is_only_watched_is_a_gap_but_no_reason_to_refuse(name: str) -> None:
    settings = IN_A_CONTAINER if name == "container" else PLAIN
    walls = judged(recorded(name), "none" if name == "container" else "bubblewrap", settings)

    assert gaps(walls) == []
    assert [wall.name for wall in all_gaps(walls.values())] == ["memory"]
    assert not Health(status="ready", walls=list(walls.values())).safe
    assert why_unsafe(walls.values(), settings.model_copy(update={"strangers": True})) == ""


def test_a_container_that_was_named_as_the_wall_is_one() -> None:
    walls = judged(recorded("container"), "none", IN_A_CONTAINER)

    assert off(walls) == ["own /proc", "memory", "CPU share"]
    assert gaps(walls) == []
    assert "systempaths=unconfined" in walls["own /proc"].means
    assert walls["all together"].detail.startswith("8,192 MiB and 8,192 processes")


def test_a_container_that_nobody_named_is_none() -> None:
    assert gaps(judged(recorded("container"), "none")) == ["outer wall"]


def test_a_container_with_a_network_and_rights_is_none() -> None:
    wall = judged(recorded("container-with-network"), "none", IN_A_CONTAINER)["outer wall"]

    assert not wall.in_force
    for found in ("it reaches a network (lo, eth0)", "it has capabilities", "it may gain privileges"):
        assert found in wall.detail
    assert "docker-compose.yml" in wall.means


def test_a_machine_that_was_called_a_container_is_none() -> None:
    sight = recorded("no-bubblewrap").model_copy(update={"container": ""})

    assert "no sign of a container" in judged(sight, "none", IN_A_CONTAINER)["outer wall"].detail


def test_root_is_no_wall_in_a_container_either() -> None:
    sight = with_status(recorded("container"), "supervisor", Uid="0 0 0 0")

    assert gaps(judged(sight, "none", IN_A_CONTAINER)) == ["outer wall"]


def test_without_bubblewrap_there_is_no_outer_wall() -> None:
    walls = judged(recorded("no-bubblewrap"), "none")

    assert gaps(walls) == ["outer wall"]
    assert "apt-get install bubblewrap" in walls["outer wall"].means
    assert "a runner started as root needs bubblewrap" in walls["outer wall"].means


# --- pieces -----------------------------------------------------------------------------------------------------

WHOLE = recorded("root-with-cgroups")


@pytest.mark.parametrize(
    ("sight", "expected"),
    [
        (with_status(WHOLE, "kernel", Seccomp="0"), ["seccomp"]),
        (with_status(WHOLE, "init", Seccomp="0"), ["seccomp"]),
        (with_status(WHOLE, "kernel", NoNewPrivs="0"), ["no_new_privs"]),
        (with_status(WHOLE, "kernel", CapEff="0000000000200000"), ["no capabilities"]),
        (with_status(WHOLE, "init", CapBnd="000001ffffffffff"), ["no capabilities"]),
        (with_status(WHOLE, "kernel", Uid="0 0 0 0"), ["plain user"]),
        (with_status(WHOLE, "kernel", NSpid="10098"), ["PID namespace"]),
        (with_status(WHOLE, "zygote", Uid="0 0 0 0"), ["outer wall"]),
        (changed(WHOLE, "zygote", namespaces=WHOLE.supervisor.namespaces), ["outer wall"]),
        (changed(WHOLE, "zygote", interfaces=("lo", "eth0")), ["outer wall"]),
        (changed(WHOLE, "init", hidden=False), ["hidden PID 1"]),
        (changed(WHOLE, "kernel", uid_map="0 0 4294967295"), ["user namespace"]),
        (changed(WHOLE, "kernel", interfaces=("lo", "eth0")), ["network namespace"]),
    ],
)
def test_a_piece_that_is_missing_is_a_gap(sight: SandboxInspection, expected: list[str]) -> None:
    assert gaps(judged(sight)) == expected


@pytest.mark.parametrize(
    ("namespace", "wall"),
    [
        ("user", "user namespace"),
        ("mnt", "mount namespace"),
        ("net", "network namespace"),
        ("ipc", "IPC, UTS namespaces"),
        ("uts", "IPC, UTS namespaces"),
    ],
)
def test_a_namespace_that_is_shared_or_cannot_be_read_is_a_gap(namespace: str, wall: str) -> None:
    own = WHOLE.kernel.namespaces
    shared = changed(WHOLE, "kernel", namespaces=own | {namespace: WHOLE.supervisor.namespaces[namespace]})
    unread = changed(WHOLE, "kernel", namespaces={k: v for k, v in own.items() if k != namespace})

    assert gaps(judged(shared)) == gaps(judged(unread)) == [wall]


@pytest.mark.parametrize(
    "mount",
    [
        MountEntry(point="/srv", kind="ext4", options=frozenset({"rw"})),
        MountEntry(point="/dev/null", root="/sda", kind="devtmpfs", options=frozenset({"rw"})),
        MountEntry(point="/", kind="ext4", options=frozenset({"ro"})),
        MountEntry(point="/", kind="tmpfs", options=frozenset({"rw"})),
    ],
)
def test_a_folder_of_the_host_that_can_be_written_or_is_the_root_is_a_gap(mount: MountEntry) -> None:
    sight = changed(WHOLE, "kernel", mounts=(*WHOLE.kernel.mounts, mount))

    assert gaps(judged(sight)) == ["mount namespace"]


def test_where_nothing_could_be_read_nothing_is_in_force() -> None:
    nothing = InspectedProcess()
    walls = judged(SandboxInspection(supervisor=nothing, zygote=nothing, init=nothing, kernel=nothing))

    assert [w.name for w in walls.values() if w.essential and w.in_force] == []
    assert [w.name for w in walls.values() if w.kind == "wall" and w.in_force] == []


def test_what_is_missing_says_what_follows_and_what_to_do() -> None:
    nothing = InspectedProcess()
    for wall in judged(
        SandboxInspection(supervisor=nothing, zygote=nothing, init=nothing, kernel=nothing), "none"
    ).values():
        assert wall.in_force or len(wall.means) > 40, wall.name


# --- limits -----------------------------------------------------------------------------------------------------


def test_a_limit_is_in_force_only_with_a_value_as_small_as_was_asked_for() -> None:
    for file, name in (
        ("memory.limit_in_bytes", "memory"),
        ("pids.max", "processes"),
        ("cpu.cfs_quota_us", "CPU share"),
    ):
        wide = WHOLE.model_copy(update={"group": WHOLE.group | {file: str(1 << 50)}})
        assert off(judged(wide)) == [name]


def test_version_2_of_cgroups_is_read_as_well() -> None:
    group = {"memory.max": str(2048 << 20), "memory.swap.max": "0", "pids.max": "512", "cpu.max": "200000 100000"}
    walls = judged(WHOLE.model_copy(update={"group": group}))

    assert off(walls) == []
    assert walls["memory"].detail == "2,048 MiB for a session, with swap; cgroup version 2"
    assert walls["CPU share"].detail == "2 cores; cgroup version 2"


def test_an_endless_group_holds_nothing() -> None:
    group = {"memory.max": "max", "pids.max": "max", "cpu.max": "max 100000"}
    walls = judged(WHOLE.model_copy(update={"group": group, "around": group}))

    assert off(walls) == ["memory", "CPU share"]
    assert walls["memory"].detail.startswith("only watched")
    assert "all together" not in walls


def test_a_folder_without_a_size_is_a_gap() -> None:
    endless = tuple(m.model_copy(update={"size": ""}) if m.point == "/tmp" else m for m in WHOLE.kernel.mounts)

    assert gaps(judged(changed(WHOLE, "kernel", mounts=endless))) == ["disk", "files and folders"]


def test_every_limit_setting_has_a_row_or_is_one_that_the_system_keeps() -> None:
    rows = [wall for wall in judged(WHOLE).values() if wall.kind == "limit"]
    kept = [wall.name for wall in rows if wall.detail.endswith("; the supervisor")]
    measured = {"memory_mb", "processes", "cpu_cores", "disk_mb", "inodes", "open_files", "file_mb"}

    assert len(kept) == len(Limits.model_fields.keys() - measured) + 2


# --- the decision -----------------------------------------------------------------------------------------------


def test_strangers_code_is_refused_where_a_wall_is_missing_unless_that_was_accepted() -> None:
    whole = list(judged(recorded("root-with-cgroups")).values())
    open_ = list(judged(recorded("no-bubblewrap"), "none").values())

    assert why_unsafe(whole, RunnerSettings(strangers=True)) == ""
    assert why_unsafe(open_, RunnerSettings(strangers=False)) == ""
    assert why_unsafe(open_, RunnerSettings(strangers=True)).endswith("Missing: outer wall.")
    assert why_unsafe(open_, RunnerSettings(strangers=True, unsafe_runner=ACCEPTANCE)) == ""


def test_health_is_safe_only_with_every_essential_wall() -> None:
    assert Health(status="ready", walls=list(judged(recorded("root-with-cgroups")).values())).safe
    assert not Health(status="ready", walls=list(judged(recorded("no-bubblewrap"), "none").values())).safe
    assert not Health(status="broken").safe


@pytest.mark.parametrize("said", ["1", "yes", ACCEPTANCE.lower(), ACCEPTANCE + ".", f" {ACCEPTANCE}"])
def test_only_the_exact_sentence_accepts(said: str) -> None:
    with pytest.raises(ValueError, match=ACCEPTANCE):
        RunnerSettings(unsafe_runner=said)
