"""Programs that break or deceive their own kernel: the run ends with an outcome, and only they are affected."""

from __future__ import annotations

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import ErrorEvent, Outcome
from tests.factories.real_supervisor import RealSupervisor, SessionClient
from tests.long.hostile.conftest import Attack

CRASH, ERROR, OK, TIME = Outcome.crash, Outcome.error, Outcome.ok, Outcome.timeout

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
    "orphans that end at once": (
        "import os\nfor _ in range(30):\n    if (p := os.fork()) == 0:\n        os.fork()\n        os._exit(0)\n"
        "    os.waitpid(p, 0)",
        {OK},
    ),
    "an exception that takes its time": (
        "import time\nclass E(Exception):\n    def __str__(self): time.sleep(10**6)\n    __repr__ = __str__\nraise E()",
        {TIME},
    ),
    "an exception whose text is no text": (
        "class E(Exception):\n    def __str__(self): return b'\\xff'\n    __repr__ = __str__\nraise E()",
        {ERROR},
    ),
    "causes in a circle": (
        "a, b = ValueError('a'), ValueError('b')\na.__cause__, b.__cause__ = b, a\nraise a",
        {ERROR},
    ),
    "10,000 causes": (
        "last = None\nfor i in range(10_000):\n    e = ValueError(i)\n    e.__cause__, last = last, e\nraise last",
        None,
    ),
    "a stopped child and a stopped self": (
        "import os, signal\nif (p := os.fork()) == 0: os.kill(os.getpid(), signal.SIGSTOP)\n"
        "os.kill(os.getppid() if os.getppid() > 1 else p, signal.SIGSTOP)",
        {OK},
    ),
    "killing the threads of Python": (
        "import ctypes, threading\nfor t in threading.enumerate():\n    if t is not threading.main_thread():\n"
        "        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(t.ident), ctypes.py_object(SystemExit))",
        None,
    ),
    "killing the threads of C": (
        "import ctypes, threading\nfor t in threading.enumerate():\n    if t is not threading.main_thread():\n"
        "        ctypes.CDLL(None).pthread_cancel(ctypes.c_ulong(t.ident))\nprint('x')",
        None,
    ),
    "one thread after the other is killed": (
        "import os, signal, ctypes\nfor t in os.listdir('/proc/self/task'):\n"
        "    if int(t) != os.getpid(): ctypes.CDLL(None).syscall(234, os.getpid(), int(t), signal.SIGKILL)",
        {CRASH},
    ),
    "Lockstep's own modules patched": (
        "import sys\nfor name, module in list(sys.modules.items()):\n"
        "    if name.split('.')[0] in ('runners', 'ipykernel', 'zmq', 'jupyter_client'):\n"
        "        for k in [k for k in vars(module) if callable(vars(module)[k])]: setattr(module, k, None)",
        None,
    ),
    "asking for the keyboard": ("input()", {ERROR}),
    "reading standard input": ("import sys; print(repr(sys.stdin.read()), repr(open(0).read()))", {OK, ERROR}),
}


@pytest.mark.parametrize(
    ("code", "outcomes"), [pytest.param(code, outcomes, id=name) for name, (code, outcomes) in PROGRAMS.items()]
)
async def test_it_harms_only_itself(attack: Attack, code: str, outcomes: set[Outcome] | None) -> None:
    told = await attack.run(code, timeout_s=1 if outcomes is None or TIME in outcomes else None)
    assert outcomes is None or told.outcome in outcomes, told.events


ENDS = {
    "a segmentation fault": "import ctypes; ctypes.string_at(0)",
    "an abort": "os.abort()",
    "an exit": "os._exit(3)",
    "a kill": "os.kill(os.getpid(), 9)",
    "a kill of all processes": "os.fork() or os.kill(-1, 9)\nos.kill(-1, 9)\nos.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_everything_printed_before_a_crash_arrives_once(client: RunnerClient, end: str) -> None:
    learner = SessionClient(client)
    for nth in range(3):
        told = await learner.run(
            "import os, subprocess, sys\n"
            f"for i in range({nth * 500}): print(i)\n"
            "subprocess.run(['echo', 'from a child'])\n"
            "print('flushed', flush=True)\n"
            "print('an error, not flushed', file=sys.stderr)\n"
            "print('not flushed ✓', end='')\n"
            "os.write(1, b' and written at last')\n"
            f"{end}"
        )
        counted = "".join(f"{i}\n" for i in range(nth * 500))
        assert told.outcome == Outcome.crash
        assert told.stdout == f"{counted}from a child\nflushed\nnot flushed ✓ and written at last"
        assert told.stderr == "an error, not flushed\n"
    await learner.leave()


async def test_words_before_the_kill_for_memory_arrive(client: RunnerClient) -> None:
    learner = SessionClient(client)
    told = await learner.run("print('making room')\nx = b'1' * 2**30\nimport time; time.sleep(30)  # for a watch")
    await learner.leave()
    assert (told.outcome, told.stdout) == (Outcome.memory, "making room\n")


FORGED_JOURNAL = """
import gc, mmap, os, random, struct
from runners.wire.journal import StreamJournal
own = [it for it in gc.get_objects() if isinstance(it, StreamJournal)]
assert own
for journal in own:
    struct.pack_into("<qqq16s", journal._header, 0, *numbers, bytes(range(240, 256)))
    journal._kept[:] = os.urandom(len(journal._kept))
os._exit(1)
"""


@pytest.mark.parametrize("numbers", [(-1, -1, -1), (2**63 - 1, 0, 1), (5, 7, 8), (-(2**63), 2**62, 0)], ids=str)
async def test_a_forged_journal_fools_only_its_own_run(client: RunnerClient, numbers: tuple[int, int, int]) -> None:
    learner = SessionClient(client)
    told = await learner.run(f"numbers = {numbers}\n{FORGED_JOURNAL}")
    again = await learner.run("print('again')")
    await learner.leave()
    assert told.outcome in (Outcome.crash, Outcome.output)
    assert again.stdout == "again\n"


async def test_a_crash_shows_the_line_that_was_running(client: RunnerClient, node: RealSupervisor) -> None:
    learner = SessionClient(client)
    await learner.run("import ctypes\n\ndef fall():\n    ctypes.string_at(0)")
    logged = node.log.stat().st_size
    told = await learner.run("print('before', flush=True)\nfor _ in range(3):\n    fall()")
    again = await learner.run("print('again')")
    await learner.leave()

    assert (told.outcome, told.stdout, again.stdout) == (Outcome.crash, "before\n", "again\n")
    (error,) = [event for event in told.events if isinstance(event, ErrorEvent)]
    assert (error.name, error.value) == ("SIGSEGV", "Segmentation fault")
    texts = [frame.text for frame in error.frames]
    assert texts[:2] == ["This cell, line 3, in <module>\n----> 3     fall()", "An earlier cell, line 4, in fall"]
    assert texts[-1] == "SIGSEGV: Segmentation fault"
    assert "string_at" in texts[-2]
    assert "string_at" in node.log.read_bytes()[logged:].decode(), "the operator sees where, too"


FORGED = """
import os
calls = '  File "<ipython-input-1-abc>", line 7 in <b>"\\n' * 50_000
trace = 'Current thread 0x1 (most recent call first):\\n' + calls + '\\xff\\0\\x1b'
pipe = lambda fd: os.readlink(f'/proc/self/fd/{fd}')
for fd in map(int, os.listdir('/proc/self/fd')):
    try:
        if pipe(fd).startswith('pipe:') and pipe(fd) not in (pipe(1), pipe(2)):
            os.set_blocking(fd, False)
            while True: os.write(fd, trace.encode())
    except OSError: pass
os.abort()
"""


async def test_forging_the_last_output_of_a_kernel_harms_only_the_forger(client: RunnerClient) -> None:
    learner = SessionClient(client)
    told = await learner.run(FORGED)
    again = await learner.run("print('again')")
    await learner.leave()

    assert (told.outcome, again.stdout) == (Outcome.crash, "again\n")
    (error,) = [event for event in told.events if isinstance(event, ErrorEvent)]
    assert error.name == "SIGABRT"
    assert 1 < len(error.frames) <= 41
    assert len(error.model_dump_json()) < 20_000
    assert all(frame.text.isprintable() or "\n" in frame.text for frame in error.frames)


async def test_a_fresh_kernel_runs_nothing_that_the_one_before_has_planted(client: RunnerClient) -> None:
    learner = SessionClient(client)
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
