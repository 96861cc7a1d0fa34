"""One session can neither learn nor change anything about another, about Lockstep or about its lessons."""

from __future__ import annotations

import asyncio
import secrets
import zlib
from pathlib import Path

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import SECRET, SessionClient
from tests.long.hostile.conftest import Attack

ROOT = Path(__file__).resolve().parents[3]

SEARCH = """
import os, sys
from pathlib import Path
mine = {'/proc', '/usr', sys.prefix, sys.base_prefix, '/opt/lockstep/datasets', '/opt/lockstep/python'}
def walk():
    for top, folders, files in os.walk('/'):
        folders[:] = [f for f in folders if os.path.join(top, f) not in mine]
        yield from (os.path.join(top, f) for f in files)
    for link in Path('/proc').glob('[0-9]*/*'):
        if link.name in ('cwd', 'root', 'exe'): yield str(link)
    yield from map(str, Path('/proc').glob('[0-9]*/fd/*'))
def target(link):
    try: return os.readlink(link)
    except OSError: return ''
"""
MEMORY = """
import re, zlib
def holds(half, length, rest):
    found, behind = 0, 0
    with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:
        for line in maps:
            start, end = (int(x, 16) for x in line.split()[0].split('-'))
            if 'r' not in line.split()[1] or '[v' in line: continue
            for at in range(start, end, 1 << 22):
                try:
                    memory.seek(at)
                    data = memory.read(min(1 << 22, end - at) + 64)
                except (OSError, OverflowError, ValueError): break
                for m in re.finditer(re.escape(half), data):
                    found += zlib.crc32(data[m.end():m.end() + length]) == rest
    return found
"""


async def test_files_of_another_session_cannot_be_found_anywhere(attack: Attack) -> None:
    word = secrets.token_hex(16)
    places = ("/tmp/of-mine", "/home/learner/of-mine", "/dev/shm/of-mine")
    planted = await attack.neighbour.run(
        f"for p in {places}: open(p, 'w').write({word!r})\nimport os; os.umask(0); os.chmod('/home/learner', 0o777)\n"
        f"kept = os.open('/tmp/of-mine', os.O_RDONLY); os.unlink('/tmp/of-mine')"
    )
    assert planted.outcome == Outcome.ok
    told = await attack.run(
        SEARCH + f"half, other = {word[:16]!r}, {word[16:]!r}\n"
        "for path in walk():\n    try:\n        if os.path.isfile(path) and os.path.getsize(path) < 10**6:\n"
        "            if (half + other).encode() in Path(path).read_bytes(): print('OUT', path)\n"
        "    except OSError: pass\n"
        "print([p for p in walk() if 'of-mine' in p + target(p)], 'done')"
    )
    assert told.outcome == Outcome.ok, told.events
    assert told.stdout == "[] done\n"


async def test_lessons_checks_tests_and_the_application_cannot_be_found(attack: Attack) -> None:
    told = await attack.run(
        SEARCH + "import importlib.util\n"
        f"print([p for p in ({str(ROOT / 'app')!r}, {str(ROOT / 'lessons')!r}, {str(ROOT / 'tests')!r},"
        f" {str(ROOT / 'migrations')!r}, {str(ROOT / '.git')!r}, {str(ROOT / 'data')!r}) if os.path.exists(p)])\n"
        "names = ('checks.py', 'lesson.md', 'course.toml', 'lockstep.db', 'docker-compose.yml')\n"
        "print([p for p in walk() if os.path.basename(p) in names])\n"
        "print([n for n in ('app', 'app.main', 'tests', 'migrations') if n.split('.')[0] in sys.modules])"
    )
    assert told.outcome == Outcome.ok, told.events
    assert told.stdout == "[]\n[]\n[]\n"


async def test_no_secret_is_in_the_memory_that_a_session_was_born_with(attack: Attack) -> None:
    half, rest = SECRET[:9], SECRET[9:].encode()
    told = await attack.run(
        MEMORY + f"print(holds({half!r}.encode(), {len(rest)}, {zlib.crc32(rest)}))\n"
        f"kept = bytearray({half!r}.encode() + bytes.fromhex({rest.hex()!r}))\n"
        f"print(holds({half!r}.encode(), {len(rest)}, {zlib.crc32(rest)}) > 0)"
    )
    assert told.outcome == Outcome.ok, told.events
    assert told.stdout == "0\nTrue\n", "and what is there is found"


async def test_patched_modules_are_pristine_after_a_restart_and_in_the_next_session(client: RunnerClient) -> None:
    first = SessionClient(client)
    patched = await first.run(
        "import sys, os, json, socket, builtins, importlib, random\n"
        "import numpy as np, tensorflow as tf\n"
        "import runners.guest.runtime.kernel_app as a, runners.guest.runtime.output as o\n"
        "import runners.guest.tf_patches.gpu as g\n"
        "builtins.open = builtins.__import__ = json.dumps = socket.socket = np.ones = tf.constant = print\n"
        "a.prepare = a.reseed = o.pack = g.simulate = lambda *x, **y: 1 / 0\n"
        "sys.path.insert(0, '/tmp'); sys.meta_path.clear(); os.environ['PATH'] = ''\n"
        "sys.modules['planted'] = sys; sys.setrecursionlimit(150)",
        timeout_s=3,
    )
    assert patched.finished, "however it ended"
    await client.restart(first.session)
    check = (
        "import sys, os, json, socket, builtins\nimport numpy as np, tensorflow as tf\n"
        "(json.dumps([1]), open('/dev/null').read(), int(np.ones(2).sum()), int(tf.constant(2)),\n"
        " 'planted' in sys.modules, '/tmp' in sys.path, bool(os.environ['PATH']),\n"
        " sys.getrecursionlimit() > 500, len(sys.meta_path) > 1)"
    )
    pristine = "('[1]', '', 2, 2, False, False, True, True, True)"
    assert (await first.run(check)).result == pristine
    second = SessionClient(client)
    assert (await second.run(check)).result == pristine


async def test_a_learner_who_goes_away_finds_the_run_as_it_went_on(attack: Attack) -> None:
    code = "import time\nfor i in range(30): print(i, flush=True); time.sleep(0.05)"
    run = attack.hostile.request(code)
    async with attack.node.client() as leaving:
        await leaving.submit(run)
        async for event in leaving.events(run.id):
            if event.kind == "text":
                break
    await asyncio.sleep(0.5)
    accepted = await attack.client.submit(run)
    told = await attack.hostile.read(accepted)
    assert told.outcome == Outcome.ok
    assert told.stdout == "".join(f"{i}\n" for i in range(30))


async def test_no_name_on_the_wire_is_a_path(attack: Attack) -> None:
    for name in ("..", ".", "../../etc/passwd", "/etc/passwd", "a/b", "a\0b", "", "a" * 65, "a b", "é"):
        for wrong in (
            {"id": name},
            {"session": name},
            {"spec": {"owner": name, "topology": "gpu:4", "keras": 3}},
            {"spec": {"owner": "me", "topology": f"gpu:{name}", "keras": 3}},
        ):
            spec = {"owner": "me", "topology": "gpu:4", "keras": 3}
            body = {"id": "r", "session": "s", "spec": spec, "code": "1"} | wrong
            status, answer = await asyncio.to_thread(attack.node.ask, "POST", "/runs", body)
            assert (status, answer["code"]) == (422, "invalid"), wrong


async def test_no_name_in_an_address_is_a_path(attack: Attack) -> None:
    spec = {"owner": "me", "topology": "gpu:4", "keras": 3}
    for name in ("..", ".", "%2e%2e", "..%2f..%2fetc", "%2fetc%2fpasswd", "a%00b", "a%20b", "a" * 5000):
        for method, path, body in (
            ("PUT", f"/sessions/{name}", spec),
            ("GET", f"/sessions/{name}", None),
            ("DELETE", f"/sessions/{name}", None),
            ("POST", f"/sessions/{name}/restart", None),
            ("GET", f"/runs/{name}/events", None),
            ("POST", f"/runs/{name}/ack", {"through": 1}),
        ):
            status, _ = await asyncio.to_thread(attack.node.ask, method, path, body)
            assert 400 <= status < 500, (method, path)


@pytest.mark.parametrize("after_s", [0.02, 0.1, 0.2])
async def test_a_session_that_is_ended_again_and_again_while_it_starts_leaves_nothing(
    client: RunnerClient, after_s: float
) -> None:
    learner = SessionClient(client)
    await client.request_session(learner.session, learner.spec)
    await asyncio.sleep(after_s)

    async def end(later_s: float) -> None:
        await asyncio.sleep(later_s)
        await learner.leave()

    await asyncio.gather(*(end(number * 0.004) for number in range(30)))
    assert (await client.session(learner.session)).gone_because == "ended"
