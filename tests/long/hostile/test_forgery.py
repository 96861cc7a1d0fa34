"""Programs that hold the real session key and the protocol's own descriptors, and lie or break with them.

A session may lie about its own output. It gains no time, no memory and no neighbour by it.
"""

from __future__ import annotations

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import SessionClient
from tests.long.hostile.conftest import Attack

CRASH, ERROR, OK, TIME, OUTPUT = Outcome.crash, Outcome.error, Outcome.ok, Outcome.timeout, Outcome.output

FORGE = """
import hashlib, hmac, json
kernel = get_ipython().kernel
session, thread = kernel.session, kernel.iopub_thread
def publish(kind, content, parent=None):
    session.send(thread, session.msg(kind, content, parent=parent or kernel.get_parent('shell')))
def publish_raw(header, content):
    parts = [header, b'{}', b'{}', content]
    signature = hmac.new(session.key, b''.join(parts), hashlib.sha256).hexdigest().encode()
    thread.send_multipart([b'x', b'<IDS|MSG>', signature, *parts])
def answer(content):
    session.send(kernel.shell_stream.socket, 'execute_reply', content, kernel.get_parent('shell'),
                 ident=kernel._parent_ident['shell'])
def forge_the_end():
    answer({'status': 'ok', 'execution_count': 1, 'user_expressions': {}, 'payload': []})
    publish('status', {'execution_state': 'idle'})
"""

PROGRAMS = {
    "closing every descriptor": ("import os; os.closerange(0, 4096)", {CRASH, OUTPUT, TIME}),
    "closing the output channel": ("get_ipython().kernel.iopub_thread.socket.close()", {CRASH, OUTPUT, TIME}),
    "closing the context": (
        "import threading\nthreading.Thread(target=get_ipython().kernel.session.context.term if"
        " hasattr(get_ipython().kernel.session, 'context') else"
        " get_ipython().parent.iopub_socket.context.destroy).start()\nimport time; time.sleep(60)",
        {CRASH, OUTPUT, TIME, ERROR},
    ),
    "ending the output thread": ("get_ipython().kernel.iopub_thread.stop(); print('x')", {CRASH, OUTPUT, TIME, OK}),
    "stopping the kernel's loops": (
        "k = get_ipython().kernel\nk.iopub_thread.io_loop.add_callback(k.iopub_thread.io_loop.stop)\n"
        "k.io_loop.add_callback(k.io_loop.stop)",
        None,
    ),
    "junk on the protocol's descriptors": (
        "import os, socket\nfor fd in range(3, 200):\n"
        "    try: os.set_blocking(fd, False); os.write(fd, b'\\xff' * 100_000)\n    except OSError: pass",
        None,
    ),
    "the null device on every descriptor": (
        "import os\nnull = os.open('/dev/null', os.O_RDWR)\nfor fd in range(3, 200):\n"
        "    if fd != null: os.dup2(null, fd)",
        None,
    ),
    "every descriptor is another": (
        "import os, random\nfds = [int(f) for f in os.listdir('/proc/self/fd')]\n"
        "for fd in fds:\n    try: os.dup2(random.choice(fds), fd)\n    except OSError: pass\nprint('x')",
        None,
    ),
    "the channels exchanged": (
        "import os, socket\nchannels = []\nfor fd in range(3, 200):\n    try:\n"
        "        s = socket.socket(fileno=os.dup(fd))\n"
        "        if s.family == socket.AF_UNIX and '/k-' in str(s.getsockname()): channels.append(fd)\n"
        "    except OSError: pass\nfor a, b in zip(channels, reversed(channels)): os.dup2(a, b)\nprint('x')",
        None,
    ),
    "a forged end": (
        FORGE + "publish('status', {'execution_state': 'idle'})\nimport time; time.sleep(1.5); print('still here')",
        {OK},
    ),
    "a forged error": (FORGE + "publish('error', {'ename': 'E', 'evalue': 'x', 'traceback': []})", {ERROR}),
    "forged nonsense": (
        FORGE + "for kind in ('stream', 'display_data', 'error', 'status', 'clear_output', 'comm_open', 'finished'):\n"
        "    for content in ({}, {'name': 5}, {'text': {}}, {'data': []}, {'traceback': 'x', 'ename': 'x'}):\n"
        "        publish(kind, content)",
        {OK},
    ),
    "forged headers": (
        FORGE + "for header in (b'', b'[]', b'5', b'null', b'{', b'\\xff', b'{}', b'[' * 100_000, b'{\"date\": {}}',\n"
        '    b\'{"msg_id": [], "msg_type": {}, "date": "9999-99-99T99:99:99Z"}\', b\'{"msg_type": NaN}\',\n'
        "    b'{\"msg_id\": ' + b'9' * 10_000 + b'}'):\n"
        "    for content in (b'{}', b'[]', b'\\xff\\xff', b'[' * 100_000, b'9' * 10_000, b'NaN'):\n"
        "        publish_raw(header, content)",
        {OK},
    ),
    "messages cut short": (
        FORGE + "for n in range(8): thread.send_multipart([b'<IDS|MSG>'] * n or [b''])\n"
        "for n in range(50): thread.send_multipart([b'x'] * 2000)",
        {OK, OUTPUT, CRASH},
    ),
    "a forged flood": (
        FORGE + 'header = b\'{"msg_id": "%d", "msg_type": "status"}\'\n'
        "for n in range(20_000): publish_raw(header % n, b'{}')",
        {OK, TIME},
    ),
    "a forged giant": (FORGE + "publish('stream', {'name': 'stdout', 'text': 'x' * 30_000_000})", {OUTPUT}),
}


@pytest.mark.parametrize(
    ("code", "outcomes"), [pytest.param(code, outcomes, id=name) for name, (code, outcomes) in PROGRAMS.items()]
)
async def test_it_deceives_only_itself(attack: Attack, code: str, outcomes: set[Outcome] | None) -> None:
    told = await attack.run(code, timeout_s=1 if outcomes is None or TIME in outcomes else None)
    assert outcomes is None or told.outcome in outcomes, told.events
    for event in told.events:
        assert "\\u0000" not in event.model_dump_json()
        event.model_dump_json().encode()


async def test_a_forged_end_does_not_end_the_next_run(client: RunnerClient) -> None:
    learner = SessionClient(client)
    await learner.run(
        FORGE + "import threading, time\n"
        "parent = {'header': {'msg_id': 'x'}}\n"
        "def forge():\n"
        "    for _ in range(200):\n"
        "        publish('status', {'execution_state': 'idle'}, {'header': {'msg_id': 'x', 'date': None}})\n"
        "        time.sleep(0.01)\n"
        "threading.Thread(target=forge).start()"
    )
    told = await learner.run("import time; time.sleep(0.5); print('done')")
    await learner.leave()
    assert (told.outcome, told.stdout) == (Outcome.ok, "done\n")


async def test_a_forged_end_does_not_hide_what_follows_or_buy_time(client: RunnerClient) -> None:
    learner = SessionClient(client)
    forged = FORGE + "publish('status', {'execution_state': 'idle'})\n"
    told = await learner.run(forged + "import time; time.sleep(2); print('seen'); 1/0")
    assert (told.outcome, told.stdout, told.error.name) == (Outcome.error, "seen\n", "ZeroDivisionError")
    told = await learner.run(forged + "while True: pass", timeout_s=2)
    assert told.outcome == Outcome.timeout
    await learner.leave()


async def test_a_wholly_forged_end_ends_that_run_and_the_next_is_judged_by_its_own_deeds(attack: Attack) -> None:
    told = await attack.run(FORGE + "forge_the_end()\nimport time; time.sleep(1)")
    assert told.outcome == OK
    told = await attack.hostile.run("print('mine')\n1/0")
    assert (told.outcome, told.stdout, told.error.name) == (ERROR, "mine\n", "ZeroDivisionError")


async def test_a_program_that_continues_after_a_forged_end_still_has_a_time_limit(attack: Attack) -> None:
    told = await attack.run(FORGE + "forge_the_end()\nwhile True: pass", timeout_s=3)
    assert told.outcome in (OK, TIME)


async def test_a_program_that_continues_after_a_forged_end_still_has_a_memory_limit(attack: Attack) -> None:
    hostile = await attack.hostile.submit(
        FORGE + "forge_the_end()\nkept = []\nwhile True: kept.append(b'x' * 10_000_000)"
    )
    assert (await attack.hostile.read(hostile)).outcome in (OK, Outcome.memory)
    assert (await attack.neighbour.run("6 * 7")).result == "42"
    told = await attack.hostile.run("'kept' in globals()")
    assert told.outcome in (OK, Outcome.memory, CRASH)
    assert (await attack.hostile.run("1 + 1")).result == "2"


async def test_messages_of_one_session_never_reach_another(attack: Attack) -> None:
    told = await attack.run(
        FORGE
        + "import os\nfor fd in range(3, 200):\n    try: os.write(fd, b'ALIEN' * 10_000)\n    except OSError: pass\n"
        "alien = {'header': {'msg_id': 'of another'}}\n"
        "for _ in range(100): publish('stream', {'name': 'stdout', 'text': 'ALIEN'}, alien)",
        timeout_s=3,
    )
    assert told.outcome in (OK, OUTPUT, CRASH, TIME, ERROR)
    beside = await attack.neighbour.run("print(count)")
    assert "ALIEN" not in beside.text
