"""A supervisor that root has started is nobody on the machine, and root only among its own users."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import runners
from tests.factories.real_supervisor import RealSupervisor, SessionClient

INSIDE = """
import errno, os, signal, sys
from pathlib import Path

secret, another, sandbox = sys.argv[1:]
attempts = {
    "read a file of root": lambda: open("/etc/shadow").read(),
    "change a file of root": lambda: open("/etc/hostname", "a"),
    "read the application's data": lambda: open(secret).read(),
    "end a process of root": lambda: os.kill(int(another), signal.SIGTERM),
    "read the memory of root": lambda: open(f"/proc/{another}/mem", "rb").read(1),
    "become another user": lambda: os.setuid(1000),
    "change a setting of the kernel": lambda: open("/proc/sys/kernel/core_pattern", "w"),
    "end a sandbox": lambda: os.kill(int(sandbox), 0),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name)
    except OSError:
        pass
"""


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has root to give up")


@needs_root
async def test_a_supervisor_started_by_root_has_no_rights_on_the_machine(
    node: RealSupervisor, learner: SessionClient, tmp_path: Path
) -> None:
    await learner.run("1")
    session = node.processes()[0].split()[0]
    secret = tmp_path / "lockstep.db"
    secret.write_text("hash")
    secret.chmod(0o600)

    done = await asyncio.to_thread(as_supervisor, node, str(secret), str(os.getpid()), session)

    assert (done.stdout, done.stderr) == ("end a sandbox\n", "")
    process = psutil.Process(node.pid)
    assert (*process.uids(), *process.gids()) == (node.uids[0],) * 6


@needs_root
def test_a_supervisor_started_by_root_is_under_a_filter(node: RealSupervisor) -> None:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{node.pid}/status").read_text().splitlines())
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


RARE_CALLS = """
import ctypes, errno
from runners.sandbox import linux
from runners.supervisor.server import refuse_rare_calls

libc = ctypes.CDLL(None, use_errno=True)
calls = {
    "ptrace": lambda: libc.ptrace(12, -1, 0, 0),
    "process_vm_readv": lambda: libc.process_vm_readv(1, None, 0, None, 0, 0),
    "adjtimex": lambda: libc.adjtimex(ctypes.create_string_buffer(1000)),
    "swapon": lambda: libc.swapon(b"/", 0),
}

def refused():
    return [name for name, call in calls.items() if call() < 0 and ctypes.get_errno() == errno.EPERM]

refuse_rare_calls()
before = refused()
linux.no_new_privileges()
refuse_rare_calls()
print("ptrace" in before, refused() == [*calls], libc.unshare(0), libc.umount2(b"/none", 0), ctypes.get_errno())
"""


def test_a_supervisor_refuses_calls_that_nothing_of_the_runner_needs() -> None:
    done = subprocess.run([sys.executable, "-c", RARE_CALLS], capture_output=True, text=True, timeout=60)
    allowed = os.geteuid() == 0
    assert done.stdout == f"False True 0 -1 {errno.ENOENT if allowed else errno.EPERM}\n", done.stderr


BROKEN_LIBSECCOMP = """
import pyseccomp
from runners.sandbox import linux
from runners.supervisor.server import refuse_rare_calls

def add_rule(self, action, name):
    raise OSError(22, "invalid argument")

pyseccomp.SyscallFilter.add_rule = add_rule
linux.no_new_privileges()
refuse_rare_calls()
print("started")
"""


def test_a_supervisor_whose_filter_lacks_a_call_does_not_start() -> None:
    done = subprocess.run([sys.executable, "-c", BROKEN_LIBSECCOMP], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("The runner cannot refuse rare system calls: libseccomp cannot refuse "), done.stderr


def as_supervisor(node: RealSupervisor, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the attempts with the supervisor's rights, and its view of the files."""
    enter = ("nsenter", f"--target={node.pid}", "--user", "--mount", "--setuid=0", "--setgid=0")
    return subprocess.run(
        [*enter, sys.executable, "-c", INSIDE, *arguments], capture_output=True, text=True, timeout=60
    )


@needs_root
def test_a_package_that_only_root_may_read_is_named(tmp_path: Path) -> None:
    private = tmp_path / "private.py"
    private.touch(mode=0o600)
    hide = f'mount --bind {private} {runners.__file__} && exec "$@"'
    server = [sys.executable, "-m", "runners.supervisor.server", "--socket", str(tmp_path / "s.sock")]

    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", hide, "sh", *server],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"LOCKSTEP_DATA_DIR": str(tmp_path)},
    )

    assert done.returncode == 2
    assert done.stderr.endswith(f" cannot read {runners.__file__}. Make it readable for every user.\n"), done.stderr


@needs_root
def test_data_in_a_clone_that_only_root_may_enter_can_be_reached(tmp_path: Path) -> None:
    clone = tmp_path / "closed" / "projects" / "clone"
    beside = tmp_path / "closed" / "a-python"
    beside.mkdir(parents=True)
    data_sets = clone / "data" / "datasets"
    data_sets.mkdir(parents=True)
    (clone / "data" / "lockstep.db").touch()
    for closed in (tmp_path / "closed", clone / "data"):
        closed.chmod(0o700)
    cover = f"""
import os, pathlib
from runners.sandbox.closed_folders import cover_closed_folders
cover_closed_folders([pathlib.Path({str(beside)!r}), pathlib.Path({str(data_sets)!r}), pathlib.Path({str(clone)!r})])
print(sorted(os.listdir({str(clone / "data")!r})), oct(os.stat({str(clone / "data")!r}).st_mode & 0o777))
"""
    done = subprocess.run([sys.executable, "-c", cover], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("['datasets'] 0o755\n", "")


@needs_root
def test_folders_below_mnt_can_be_reached() -> None:
    """Machines mount the disk of their data there."""
    cover = """
import pathlib
from runners.sandbox.closed_folders import cover_closed_folders
closed, open_ = pathlib.Path("/mnt/closed/data"), pathlib.Path("/mnt/lessons")
for folder in (closed, open_):
    folder.mkdir(parents=True)
    (folder / "file").touch()
closed.parent.chmod(0o700)
cover_closed_folders([closed, open_])
print(sorted(map(str, pathlib.Path("/mnt").rglob("*"))))
"""
    own_mnt = 'mount -t tmpfs none /mnt && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", own_mnt, "sh", sys.executable, "-c", cover]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout == (
        "['/mnt/closed', '/mnt/closed/data', '/mnt/closed/data/file', '/mnt/lessons', '/mnt/lessons/file']\n"
    )
