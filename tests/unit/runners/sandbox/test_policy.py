"""What a session looks like from inside, as data."""

from __future__ import annotations

import resource
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import runners
from runners.config.settings import Limits, MiB
from runners.devices.allocation import DeviceAllocation, GpuShare, GpuUnit
from runners.devices.tpu_vm import Tpu
from runners.sandbox.landlock import DEVICE, AccessRight
from runners.sandbox.layout import DATASETS, HOME, PYTHON_FOLDER
from runners.sandbox.policy import SandboxPolicy, private_folders, session_policy

LIMITS = Limits(memory_mb=512, disk_mb=64, processes=128, inodes=5000, file_mb=32, open_files=600, cpu_s=100)
POLICY = session_policy(LIMITS, None, (b"\x01\x02", b"\x03"))


def test_a_policy_survives_the_wire_to_the_zygote() -> None:
    assert SandboxPolicy.from_json(POLICY.to_json()) == POLICY


def test_a_policy_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        POLICY.devices = ()  # type: ignore[misc]  # what is tested


@pytest.mark.parametrize(
    "secret", ["/", "/root", "/home", "/var", "/run", "/etc", "/etc/shadow", "/etc/passwd", "/proc", "/sys", "/tmp"]
)
def test_no_folder_of_the_host_with_secrets_is_shown(secret: str) -> None:
    assert secret not in [source for source, _ in POLICY.read_only]


def test_neither_the_project_nor_its_data_is_shown() -> None:
    project = Path(__file__).resolve().parents[4]
    shown = [Path(source) for source, _ in POLICY.read_only]
    for private in (project, project / "data", project / "lessons", project / "app", project / "tests"):
        assert not [s for s in shown if s == private or s in private.parents]


def test_the_application_of_a_wheel_is_covered_and_with_it_solutions_and_checks(tmp_path: Path) -> None:
    packages = tmp_path / "venv" / "lib" / "site-packages"
    for name in ("runners", "app/bundled/lessons", "tests", "numpy"):
        (packages / name).mkdir(parents=True)
    assert private_folders((str(tmp_path / "venv"),), packages / "runners") == (str(packages / "app"),)
    assert private_folders(("/usr",), packages / "runners") == ()


def test_a_checkout_in_a_folder_that_is_shown_is_covered(tmp_path: Path) -> None:
    for name in ("runners", "app", "lessons", ".git"):
        (tmp_path / "src" / name).mkdir(parents=True)
    (tmp_path / "src" / "pyproject.toml").touch()
    covered = private_folders((str(tmp_path),), tmp_path / "src" / "runners")
    assert set(covered) == {str(tmp_path / "src" / name) for name in ("app", "lessons", ".git")}


def test_the_data_sets_are_shown_read_only_at_their_place_if_there_are_any() -> None:
    with_data = session_policy(Limits(), "/srv/datasets", ())
    assert ("/srv/datasets", DATASETS) in with_data.read_only
    assert DATASETS not in [target for _, target in POLICY.read_only]


def test_programs_of_a_session_find_the_package_that_loads_data_sets_for_them() -> None:
    assert dict(POLICY.environment)["PYTHONPATH"] == PYTHON_FOLDER
    assert (str(Path(runners.__file__).parent), f"{PYTHON_FOLDER}/runners") in POLICY.read_only
    compile(dict(POLICY.files)[f"{PYTHON_FOLDER}/sitecustomize.py"], "sitecustomize.py", "exec")


def test_what_can_be_written_is_private_and_small() -> None:
    assert {t.path: t.size for t in POLICY.tmpfs} == {"/tmp": 64 * MiB, HOME: 64 * MiB, "/dev/shm": 64 * MiB}
    assert {t.inodes for t in POLICY.tmpfs} == {5000}


def test_devices_are_harmless_ones() -> None:
    assert set(POLICY.devices) == {"null", "zero", "full", "random", "urandom"}


ALLOCATION = DeviceAllocation(
    shares=(
        GpuShare(GpuUnit("GPU-1", "T4", 15_360, ("nvidia3",)), 2, 7_000),
        GpuShare(GpuUnit("GPU-2", "T4", 15_360, ("nvidia5",))),
    ),
    nodes=("nvidia3", "nvidia5", "nvidiactl", "nvidia-uvm"),
)


def test_a_session_without_real_devices_sees_nothing_of_them() -> None:
    assert not {"CUDA_VISIBLE_DEVICES", "LOCKSTEP_REAL"} & dict(POLICY.environment).keys()
    assert "driver" in POLICY.proc_covered
    assert POLICY.proc_shown == ()
    assert not POLICY.proc_writable


def test_a_session_with_real_devices_can_open_them_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64")
    policy = session_policy(LIMITS, None, (), ALLOCATION)
    environment = dict(policy.environment)

    assert set(policy.devices) - set(POLICY.devices) == set(ALLOCATION.nodes)
    assert {path for path, _ in policy.landlock} - {path for path, _ in POLICY.landlock} == {
        "/proc",
        *(f"/dev/{node}" for node in ALLOCATION.nodes),
    }
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    assert environment["LOCKSTEP_REAL"] == "[[2, 7000], [1, null]]"
    assert environment["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"
    assert environment["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert "RLIMIT_DATA" not in dict(policy.rlimits)
    assert set(POLICY.proc_covered) - set(policy.proc_covered) == {"driver"}
    assert SandboxPolicy.from_json(policy.to_json()) == policy


def test_cuda_may_name_its_threads_and_create_nothing_in_proc() -> None:
    policy = session_policy(LIMITS, None, (), ALLOCATION)

    assert policy.proc_writable
    assert dict(policy.landlock)["/proc"] == AccessRight.WRITE_FILE | AccessRight.TRUNCATE


def test_a_session_with_a_tpu_reads_what_libtpu_reads_and_may_lock_the_memory_it_has() -> None:
    tpu = Tpu("v3-8", ("accel0",), "/usr/lib/libtpu.so", ("/sys/bus/pci",))
    policy = session_policy(LIMITS, None, (), DeviceAllocation(nodes=tpu.nodes, tpu=tpu))
    environment = dict(policy.environment)

    assert set(policy.devices) - set(POLICY.devices) == {"accel0"}
    assert ("/dev/accel0", int(DEVICE)) in policy.landlock
    assert ("/sys/bus/pci", "/sys/bus/pci") in policy.read_only
    assert "runners" in {Path(source).name for source, _ in policy.read_only}, "its kernel imports it"
    assert environment["TPU_LIBRARY_PATH"] == "/usr/lib/libtpu.so"
    assert environment["CUDA_VISIBLE_DEVICES"] == "-1"
    assert environment["LOCKSTEP_REAL"] == "[]"
    assert "TPU_LOAD_LIBRARY" not in environment
    assert dict(policy.rlimits)["RLIMIT_MEMLOCK"] == LIMITS.memory_mb * MiB
    assert not [source for source, _ in POLICY.read_only if source.startswith("/sys")]
    assert dict(POLICY.rlimits)["RLIMIT_MEMLOCK"] == 65_536


@pytest.mark.parametrize("allocation", [None, ALLOCATION])
def test_programs_of_a_session_without_the_tpu_leave_libtpu_alone(allocation: DeviceAllocation | None) -> None:
    assert dict(session_policy(LIMITS, None, (), allocation).environment)["TPU_LOAD_LIBRARY"] == "0"


def test_every_limit_exists_and_leaves_no_core() -> None:
    limits = dict(POLICY.rlimits)
    assert all(hasattr(resource, name) for name in limits)
    assert limits["RLIMIT_CORE"] == 1
    assert limits["RLIMIT_NPROC"] == 128
    assert limits["RLIMIT_FSIZE"] == 32 * MiB
    assert limits["RLIMIT_NOFILE"] == 600
    assert limits["RLIMIT_CPU"] == 1000


def test_the_learners_passwd_knows_nobody_else() -> None:
    assert [line.split(":")[0] for line in dict(POLICY.files)["/etc/passwd"].splitlines()] == ["learner"]


def test_the_filters_travel_unchanged() -> None:
    assert tuple(map(bytes.fromhex, SandboxPolicy.from_json(POLICY.to_json()).seccomp)) == (b"\x01\x02", b"\x03")


def test_inside_there_are_no_further_namespaces() -> None:
    kinds = {name for name, value in POLICY.sysctls if name.endswith("_namespaces") and value == "0"}
    assert kinds == {
        f"user/max_{kind}_namespaces" for kind in ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"]
    }


def test_only_folders_of_ones_own_are_written_and_no_devices_made() -> None:
    rights = {path: AccessRight(value) for path, value in POLICY.landlock}
    assert rights["/"] == AccessRight.EXECUTE | AccessRight.READ_FILE | AccessRight.READ_DIR
    assert {path for path, right in rights.items() if right & AccessRight.MAKE_REG} == {t.path for t in POLICY.tmpfs}
    assert not [path for path, right in rights.items() if right & (AccessRight.MAKE_CHAR | AccessRight.MAKE_BLOCK)]
    assert {path for path, right in rights.items() if right & AccessRight.WRITE_FILE} == {
        *(t.path for t in POLICY.tmpfs),
        *(f"/dev/{name}" for name in POLICY.devices),
        "/dev/pts",
    }


def test_nvidia_smi_is_there_for_sessions_whose_path_leads_to_it() -> None:
    ((path, program),) = POLICY.programs
    assert path == "/opt/lockstep/bin/nvidia-smi"
    assert program.startswith("#!/bin/sh\nexec ")
    assert program.endswith(' -IS /opt/lockstep/bin/smi.py 512 "$@"\n')
    assert "/opt/lockstep/bin/smi.py" in dict(POLICY.files)
    assert "/opt/lockstep" not in dict(POLICY.environment)["PATH"]
