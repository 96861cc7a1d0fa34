"""Programs that want more than there is: each ends with the name and value of the limit it reached."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from runners.config.settings import Limits
from runners.supervisor.outcome import OUTCOME_BY_LIMIT, reached_limit
from runners.wire.protocol import LimitName, NoticeEvent, ReachedLimit
from tests.factories.real_supervisor import RealSupervisor, SessionClient
from tests.long.hostile.conftest import IMPATIENT, LIMITS, Attack

ALL = Limits(**LIMITS)
SHORT_S = 1.0
ANY: tuple[LimitName, ...] = ("time", "memory", "processes", "cpu")
"""Which of them a bomb meets first is a matter of luck."""
OUTPUT: tuple[LimitName, ...] = ("output", "output_rate")
"""Whoever prints as fast as it goes meets one of them."""


@dataclass(frozen=True)
class Program:
    """A hostile program, and the limits, one of which ends it."""

    code: str
    limits: tuple[LimitName, ...]
    or_error: bool = False
    """Whether it may end in an error of its own, because what met the limit was a child."""

    @property
    def waits(self) -> bool:
        return "time" in self.limits


def _writing(path: str) -> str:
    return f"for n in range(9):\n    with open(f'{path}{{n}}', 'wb') as f: f.write(bytes(20 * 10**6))"


PROGRAMS = {
    "fork bomb": Program("import os\nwhile True: os.fork()", ("processes", "memory", "time")),
    "stubborn fork bomb": Program(
        "import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass",
        ANY,
    ),
    "fork bomb of a shell": Program("!bash -c ':(){ :|:& };:'\nimport time; time.sleep(60)", ANY),
    "thread bomb": Program(
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(100,)).start()", ("processes",)
    ),
    "processes that wait": Program(
        "import subprocess\nkept = []\nwhile True: kept.append(subprocess.Popen(['sleep', '100']))", ("processes",)
    ),
    "memory by bytes": Program("kept = []\nwhile True: kept.append(b'x' * 10_000_000)", ("memory",)),
    "memory by numpy": Program(
        "import numpy as np\nkept = []\nwhile True: kept.append(np.ones(1_000_000))", ("memory",)
    ),
    "memory by tensorflow": Program(
        "import tensorflow as tf\nkept = []\nwhile True: kept.append(tf.Variable(tf.ones((10_000_000,))))", ("memory",)
    ),
    "memory at one stroke": Program("x = bytearray(400 * 1024**3)", ("memory",)),
    "memory at one stroke by numpy": Program("import numpy as np\nx = np.ones(10**13)", ("memory",)),
    "memory of a child": Program(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'x=[]\\nwhile True: x.append(bytearray(10**7))'], check=True)",
        ("memory",),
    ),
    "memory of files and of the program": Program(
        "kept = bytearray(250 * 2**20)\n"
        "for place in ('/tmp', '/dev/shm', '/home/learner'):\n"
        "    for n in range(2):\n"
        "        with open(f'{place}/{n}', 'wb') as f: f.write(bytes(30 * 2**20))\n"
        "kept += bytearray(250 * 2**20)\nimport time; time.sleep(30)  # for a watch",
        ("memory",),
    ),
    "filling /tmp": Program(_writing("/tmp/x"), ("disk",)),
    "filling home": Program(_writing("x"), ("disk",)),
    "filling /dev/shm": Program(_writing("/dev/shm/x"), ("disk",)),
    "filling /tmp by numpy": Program(
        "import numpy as np\nfor n in range(9): np.save(f'/tmp/{n}', np.ones(2_500_000))", ("disk",)
    ),
    "filling /tmp by tensorflow": Program(
        "import tensorflow as tf\nfor n in range(9): tf.io.write_file(f'/tmp/{n}', 'x' * 20_000_000)", ("disk",)
    ),
    "files without end in /tmp": Program("for n in range(10**6): open(f'/tmp/{n}', 'w').close()", ("inodes",)),
    "folders without end at home": Program("import os\nfor n in range(10**6): os.mkdir(f'{n}')", ("inodes",)),
    "files without end in /dev/shm": Program("for n in range(10**6): open(f'/dev/shm/{n}', 'w').close()", ("inodes",)),
    "sparse file": Program("open('/tmp/x', 'wb').truncate(10**12)", ("file_size",)),
    "long file": Program("with open('/tmp/x', 'wb') as f:\n    while True: f.write(bytes(10**6))", ("file_size",)),
    "memory in a nameless file": Program(
        "import os\nos.truncate(os.memfd_create('x'), 10**12)", ("file_size",), or_error=True
    ),
    "open files": Program("kept = []\nwhile True: kept.append(open('/dev/null'))", ("open_files",)),
    "open sockets": Program("import socket\nkept = []\nwhile True: kept.append(socket.socketpair())", ("open_files",)),
    "endless print": Program("while True: print('x' * 1000)", OUTPUT),
    "endless print, slowly": Program(
        "import time\nwhile True:\n    print('x' * 1000)\n    time.sleep(0.01)",
        ("output",),  # a tenth of the rate
    ),
    "endless bytes without a newline": Program(
        "import os\nwhile True: os.write(1, b'x' * 4096)", ("output", "output_rate")
    ),
    "endless escapes": Program(
        "while True: print('\\x1b]0;title\\x07\\x1b[2J' * 50, end='')", ("output", "output_rate")
    ),
    "one huge print": Program("print('x' * 100_000_000)", OUTPUT),
    "much at once": Program("print('x' * 700_000)\nimport time; time.sleep(60)", ("output_rate",)),
    "a display of 100 MB": Program(
        "from IPython.display import HTML, display\ndisplay(HTML('x' * 100_000_000))", ("output",)
    ),
    "a display of 200 MB": Program(
        "from IPython.display import HTML, display\ndisplay(HTML('x' * 200_000_000))", ("output", "memory")
    ),
    "a display nobody shows": Program(
        "from IPython.display import display\ndisplay({'application/x-none': 'x' * 50_000_000}, raw=True)", ("output",)
    ),
    "displays nobody shows": Program(
        "from IPython.display import display\nwhile True: display({'application/x-none': 'x' * 9000}, raw=True)", OUTPUT
    ),
    "many large displays": Program(
        "from IPython.display import HTML, display\nwhile True: display(HTML('x' * 300_000))", ("output",)
    ),
    "100,000 displays": Program(
        "from IPython.display import display\nfor i in range(100_000): display(i)", ("events", "output", "output_rate")
    ),
    "endless clearing": Program("from IPython.display import clear_output\nwhile True: clear_output()", ("events",)),
    "an exception of 50 MB": Program("raise ValueError('x' * 50_000_000)", OUTPUT),
    "sleep without end": Program("import time\ntime.sleep(10**8)", ("time",)),
    "hang in C": Program("import ctypes\nctypes.CDLL(None).pause()", ("time",)),
    "blocked signals": Program(
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(10**8)", ("time",)
    ),
}


@pytest.mark.parametrize(
    "program",
    [pytest.param(p, id=name, marks=[pytest.mark.slow] if p.waits else []) for name, p in PROGRAMS.items()],
)
async def test_it_ends_with_the_name_and_the_value_of_its_limit(attack: Attack, program: Program) -> None:
    told = await attack.run(program.code, timeout_s=SHORT_S if program.waits else None)

    limit = told.finished.limit
    if limit is None:
        assert program.or_error, (told.outcome, told.text[-1000:], told.events[-3:])
        assert told.outcome == "error"
        return
    assert limit.name in program.limits
    assert told.outcome == OUTCOME_BY_LIMIT[limit.name]
    assert limit == reached_limit(limit.name, ALL, SHORT_S)
    assert sum(len(e.model_dump_json()) for e in told.events) < 1.2 * 1024 * 1024


FALSE_ALARMS = {
    "memory": "raise MemoryError",
    "disk": "raise OSError(28, 'No space left on device')",
    "open files": "raise OSError(24, 'Too many open files')",
    "threads": 'raise RuntimeError("can\'t start new thread")',
    "a process": "raise BlockingIOError(11, 'Resource temporarily unavailable')",
}


@pytest.mark.parametrize("code", FALSE_ALARMS.values(), ids=FALSE_ALARMS)
async def test_a_program_that_says_it_met_a_limit_is_not_believed(attack: Attack, code: str) -> None:
    told = await attack.run(code)
    assert (told.outcome, told.finished.limit) == ("error", None)


BELOW = {
    "output in a second": "for _ in range(4000): print('x' * 99)",
    "displays": "from IPython.display import HTML, display\nfor n in range(20): display(HTML('x' * 10_000))",
    "open files": "kept = [open('/dev/null') for _ in range(280)]",
    "threads": (
        "import threading\ngo = threading.Event()\n"
        "kept = [threading.Thread(target=go.wait) for _ in range(50)]\n"
        "for t in kept: t.start()\ngo.set()"
    ),
    "memory": "x = bytearray(200 * 2**20)",
    "files": "for n in range(1500): open(f'/tmp/{n}', 'w').close()",
    "disk": "for n in range(2):\n    with open(f'/tmp/{n}', 'wb') as f: f.write(bytes(30 * 2**20))",
}


@pytest.mark.parametrize("code", BELOW.values(), ids=BELOW)
async def test_a_burst_below_the_limit_is_no_alarm(attack: Attack, code: str) -> None:
    told = await attack.run(code)
    assert (told.outcome, told.finished.limit) == ("ok", None), told.events[-2:]


async def test_closed_connections_are_not_remembered_without_end(attack: Attack) -> None:
    code = """
import socket
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen(8)
for _ in range(2000):
    with socket.create_connection(listener.getsockname()) as end: other, _ = listener.accept()
    other.close()
with open("/proc/net/sockstat") as file: counted = dict(line.split(": ") for line in file.read().splitlines())
numbers = counted["TCP"].split()
print(numbers[numbers.index("tw") + 1])
"""
    told = await attack.run(code)
    assert told.outcome == "ok", told.events[-2:]
    assert 256 <= int(told.stdout) <= 512


async def test_a_display_too_large_is_left_out_and_the_run_goes_on(attack: Attack) -> None:
    told = await attack.run("from IPython.display import HTML, display\ndisplay(HTML('x' * 300_000))\nprint('on')")
    (notice,) = (e for e in told.events if isinstance(e, NoticeEvent))
    assert (told.outcome, told.stdout, told.displays) == ("ok", "on\n", [])
    assert notice.code == "display-too-large"
    assert notice.limit == reached_limit("display", ALL, 0)


async def test_a_display_of_which_nothing_can_be_shown_is_reported_once(attack: Attack) -> None:
    told = await attack.run(
        "from IPython.display import display\nfor _ in range(5): display({'application/x-none': 'x'}, raw=True)"
    )
    (notice,) = (e for e in told.events if isinstance(e, NoticeEvent))
    assert (told.outcome, told.displays, notice.code) == ("ok", [], "display-not-shown")
    assert notice.values == {"types": "application/x-none"}


CPU_S = 1
CPU = {
    "one process": "while True: pass",
    "many processes": "import os\nfor _ in range(7):\n    if os.fork() == 0: break\nwhile True: pass",
    "what swallows the interrupt": (
        "while True:\n    try:\n        for _ in iter(int, 1): pass\n    except BaseException: pass"
    ),
    "a child": "import subprocess\nsubprocess.run(['sh', '-c', 'while :; do :; done'])",
    "a thread of TensorFlow": "import tensorflow as tf\nx = tf.ones((2000, 2000))\nwhile True: x = x @ x / 2000",
}
LEFT_BEHIND = {
    "thread": "import threading\ndef turn():\n    while True: pass\nthreading.Thread(target=turn).start()",
    "process": "import os\nif os.fork() == 0:\n    while True: pass",
}


@pytest.fixture(scope="module")
def patient() -> Iterator[RealSupervisor]:
    """A node where a run may take long, but not use much CPU time."""
    node = RealSupervisor(IMPATIENT, limits__cpu_s=CPU_S, limits__run_s=3600)
    yield node.start()
    node.remove()


@pytest.fixture
async def learner(patient: RealSupervisor) -> AsyncIterator[SessionClient]:
    """A learner on that node."""
    async with patient.client() as client:
        learner = SessionClient(client)
        yield learner
        await learner.leave()


@pytest.mark.parametrize("code", CPU.values(), ids=CPU)
async def test_cpu_time_is_that_of_all_processes(learner: SessionClient, code: str) -> None:
    told = await learner.run(code)
    assert (told.outcome, told.finished.limit) == ("cpu", ReachedLimit(name="cpu", value=CPU_S, unit="s"))


async def test_each_run_has_the_whole_of_the_cpu_time(learner: SessionClient) -> None:
    for _ in range(3):
        told = await learner.run("import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass")
        assert (told.outcome, told.finished.limit) == ("ok", None)


@pytest.mark.parametrize("code", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
async def test_what_a_run_leaves_behind_meets_the_limit_of_cpu_time_after_its_end(
    learner: SessionClient, code: str
) -> None:
    assert (await learner.run(code)).outcome == "ok"
    assert (await learner.client.wait_until_gone(learner.session)).gone_because == "cpu"
