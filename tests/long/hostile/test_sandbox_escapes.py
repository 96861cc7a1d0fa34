"""Programs that want out: each is refused, and says so itself with ``refused`` for everything it tried.

A program prints ``OUT`` and what it got if anything worked; the test also looks from outside where it can.
"""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import SECRET, RealSupervisor, SessionClient
from tests.factories.sandbox_escapes import PROGRAMS, TRY


def _judge(told: object, text: str) -> None:
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith("OUT")], text
    assert [line for line in lines if line.startswith("refused")], told


@pytest.fixture
async def hostile(client: RunnerClient) -> SessionClient:
    """A session for one program."""
    return SessionClient(client)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the programs name system calls by their x86-64 numbers")
@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in PROGRAMS.items()])
async def test_it_gets_nowhere(hostile: SessionClient, code: str) -> None:
    told = await hostile.run(TRY + code)
    await hostile.leave()
    assert told.outcome == Outcome.ok, told.text + str(told.events[-2:])
    _judge(told, told.stdout)


async def test_every_kernel_is_killed_before_its_pid_1_and_can_change_neither(
    client: RunnerClient, hostile: SessionClient
) -> None:
    scores = "print(*(int(open(f'/proc/{pid}/oom_score_adj').read()) for pid in ('self', 1)))"
    first = await hostile.run(TRY + "attempt('0', lambda: put('/proc/self/oom_score_adj', b'0'))\n" + scores)
    await client.restart(hostile.session)
    second = await hostile.run(scores)
    await hostile.leave()

    assert first.stdout.splitlines() == ["refused 0 30", "500 400"]
    assert second.stdout == "500 400\n"


async def test_what_listens_on_the_host_is_out_of_reach(node: RealSupervisor, hostile: SessionClient) -> None:
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


async def test_the_apps_data_and_the_supervisors_folders_are_not_there(
    node: RealSupervisor, hostile: SessionClient
) -> None:
    private = node.data / "lockstep.db"
    private.write_text(SECRET)
    private.chmod(0o666)
    told = await hostile.run(
        TRY + f"for path in {[str(private), str(node.folder), str(node.socket), str(node.log)]}:\n"
        "    attempt(path, lambda: os.stat(path))"
    )
    await hostile.leave()
    assert told.stdout.count("refused") == 4


async def test_no_secret_of_the_supervisors_environment_is_anywhere(hostile: SessionClient) -> None:
    told = await hostile.run(
        "import os\nfrom pathlib import Path\n"
        f"half = {SECRET[:9]!r}; word = (half + {SECRET[9:]!r}).encode()\n"
        "found = [str(v) for v in os.environ.items() if word.decode() in str(v)]\n"
        "for p in Path('/proc').glob('[0-9]*/environ'):\n"
        "    try:\n        if word in p.read_bytes(): found.append(str(p))\n    except OSError: pass\n"
        "print(found, 'DATABASE_PASSWORD' in os.environ, [k for k in os.environ if k.startswith('LOCKSTEP')])"
    )
    await hostile.leave()
    assert told.stdout == "[] False ['LOCKSTEP_DATASETS', 'LOCKSTEP_GPUS']\n"


async def test_only_its_own_sockets_and_pipes_are_open(hostile: SessionClient) -> None:
    told = await hostile.run(
        "import os\nkinds = set()\n"
        "for fd in os.listdir('/proc/self/fd'):\n"
        "    try: link = os.readlink('/proc/self/fd/' + fd)\n"
        "    except OSError: continue\n"
        "    kinds.add(link if link.startswith('/memfd') else link.split(':')[0])\n"
        "print(sorted(kinds - {'socket', 'pipe', 'anon_inode', '/dev/null', '/memfd:printed (deleted)'}))"
    )
    await hostile.leave()
    assert told.outcome == Outcome.ok
    assert all(word.startswith("/proc/") for word in eval(told.stdout)), told.stdout


async def test_a_32_bit_call_ends_the_program(hostile: SessionClient) -> None:
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


async def test_an_x32_call_ends_the_program(hostile: SessionClient) -> None:
    told = await hostile.run(
        "import ctypes, os\n"
        "if os.uname().machine != 'x86_64': raise SystemExit(9)\n"
        "print('OUT', ctypes.CDLL(None).syscall(0x40000000 | 39))"
    )
    await hostile.leave()
    assert told.outcome in (Outcome.crash, Outcome.error)
    assert "OUT" not in told.stdout


async def test_one_sessions_abstract_sockets_and_signals_do_not_reach_another(client: RunnerClient) -> None:
    first, second = SessionClient(client), SessionClient(client)
    await first.run("import os, socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0mine'); s.listen()")
    told = await second.run(
        TRY + "attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0mine'))\n"
        "print('refused' if not [l for l in open('/proc/net/unix') if 'mine' in l] else 'OUT', 'list')\n"
        "for pid in range(2, 5000):\n"
        "    if pid != os.getpid() and not os.path.exists(f'/proc/{pid}'):\n"
        "        try: os.kill(pid, 0); print('OUT', pid)\n"
        "        except OSError: pass\n"
    )
    alive = await first.run("print(len('alive'))")
    await asyncio.gather(first.leave(), second.leave())
    _judge(told, told.stdout)
    assert alive.stdout == "5\n"


async def test_traps_in_its_folders_hold_up_nobody(client: RunnerClient, hostile: SessionClient) -> None:
    await hostile.run(
        "import os, shutil\n"
        "for folder in ('/tmp', '/home/learner', '/dev/shm'):\n"
        "    for name in os.listdir(folder): shutil.rmtree(f'{folder}/{name}', ignore_errors=True)\n"
        "    for name in ('.ipython', '.matplotlib', '.keras', '.jupyter', '.pythonrc', 'usercustomize.py', 'k-1'):\n"
        "        os.mkfifo(f'{folder}/{name}')\n"
        "    for name in ('.config', '.cache', '.local', 'numpy.py', 'result.json'):\n"
        "        os.symlink('/proc/1/root', f'{folder}/{name}')\n"
        "    os.mkdir(folder + '/deep'); os.chmod(folder + '/deep', 0)"
    )
    await client.restart(hostile.session)
    told = await hostile.run(
        "import matplotlib.pyplot as plt; plt.plot([1]); import tensorflow as tf; print(tf.add(1, 1))"
    )
    await hostile.leave()
    assert told.outcome == Outcome.ok, told.events[-2:]


async def test_one_sessions_files_and_patches_do_not_reach_another(client: RunnerClient) -> None:
    first, second = SessionClient(client), SessionClient(client)
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
    third = SessionClient(client)
    after = await third.run(check)
    await asyncio.gather(second.leave(), third.leave())
    assert beside.result == after.result == "([], False, 1, np.True_, np.True_)"
