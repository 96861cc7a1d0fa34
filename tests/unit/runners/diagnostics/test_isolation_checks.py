"""Judging isolation layers and limits by recordings of real machines (``inspections/``), whole and with gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runners.config.settings import ACCEPTANCE, Limits, RunnerSettings
from runners.diagnostics.inspection import InspectedProcess, MountEntry, SandboxInspection
from runners.diagnostics.isolation_checks import check_isolation, find_gaps, why_unsafe
from runners.wire.protocol import Health, Safeguard

SIGHTS = Path(__file__).parent / "inspections"
PLAIN = RunnerSettings(outer_sandbox="auto")
WITHOUT_CGROUP = ["memory", "CPU share"]
IN_A_CONTAINER = RunnerSettings(outer_sandbox="none")


def recorded(name: str) -> SandboxInspection:
    return SandboxInspection.model_validate_json((SIGHTS / f"{name}.json").read_text())


def judged(
    sight: SandboxInspection, outer: str = "bubblewrap", settings: RunnerSettings = PLAIN
) -> dict[str, Safeguard]:
    return {safeguard.name: safeguard for safeguard in check_isolation(sight, settings, outer)}


def off(safeguards: dict[str, Safeguard]) -> list[str]:
    return [safeguard.name for safeguard in safeguards.values() if not safeguard.in_force]


def gaps(safeguards: dict[str, Safeguard]) -> list[str]:
    return [safeguard.name for safeguard in find_gaps(safeguards.values())]


def changed(sight: SandboxInspection, who: str, **facts: Any) -> SandboxInspection:
    process: InspectedProcess = getattr(sight, who)
    return sight.model_copy(update={who: process.model_copy(update=facts)})


def with_status(sight: SandboxInspection, who: str, **status: str) -> SandboxInspection:
    return changed(sight, who, status=getattr(sight, who).status | status)


# --- machines ---------------------------------------------------------------------------------------------------


def test_on_a_machine_that_has_everything_all_is_in_force() -> None:
    assert off(judged(recorded("root-with-cgroups"))) == []


def test_a_plain_user_without_cgroups_lacks_the_limit_on_memory_and_the_share_of_cpu() -> None:
    safeguards = judged(recorded("plain-user"))

    assert off(safeguards) == WITHOUT_CGROUP
    assert "RLIMIT_NPROC" in safeguards["processes"].detail
    assert safeguards["memory"].detail == "only watched; memfd, shared memory, sockets and page tables escape"
    assert "people you trust" in safeguards["memory"].means


@pytest.mark.parametrize("name", ["plain-user", "container"])
def test_no_untrusted_code_runs_where_memory_is_only_watched(name: str) -> None:
    settings = IN_A_CONTAINER if name == "container" else PLAIN
    safeguards = judged(recorded(name), "none" if name == "container" else "bubblewrap", settings)

    assert gaps(safeguards) == WITHOUT_CGROUP
    assert not Health(status="ready", safeguards=list(safeguards.values())).safe
    untrusted = settings.model_copy(update={"untrusted_users": True})
    accepted = untrusted.model_copy(update={"unsafe_runner": ACCEPTANCE})
    assert [why_unsafe(safeguards.values(), each) for each in (settings, accepted)] == ["", ""]
    refuses = why_unsafe(safeguards.values(), untrusted)
    assert refuses.endswith("'lockstep doctor' says what to do. Missing: memory, CPU share.")


def test_a_container_declared_as_the_outer_sandbox_counts() -> None:
    safeguards = judged(recorded("container"), "none", IN_A_CONTAINER)

    assert off(safeguards) == ["own /proc", "memory", "CPU share"]
    assert gaps(safeguards) == WITHOUT_CGROUP
    assert "systempaths=unconfined" in safeguards["own /proc"].means
    assert safeguards["all together"].detail.startswith("8,192 MiB and 8,192 processes")


def test_a_container_that_was_not_declared_does_not_count() -> None:
    assert gaps(judged(recorded("container"), "none")) == ["outer sandbox", *WITHOUT_CGROUP]


def test_a_container_with_a_network_and_rights_does_not_count() -> None:
    safeguard = judged(recorded("container-with-network"), "none", IN_A_CONTAINER)["outer sandbox"]

    assert not safeguard.in_force
    for found in ("it has a network (lo, eth0)", "it has capabilities", "it may gain privileges"):
        assert found in safeguard.detail
    assert "docker-compose.yml" in safeguard.means


def test_a_machine_declared_as_a_container_does_not_count() -> None:
    sight = recorded("no-bubblewrap").model_copy(update={"container": ""})

    assert "no sign of a container" in judged(sight, "none", IN_A_CONTAINER)["outer sandbox"].detail


def test_root_is_not_isolated_in_a_container_either() -> None:
    sight = with_status(recorded("container"), "supervisor", Uid="0 0 0 0")

    assert gaps(judged(sight, "none", IN_A_CONTAINER)) == ["outer sandbox", *WITHOUT_CGROUP]


def test_without_bubblewrap_there_is_no_outer_sandbox() -> None:
    safeguards = judged(recorded("no-bubblewrap"), "none")

    assert gaps(safeguards) == ["outer sandbox", *WITHOUT_CGROUP]
    assert "apt-get install bubblewrap" in safeguards["outer sandbox"].means
    assert "a runner started as root needs bubblewrap" in safeguards["outer sandbox"].means


# --- pieces -----------------------------------------------------------------------------------------------------

WHOLE = recorded("root-with-cgroups")


@pytest.mark.parametrize(
    ("sight", "expected"),
    [
        (with_status(WHOLE, "kernel", Seccomp="0"), ["seccomp"]),
        (with_status(WHOLE, "init", Seccomp="0"), ["seccomp"]),
        (with_status(with_status(WHOLE, "zygote", Seccomp_filters="1"), "init", Seccomp_filters="1"), ["seccomp"]),
        (with_status(with_status(WHOLE, "zygote", Seccomp_filters="1"), "kernel", Seccomp_filters="2"), ["seccomp"]),
        (with_status(with_status(WHOLE, "zygote", Seccomp_filters="1"), "kernel", Seccomp_filters="3"), []),
        (with_status(WHOLE, "kernel", NoNewPrivs="0"), ["no_new_privs"]),
        (with_status(WHOLE, "kernel", CapEff="0000000000200000"), ["no capabilities"]),
        (with_status(WHOLE, "init", CapBnd="000001ffffffffff"), ["no capabilities"]),
        (with_status(WHOLE, "kernel", Uid="0 0 0 0"), ["plain user"]),
        (with_status(WHOLE, "kernel", NSpid="10098"), ["PID namespace"]),
        (with_status(WHOLE, "zygote", Uid="0 0 0 0"), ["outer sandbox"]),
        (changed(WHOLE, "zygote", namespaces=WHOLE.supervisor.namespaces), ["outer sandbox"]),
        (changed(WHOLE, "zygote", interfaces=("lo", "eth0")), ["outer sandbox"]),
        (changed(WHOLE, "init", hidden=False), ["hidden PID 1"]),
        (changed(WHOLE, "kernel", uid_map="0 0 4294967295"), ["user namespace"]),
        (changed(WHOLE, "kernel", interfaces=("lo", "eth0")), ["network namespace"]),
    ],
)
def test_a_piece_that_is_missing_is_a_gap(sight: SandboxInspection, expected: list[str]) -> None:
    assert gaps(judged(sight)) == expected


@pytest.mark.parametrize(
    ("namespace", "safeguard"),
    [
        ("user", "user namespace"),
        ("mnt", "mount namespace"),
        ("net", "network namespace"),
        ("ipc", "IPC, UTS namespaces"),
        ("uts", "IPC, UTS namespaces"),
    ],
)
def test_a_namespace_that_is_shared_or_cannot_be_read_is_a_gap(namespace: str, safeguard: str) -> None:
    own = WHOLE.kernel.namespaces
    shared = changed(WHOLE, "kernel", namespaces=own | {namespace: WHOLE.supervisor.namespaces[namespace]})
    unread = changed(WHOLE, "kernel", namespaces={k: v for k, v in own.items() if k != namespace})

    assert gaps(judged(shared)) == gaps(judged(unread)) == [safeguard]


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
    safeguards = judged(SandboxInspection(supervisor=nothing, zygote=nothing, init=nothing, kernel=nothing))

    assert [w.name for w in safeguards.values() if w.essential and w.in_force] == []
    assert [w.name for w in safeguards.values() if w.kind == "isolation" and w.in_force] == []


def test_what_is_missing_says_what_follows_and_what_to_do() -> None:
    nothing = InspectedProcess()
    for safeguard in judged(
        SandboxInspection(supervisor=nothing, zygote=nothing, init=nothing, kernel=nothing), "none"
    ).values():
        assert safeguard.in_force or len(safeguard.means) > 40, safeguard.name


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
    safeguards = judged(WHOLE.model_copy(update={"group": group}))

    assert off(safeguards) == []
    assert safeguards["memory"].detail == "2,048 MiB for a session, with swap; cgroup version 2"
    assert safeguards["CPU share"].detail == "2 cores; cgroup version 2"


def test_an_endless_group_holds_nothing() -> None:
    group = {"memory.max": "max", "pids.max": "max", "cpu.max": "max 100000"}
    safeguards = judged(WHOLE.model_copy(update={"group": group, "around": group}))

    assert off(safeguards) == WITHOUT_CGROUP
    assert safeguards["memory"].detail.startswith("only watched")
    assert "all together" not in safeguards


def test_a_folder_without_a_size_is_a_gap() -> None:
    endless = tuple(m.model_copy(update={"size": ""}) if m.point == "/tmp" else m for m in WHOLE.kernel.mounts)

    assert gaps(judged(changed(WHOLE, "kernel", mounts=endless))) == ["disk", "files and folders"]


def test_every_limit_setting_has_a_row_or_is_one_that_the_system_keeps() -> None:
    rows = [safeguard for safeguard in judged(WHOLE).values() if safeguard.kind == "limit"]
    kept = [safeguard.name for safeguard in rows if safeguard.detail.endswith("; the supervisor")]
    measured = {"memory_mb", "processes", "cpu_cores", "disk_mb", "inodes", "open_files", "file_mb"}

    assert len(kept) == len(Limits.model_fields.keys() - measured) + 2


# --- the decision -----------------------------------------------------------------------------------------------


def test_untrusted_code_is_refused_where_a_layer_is_missing_unless_accepted() -> None:
    whole = list(judged(recorded("root-with-cgroups")).values())
    open_ = list(judged(recorded("no-bubblewrap"), "none").values())

    assert why_unsafe(whole, RunnerSettings(untrusted_users=True)) == ""
    assert why_unsafe(open_, RunnerSettings(untrusted_users=False)) == ""
    refuses = why_unsafe(open_, RunnerSettings(untrusted_users=True))
    assert refuses.endswith("Missing: outer sandbox, memory, CPU share.")
    assert why_unsafe(open_, RunnerSettings(untrusted_users=True, unsafe_runner=ACCEPTANCE)) == ""


def test_health_is_safe_only_with_every_essential_wall() -> None:
    assert Health(status="ready", safeguards=list(judged(recorded("root-with-cgroups")).values())).safe
    assert not Health(status="ready", safeguards=list(judged(recorded("no-bubblewrap"), "none").values())).safe
    assert not Health(status="broken").safe


@pytest.mark.parametrize("said", ["1", "yes", ACCEPTANCE.lower(), ACCEPTANCE + ".", f" {ACCEPTANCE}"])
def test_only_the_exact_sentence_accepts(said: str) -> None:
    with pytest.raises(ValueError, match=ACCEPTANCE):
        RunnerSettings(unsafe_runner=said)
