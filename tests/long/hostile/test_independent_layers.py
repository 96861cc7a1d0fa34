"""Each isolation layer holds without the others: the same programs, with one layer removed."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from runners.config.settings import Limits
from runners.sandbox import landlock
from runners.sandbox.policy import session_policy
from tests.factories.partial_sandbox import program_output
from tests.factories.sandbox_escapes import PROGRAMS, TRY

needs_landlock = pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock of use")
needs_scopes = pytest.mark.skipif(landlock.abi() < 6, reason="this kernel's Landlock knows no scopes")

DOORS = """
import errno
def closed(name, number, *arguments):
    try: call(number, *arguments)
    except OSError as e: print('refused' if e.errno in (errno.EPERM, errno.ENOSYS) else 'OUT', name, e)
    else: print('OUT', name)
parent = os.getppid()
for name, number, *arguments in (
    ('unshare user', 272, 0x10000000), ('clone user', 56, 0x10000000 | 17, 0, 0, 0, 0),
    ('clone3', 435, ctypes.create_string_buffer(88), 88), ('mount', 165, b'none', b'/tmp', b'tmpfs', 0, 0),
    ('setns', 308, os.open('/proc/self/ns/net', os.O_RDONLY), 0), ('chroot', 161, b'/tmp'),
    ('ptrace', 101, 16, parent, 0, 0), ('process_vm_readv', 310, parent, 0, 0, 0, 0, 0),
    ('pidfd_getfd', 438, os.pidfd_open(parent), 0, 0), ('io_uring', 425, 8, ctypes.create_string_buffer(120)),
    ('userfaultfd', 323, 1), ('bpf', 321, 0, ctypes.create_string_buffer(72), 72), ('keyctl', 250, 0, -3, 0),
    ('perf', 298, ctypes.create_string_buffer(112), 0, -1, -1, 0), ('add_key', 248, b'user', b'x', b'y', 1, -3),
    ('memfd_secret', 447, 0), ('a call of tomorrow', 470),
):
    closed(name, number, *arguments)
for family in (17, 38, 40): attempt(family, lambda: socket.socket(family, socket.SOCK_DGRAM, 0).family)
attempt('TIOCSTI', lambda: __import__('fcntl').ioctl(os.openpty()[1], 0x5412, b'x'))
"""


def _refused(text: str) -> None:
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("refused")], text
    assert not [line for line in lines if line.startswith(("OUT", "FAILED", "ENDED"))], text


@pytest.mark.parametrize(
    "name",
    [
        "files of the host",
        "writing where others read",
        "namespaces again",
        "links, pipes and programs made by itself",
    ],
)
def test_namespaces_hold_alone(name: str) -> None:
    _refused(program_output(TRY + PROGRAMS[name], "namespaces"))


def test_a_kernel_without_mount_setattr_makes_the_same_root() -> None:
    look = "print(*sorted(' '.join(line.split()[1:4]) for line in open('/proc/self/mounts')), sep='\\n')\n"
    new, old = program_output(look, "namespaces"), program_output(look, "namespaces", "no mount_setattr")
    assert new == old
    assert len(new.splitlines()) > 15
    hidden = session_policy(Limits(), None, ()).proc_hidden
    own = ("/tmp ", "/home/learner ", "/dev/", *(f"/proc/{name} " for name in hidden))
    assert not [line for line in new.splitlines() if " ro,nosuid" not in line and not line.startswith(own)]
    _refused(program_output(TRY + PROGRAMS["writing where others read"], "namespaces", "no mount_setattr"))


@pytest.mark.parametrize("name", ["new namespaces and mounts", "namespaces again", "other processes"])
def test_namespaces_and_the_filter_hold_without_landlock(name: str) -> None:
    _refused(program_output(TRY + PROGRAMS[name], "namespaces", "seccomp"))


def test_the_filter_holds_alone() -> None:
    _refused(program_output(TRY + DOORS, "seccomp"))


@needs_landlock
@pytest.mark.skipif(not os.access("/var/tmp", os.W_OK), reason="only /tmp can be written, which is a session's own")
def test_landlock_holds_alone() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o777)
        open_to_all = Path(folder, "open")
        open_to_all.write_text("x")
        open_to_all.chmod(0o666)
        text = program_output(
            TRY + f"folder = {folder!r}\n"
            "attempt('write', lambda: open(folder + '/open', 'w'))\n"
            "attempt('truncate', lambda: os.truncate(folder + '/open', 0))\n"
            "attempt('make', lambda: os.mkdir(folder + '/made'))\n"
            "attempt('link', lambda: os.symlink('/', folder + '/made'))\n"
            "attempt('listen', lambda: socket.socket(socket.AF_UNIX).bind(folder + '/made'))\n"
            "attempt('remove', lambda: os.unlink(folder + '/open'))\n"
            "attempt('move', lambda: os.rename(folder + '/open', '/tmp/moved'))\n"
            "import tempfile; tempfile.NamedTemporaryFile(dir='/tmp').write(b'x')\n",
            "landlock",
        )
        _refused(text)
        assert open_to_all.read_text() == "x"


@needs_scopes
def test_landlock_keeps_signals_and_abstract_sockets_inside() -> None:
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind(f"\0lockstep-layers-{os.getpid()}")
        outside.listen()
        text = program_output(
            TRY + f"name = '\\0lockstep-layers-{os.getpid()}'\n"
            "attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect(name))\n"
            "attempt('signal', lambda: os.kill(BESIDE, 9))\n"
            "import subprocess\n"
            "child = subprocess.Popen(['sleep', '9']); child.kill(); child.wait()\n",
            "landlock",
        )
        _refused(text)
        assert "refused abstract 1" in text
        assert "refused signal 1" in text


def test_a_program_without_isolation_would_escape() -> None:
    assert "OUT unshare user" in program_output(TRY + DOORS)
    assert "OUT signal" in program_output(TRY + "attempt('signal', lambda: os.kill(BESIDE, 9))")
