"""Programs that want out: each is refused, and says so itself with ``refused`` for everything it tried.

A program prints ``OUT`` and what it got if anything worked; the test also looks from outside where it can.
"""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from runners.client import RunnerClient
from runners.protocol import Outcome
from tests.factories.node import SECRET, Learner, Node

TRY = """
import ctypes, os, socket, struct, sys
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)

def attempt(what, action, harmless=()):
    try:
        got = action()
    except OSError as e:
        print('refused', what, e.errno)
        return
    print('refused' if got in harmless else 'OUT', what, repr(got)[:200])

def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""

PROGRAMS = {
    "files of the host": """
way = {part for p in (sys.prefix, sys.base_prefix) for part in Path(p).parts} | {'learner'}  # to Python, and home
for path in ('/etc/shadow', '/root', '/home', '/var', '/run', '/sys', '/srv', '/opt/lockstep/../../root', '/work',
             '/boot', '/media', '/proc/1/root/etc/shadow', '/proc/1/cwd', '/proc/kcore', '/dev/mem', '/dev/sda',
             '/dev/kmsg', '/proc/sysrq-trigger'):
    p = Path(path)
    def look():
        if p.is_dir(): return sorted({*os.listdir(p)} - way)
        return p.read_bytes() if os.access(p, os.R_OK) else []
    attempt(path, look, ([],))
""",
    "writing where others read": """
for folder in ('/', '/usr', '/etc', '/usr/bin', sys.prefix, '/dev', '/proc', '/opt/lockstep/datasets', '/bin'):
    attempt(folder, lambda: open(os.path.join(folder, 'planted'), 'w').name)
attempt('interpreter', lambda: open(os.path.realpath(sys.executable), 'r+b').name)
attempt('tensorflow', lambda: open(__import__('tensorflow').__file__, 'a').name)
""",
    "other processes": """
attempt('environ of 1', lambda: Path('/proc/1/environ').read_bytes())
attempt('memory of 1', lambda: open('/proc/1/mem', 'rb').name)
attempt('maps of 1', lambda: Path('/proc/1/maps').read_bytes(), (b'',))
attempt('descriptors of 1', lambda: os.listdir('/proc/1/fd'))
attempt('signal to 1', lambda: os.kill(1, 9) or Path('/proc/1/comm').exists(), (True,))
attempt('stop 1', lambda: os.kill(1, 19) or Path('/proc/1/comm').exists(), (True,))
attempt('ptrace', lambda: call(101, 16, 1, 0, 0))
attempt('process_vm_readv', lambda: call(310, 1, 0, 0, 0, 0, 0))
attempt('process_vm_writev', lambda: call(311, 1, 0, 0, 0, 0, 0))
attempt('pidfd_getfd', lambda: call(438, os.pidfd_open(1), 0, 0))
attempt('kcmp', lambda: call(312, 1, 1, 0, 0, 0))
pids = sorted(int(p) for p in os.listdir('/proc') if p.isdigit())
print('refused' if len(pids) < 10 and pids[0] == 1 else 'OUT', 'others', pids)
""",
    "new namespaces and mounts": """
attempt('unshare user', lambda: call(272, 0x10000000))
attempt('unshare mount', lambda: call(272, 0x00020000))
attempt('clone user', lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0))
attempt('clone3', lambda: call(435, ctypes.create_string_buffer(88), 88))
attempt('setns', lambda: call(308, os.open('/proc/self/ns/mnt', os.O_RDONLY), 0))
attempt('mount', lambda: call(165, b'none', b'/tmp', b'tmpfs', 0, 0))
attempt('mount proc', lambda: call(165, b'proc', b'/tmp', b'proc', 0, 0))
attempt('umount', lambda: call(166, b'/proc', 2))
attempt('pivot_root', lambda: call(155, b'/tmp', b'/tmp'))
attempt('chroot', lambda: os.chroot('/tmp'))
attempt('open_tree', lambda: call(428, -100, b'/', 1))
attempt('fsopen', lambda: call(430, b'tmpfs', 0))
attempt('mknod', lambda: os.mknod('/tmp/disk', 0o60666, os.makedev(8, 0)))
""",
    "large parts of the kernel": """
for name, number, *arguments in (
    ('bpf', 321, 0, 0, 0), ('perf_event_open', 298, 0, 0, 0, 0, 0), ('userfaultfd', 323, 0),
    ('io_uring_setup', 425, 8, ctypes.create_string_buffer(120)), ('keyctl', 250, 0, -3, 0),
    ('add_key', 248, b'user', b'x', b'y', 1, -3), ('request_key', 249, b'user', b'x', 0, 0),
    ('fanotify_init', 300, 0, 0), ('vmsplice', 278, 0, 0, 0, 0), ('init_module', 175, 0, 0, 0),
    ('kexec_load', 246, 0, 0, 0, 0),
    ('reboot', 169, 0, 0, 0, 0), ('swapon', 167, 0, 0), ('syslog', 103, 3, 0, 0), ('personality', 135, 0x0040000),
    ('name_to_handle_at', 303, -100, b'/', 0, 0, 0), ('open_by_handle_at', 304, -100, 0, 0), ('iopl', 172, 3),
    ('modify_ldt', 154, 0, 0, 0), ('quotactl', 179, 0, 0, 0, 0), ('acct', 163, 0), ('clock_settime', 227, 0, 0),
):
    attempt(name, lambda: call(number, *arguments))
attempt('TIOCSTI', lambda: __import__('fcntl').ioctl(os.openpty()[1], 0x5412, b'x'))
""",
    "more rights": """
attempt('setuid 0', lambda: os.setuid(0))
attempt('setgid 0', lambda: os.setgid(0))
attempt('setgroups', lambda: os.setgroups([0]))
attempt('chown', lambda: os.chown('/tmp', 0, 0))
attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
attempt('realtime', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))
import resource
def more_memory(): resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))
try: more_memory(); print('OUT rlimit')
except ValueError: print('refused rlimit')
status = dict(l.split(':', 1) for l in Path('/proc/self/status').read_text().splitlines())
bare = all(int(status[c], 16) == 0 for c in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'))
confined = status['NoNewPrivs'].strip() == '1' and status['Seccomp'].strip() == '2'
print('refused' if bare and confined else 'OUT', 'status')
import subprocess
for program in ('su', 'mount', 'passwd', 'chsh', 'newgrp', 'sudo', 'pkexec'):
    for folder in ('/usr/bin/', '/bin/'):
        if os.path.exists(folder + program):
            command = [folder + program, '-c', 'id -u']
            said = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            print('OUT' if said.stdout.strip() == '0' else 'refused', program)
""",
    "sockets to other worlds": """
for name, family, kind, protocol in (
    ('raw', 2, 3, 1), ('raw6', 10, 3, 58), ('packet', 17, 3, 0), ('vsock', 40, 1, 0), ('bluetooth', 31, 3, 1),
    ('netlink audit', 16, 3, 9), ('netlink netfilter', 16, 3, 12), ('netlink uevent', 16, 3, 15), ('alg', 38, 5, 0),
    ('can', 29, 3, 1), ('x25', 9, 5, 0), ('tipc', 30, 1, 0), ('xdp', 44, 3, 0), ('rds', 21, 5, 0), ('kcm', 41, 2, 0),
):
    attempt(name, lambda: socket.socket(family, kind, protocol).family)
socket.socket(16, 3, 0).close()  # the list of its own interfaces is allowed
print('refused' if [n for _, n in socket.if_nameindex()] == ['lo'] else 'OUT', 'interfaces')
attempt('internet', lambda: socket.create_connection(('1.1.1.1', 53), 2))
attempt('names', lambda: socket.getaddrinfo('example.org', 80))
""",
}


def _judge(told: object, text: str) -> None:
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith("OUT")], text
    assert [line for line in lines if line.startswith("refused")], told


@pytest.fixture
async def hostile(client: RunnerClient) -> Learner:
    """A session for one program."""
    return Learner(client)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the programs name system calls by their x86-64 numbers")
@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in PROGRAMS.items()])
async def test_it_gets_nowhere(hostile: Learner, code: str) -> None:
    told = await hostile.run(TRY + code)
    await hostile.leave()
    assert told.outcome == Outcome.ok, told.text + str(told.events[-2:])
    _judge(told, told.stdout)


async def test_what_listens_on_the_host_is_out_of_reach(node: Node, hostile: Learner) -> None:
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0lockstep-test-{os.getpid()}")
    abstract.listen()
    with abstract, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.01)
        port = listener.getsockname()[1]
        told = await hostile.run(
            TRY + f"attempt('tcp', lambda: socket.create_connection(('127.0.0.1', {port}), 2))\n"
            f"attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0lockstep-test-{os.getpid()}'))\n"
            f"attempt('supervisor', lambda: socket.socket(socket.AF_UNIX).connect({str(node.socket)!r}))\n"
        )
        with pytest.raises(TimeoutError):
            listener.accept()
    await hostile.leave()
    assert told.stdout.count("refused") == 3


async def test_the_apps_data_and_the_supervisors_folders_are_not_there(node: Node, hostile: Learner) -> None:
    private = node.data / "lockstep.db"
    private.write_text(SECRET)
    private.chmod(0o666)
    told = await hostile.run(
        TRY + f"for path in {[str(private), str(node.folder), str(node.socket), str(node.log)]}:\n"
        "    attempt(path, lambda: os.stat(path))"
    )
    await hostile.leave()
    assert told.stdout.count("refused") == 4


async def test_no_secret_of_the_supervisors_environment_is_anywhere(hostile: Learner) -> None:
    told = await hostile.run(
        "import os\nfrom pathlib import Path\n"
        f"half = {SECRET[:9]!r}; word = (half + {SECRET[9:]!r}).encode()\n"
        "found = [str(v) for v in os.environ.items() if word.decode() in str(v)]\n"
        "for p in Path('/proc').glob('[0-9]*/environ'):\n"
        "    try:\n        if word in p.read_bytes(): found.append(str(p))\n    except OSError: pass\n"
        "print(found, 'DATABASE_PASSWORD' in os.environ, [k for k in os.environ if k.startswith('LOCKSTEP')])"
    )
    await hostile.leave()
    assert told.stdout == "[] False ['LOCKSTEP_DATASETS']\n"


async def test_only_its_own_sockets_and_pipes_are_open(hostile: Learner) -> None:
    told = await hostile.run(
        "import os\nkinds = set()\n"
        "for fd in os.listdir('/proc/self/fd'):\n"
        "    try: kinds.add(os.readlink('/proc/self/fd/' + fd).split(':')[0])\n"
        "    except OSError: pass\n"
        "print(sorted(kinds - {'socket', 'pipe', 'anon_inode', '/dev/null'}))"
    )
    await hostile.leave()
    assert told.outcome == Outcome.ok
    assert all(word.startswith("/proc/") for word in eval(told.stdout)), told.stdout


async def test_a_32_bit_call_ends_the_program(hostile: Learner) -> None:
    told = await hostile.run(
        "import ctypes, mmap, os\n"
        "if os.uname().machine != 'x86_64': raise SystemExit(9)\n"
        "code = mmap.mmap(-1, 4096, prot=7)\n"
        "code.write(b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3')  # getpid by int 0x80\n"
        "print('OUT', ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())"
    )
    await hostile.leave()
    assert told.outcome in (Outcome.crash, Outcome.error)
    assert "OUT" not in told.stdout


async def test_one_sessions_files_and_patches_do_not_reach_another(client: RunnerClient) -> None:
    first, second = Learner(client), Learner(client)
    await first.run(
        "import builtins, tensorflow as tf, numpy as np\n"
        "for folder in ('/tmp', '/home/learner', '/dev/shm'): open(folder + '/planted', 'w').write('x')\n"
        "builtins.print = None\nbuiltins.planted = 1\ntf.constant = None\nnp.ones = None"
    )
    check = (
        "import builtins, os, tensorflow as tf, numpy as np\n"
        "there = [f for f in ('/tmp', '/home/learner', '/dev/shm') if os.path.exists(f + '/planted')]\n"
        "(there, hasattr(builtins, 'planted'), len([1]), tf.constant(2).numpy() == 2, np.ones(1)[0] == 1.0)"
    )
    beside = await second.run(check)
    await first.leave()
    third = Learner(client)
    after = await third.run(check)
    await asyncio.gather(second.leave(), third.leave())
    assert beside.result == after.result == "([], False, 1, np.True_, np.True_)"
