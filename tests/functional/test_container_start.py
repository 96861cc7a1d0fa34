"""What the runner's container does first: the supervisor gets a cgroup that it can divide, and loses all rights.

Without a container engine: each test makes Docker's mounts in a mount namespace of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from runners.sandbox.cgroups import own_folders
from tests.factories.unprivileged_user import mounts_for_everybody

ROOT = Path(__file__).parents[2]
START = ROOT / "docker" / "runner-start.sh"
UID = 10_001
CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "pids", "cpu", "cpuacct")
REFUSED = "There is no cgroup for sessions, so their memory cannot be limited: "

REPORT = """
import json, os
from pathlib import Path
from runners.config.settings import Limits
from runners.sandbox.cgroups import detect, own_folders

status = dict(line.split(":\\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\\t" in line)
told = {"uids": status["Uid"].split(), "groups": status["Groups"].split(), "no_new_privs": status["NoNewPrivs"]}
told["capabilities"] = sorted({status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")})
found = detect()
told["version"] = found.version
if found.version:
    group = found.create("session", Limits(memory_mb=256))
    go, started = os.pipe()
    if (child := os.fork()) == 0:
        os.read(go, 1)
        kept = bytearray(64 << 20)
        os._exit(0)
    group.add(child)
    os.write(started, b"x")
    os.waitpid(child, 0)
    told["peak_mb"] = group.facts().peak_bytes >> 20
    told["removed"] = group.remove()
    found.close()
    try:
        if found.version == 1:
            (own_folders("memory")[0] / "memory.limit_in_bytes").write_text("-1")
        else:
            (own_folders("")[0].parent / "memory.max").write_text("max")
    except OSError as e:
        told["own_limit"] = e.strerror
print(json.dumps(told))
"""


@pytest.fixture
def users(tmp_path: Path) -> str:
    """Shell commands that give the image's user to a mount namespace."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount what a container has")
    tmp_path.chmod(0o755)
    commands = [mounts_for_everybody()]
    for name, line in (("passwd", f"lockstep:x:{UID}:{UID}::/:/bin/sh"), ("group", f"lockstep:x:{UID}:")):
        (tmp_path / name).write_text(f"{Path('/etc', name).read_text()}{line}\n")
        commands.append(f"mount --bind {tmp_path / name} /etc/{name}")
    return " && ".join(commands)


@pytest.fixture
def container_groups() -> Iterator[dict[str, Path]]:
    """A cgroup of version 1 in each hierarchy, as Docker makes it for a container."""
    name = f"lt-{secrets.token_hex(4)}"
    try:
        groups = {controller: own_folders(controller)[0] / name for controller in CONTROLLERS}
        for group in groups.values():
            group.mkdir()
    except (OSError, KeyError):
        pytest.skip("there are no writable cgroups of version 1")
    yield groups
    for group in groups.values():
        for folder in (group / "lockstep", group):
            if folder.exists():
                folder.rmdir()


@pytest.fixture
def container_group() -> Iterator[Path]:
    """A cgroup of version 2, as Docker makes it for a container."""
    try:
        top = own_folders("")[-1]  # its own may hold processes, and then has no controllers to give
        if missing := {"memory", "pids", "cpu"} - set((top / "cgroup.controllers").read_text().split()):
            raise OSError(missing)
        (top / "cgroup.subtree_control").write_text("+memory +pids +cpu")
        group = top / f"lt-{secrets.token_hex(4)}"
        group.mkdir()
    except (OSError, KeyError):
        pytest.skip("there are no writable cgroups of version 2 that limit memory")
    yield group
    for folder, *_ in os.walk(group, topdown=False):
        Path(folder).rmdir()


def start(mounts: str, *command: str, group: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the script with the rights that Compose gives it, in a mount namespace prepared with shell commands.

    Args:
        mounts: the commands.
        command: what the script is to become.
        group: its cgroup of version 2, the root of a cgroup namespace.
    """
    inside = ["sh", "-ec", 'echo $$ >"$0/cgroup.procs"; exec "$@"', str(group), "unshare", "--cgroup"] if group else []
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["runner"]
    rights = f"--bounding-set=-all,{','.join(f'+{name.lower()}' for name in service['cap_add'])}"
    return subprocess.run(
        [
            *inside,
            *("unshare", "--mount", "sh", "-ec", f'{mounts}\nexec "$@"', "sh"),
            *("setpriv", rights, str(START), *command),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What the program in the supervisor's place has found."""
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["uids"] == [str(UID)] * 4
    assert told["groups"] == []
    assert told["capabilities"] == ["0" * 16]
    assert told["no_new_privs"] == "1"
    return told


def test_the_supervisor_divides_a_cgroup_of_version_1_and_has_no_rights(
    users: str, container_groups: dict[str, Path]
) -> None:
    mounts = [users]
    for controller, group in container_groups.items():
        mounts += [f"echo $$ > {group}/cgroup.procs", f"mount --bind {group} {CGROUPS / controller}"]
        mounts.append(f"mount -o remount,ro,bind {CGROUPS / controller}")

    told = report(start("\n".join(mounts), sys.executable, "-c", REPORT))

    assert told["version"] == 1
    assert told["peak_mb"] >= 64
    assert told["removed"]
    assert told["own_limit"] == "Permission denied"


def test_the_supervisor_divides_a_cgroup_of_version_2_and_has_no_rights(users: str, container_group: Path) -> None:
    mounts = f"{users}\numount -l {CGROUPS}\nmount -t cgroup2 -o ro none {CGROUPS}"

    done = start(mounts, sys.executable, "-c", REPORT, group=container_group)
    told = report(done)

    assert done.stderr == ""
    assert told["version"] == 2
    assert told["peak_mb"] >= 64
    assert told["removed"]
    assert told["own_limit"] == "Permission denied"


def test_without_a_cgroup_the_supervisor_starts_all_the_same_and_the_log_says_why(users: str) -> None:
    done = start(f"{users}\nmount -t tmpfs -o ro none {CGROUPS}", sys.executable, "-c", REPORT)

    assert report(done)["version"] == 0
    assert done.stderr.startswith(REFUSED), done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith("See docs/operate/safety.md.\n")


def test_a_cgroup_of_version_2_is_divided_below_a_group_without_processes(users: str) -> None:
    """In files that stand for the kernel's, because no machine has the memory controller in both versions."""
    files = "cgroup.controllers cgroup.procs cgroup.subtree_control init/cgroup.procs"
    files += "".join(f" lockstep/cgroup.{name}" for name in ("procs", "threads", "subtree_control"))
    mounts = f"{users}\nmount -t tmpfs none {CGROUPS}\ncd {CGROUPS}\nmkdir init lockstep\ntouch {files}\n"
    mounts += f"echo $$ > cgroup.procs\nmount -o remount,ro {CGROUPS}"
    show = f"cd {CGROUPS}; cat cgroup.procs init/cgroup.procs lockstep/cgroup.procs cgroup.subtree_control; "
    show += f"stat -c '%u %n' {files} lockstep"

    done = start(mounts, "sh", "-c", show)

    assert done.stderr == ""
    before, init, supervisor, controllers, *owners = done.stdout.splitlines()
    assert before == init == supervisor
    assert controllers == "+memory +pids +cpu"
    assert {owner.partition(" ")[2] for owner in owners if owner.startswith(f"{UID} ")} == {
        "lockstep",
        "lockstep/cgroup.procs",
        "lockstep/cgroup.threads",
        "lockstep/cgroup.subtree_control",
    }


def test_whoever_is_not_root_gets_the_program_as_it_is() -> None:
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", '. "$0"', START, "id", "-u"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "65534\n", "")
