"""Programs that break or deceive their own kernel: the run ends, typed, and only they are the worse for it."""

from __future__ import annotations

import pytest

from runners.client import RunnerClient
from runners.protocol import Outcome
from tests.factories.node import Learner
from tests.sandbox.conftest import Attack

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
"""

PROGRAMS = {
    "segmentation fault": ("import ctypes; ctypes.string_at(0)", {CRASH}),
    "abort": ("import os; os.abort()", {CRASH}),
    "ending itself well": ("import os; os._exit(0)", {CRASH}),
    "ending with words": ("print('last words', flush=True)\nimport os; os._exit(3)", {CRASH}),
    "killing all": ("import os\nos.fork() or os.kill(-1, 9)\nos.kill(-1, 9)", {OK, ERROR, CRASH}),
    "killing itself": ("import os; os.kill(os.getpid(), 9)", {CRASH}),
    "stopping itself": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", {TIME}),
    "recursion without end": ("f = lambda: f()\nf()", {ERROR}),
    "recursion without limit": ("import sys; sys.setrecursionlimit(10**9)\nf = lambda x: f(x + [x])\nf([])", None),
    "an exception without text": ("class E(Exception):\n    def __str__(self): raise E()\nraise E()", {ERROR}),
    "an exception that renders itself": (
        "class E(Exception):\n    def _render_traceback_(self): return [b'\\xff', 5]\nraise E()",
        {ERROR},
    ),
    "an exception that forges its name": (
        "raise type('MemoryError' + chr(0) + '\\ud800' * 3, (Exception,), {})('\\ud800\\0')",
        {ERROR},
    ),
    "text that is none": ("import sys, os\nsys.stdout.write('a\\0b\\ud800c')\n_ = os.write(1, b'\\xff\\xfe\\0')", {OK}),
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
        "k = get_ipython().kernel\nk.control_thread.io_loop.add_callback(k.control_thread.io_loop.stop)\n"
        "k.io_loop.add_callback(k.io_loop.stop)",
        None,
    ),
    "junk on the protocol's descriptors": (
        "import os, socket\nfor fd in range(3, 200):\n"
        "    try: os.set_blocking(fd, False); os.write(fd, b'\\xff' * 100_000)\n    except OSError: pass",
        None,
    ),
    "builtins gone": ("import builtins\nfor n in dir(builtins): delattr(builtins, n)", None),
    "modules gone": ("import sys; sys.modules.clear(); import gc; gc.collect()", None),
    "no working directory": (
        "import os\nos.mkdir('/tmp/here'); os.chdir('/tmp/here'); os.rmdir('/tmp/here')",
        {OK},
    ),
    "a locked home": ("import os; os.chmod(os.environ['HOME'], 0); os.chmod('/tmp', 0)", {OK}),
    "children that stay": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork() or time.sleep(10**6)\n    os._exit(0)",
        {OK},
    ),
    "zombies": ("import os\nfor _ in range(50):\n    if os.fork() == 0: os._exit(0)", {OK}),
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
        {OK},
    ),
    "a forged flood": (
        FORGE + 'header = b\'{"msg_id": "%d", "msg_type": "status"}\'\n'
        "for n in range(20_000): publish_raw(header % n, b'{}')",
        {OK, TIME},
    ),
    "a forged giant": (FORGE + "publish('stream', {'name': 'stdout', 'text': 'x' * 30_000_000})", {OUTPUT}),
    "deep JSON": (
        "from IPython.display import display\nx = []\nfor _ in range(500): x = [x]\n"
        "display({'application/json': x, 'text/plain': 'deep'}, raw=True)",
        {OK},
    ),
    "numbers that are none": (
        "from IPython.display import display\n"
        "display({'application/json': {'a': float('nan'), 'b': 10**1000}, 'text/plain': 'n'}, raw=True)",
        {OK, ERROR},
    ),
    "asking for the keyboard": ("input()", {ERROR}),
}


@pytest.mark.parametrize(
    ("code", "outcomes"), [pytest.param(code, outcomes, id=name) for name, (code, outcomes) in PROGRAMS.items()]
)
async def test_it_harms_only_itself(attack: Attack, code: str, outcomes: set[Outcome] | None) -> None:
    told = await attack.run(code, timeout_s=3 if outcomes is None or TIME in outcomes else None)
    assert outcomes is None or told.outcome in outcomes, told.events
    for event in told.events:
        assert "\\u0000" not in event.model_dump_json()
        event.model_dump_json().encode()


async def test_what_was_printed_before_the_crash_arrives(client: RunnerClient) -> None:
    learner = Learner(client)
    told = await learner.run(
        "import os\nfor i in range(100): print(i, flush=True)\nimport time; time.sleep(1); os._exit(1)"
    )
    await learner.leave()
    assert told.outcome == Outcome.crash
    assert told.stdout.split() == [str(i) for i in range(100)]


async def test_a_forged_end_does_not_end_the_next_run(client: RunnerClient) -> None:
    learner = Learner(client)
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
    learner = Learner(client)
    forged = FORGE + "publish('status', {'execution_state': 'idle'})\n"
    told = await learner.run(forged + "import time; time.sleep(2); print('seen'); 1/0")
    assert (told.outcome, told.stdout, told.error.name) == (Outcome.error, "seen\n", "ZeroDivisionError")
    told = await learner.run(forged + "while True: pass", timeout_s=2)
    assert told.outcome == Outcome.timeout
    await learner.leave()


async def test_a_fresh_kernel_runs_nothing_that_the_one_before_has_planted(client: RunnerClient) -> None:
    learner = Learner(client)
    planted = await learner.run(
        "import os, pathlib\n"
        "profile = pathlib.Path(os.environ['IPYTHONDIR'], 'profile_default')\n"
        "(profile / 'startup').mkdir(parents=True, exist_ok=True)\n"
        "for name in ('ipython_kernel_config.py', 'ipython_config.py', 'startup/00-first.py'):\n"
        '    (profile / name).write_text(\'import os; open("/tmp/ran", "a").write(str(os.listdir("/proc/self/fd")))\')'
    )
    assert planted.outcome == Outcome.ok
    await client.restart(learner.session)
    told = await learner.run("import os; print(os.path.exists('/tmp/ran'))")
    await learner.leave()
    assert (told.outcome, told.stdout) == (Outcome.ok, "False\n")
