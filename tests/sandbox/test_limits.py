"""Programs that want more than there is: each ends with the name of the limit it met."""

from __future__ import annotations

import pytest

from runners.protocol import Outcome
from tests.sandbox.conftest import LIMITS, Attack

MEMORY, DISK, OUTPUT, PROCESSES, TIME = (
    Outcome.memory,
    Outcome.disk,
    Outcome.output,
    Outcome.processes,
    Outcome.timeout,
)

PROGRAMS = {
    "fork bomb": ("import os\nwhile True: os.fork()", {PROCESSES, MEMORY, TIME}),
    "stubborn fork bomb": (
        "import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass",
        {TIME, MEMORY, PROCESSES},
    ),
    "fork bomb of a shell": ("!bash -c ':(){ :|:& };:'\nimport time; time.sleep(60)", {TIME, MEMORY, PROCESSES}),
    "thread bomb": (
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(100,)).start()",
        {PROCESSES},
    ),
    "memory by bytes": ("kept = []\nwhile True: kept.append(b'x' * 10_000_000)", {MEMORY}),
    "memory by numpy": ("import numpy as np\nkept = []\nwhile True: kept.append(np.ones(1_000_000))", {MEMORY}),
    "memory by tensorflow": (
        "import tensorflow as tf\nkept = []\nwhile True: kept.append(tf.Variable(tf.ones((10_000_000,))))",
        {MEMORY},
    ),
    "memory at one stroke": ("x = bytearray(400 * 1024**3)", {MEMORY}),
    "memory of a child": (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'x=[]\\nwhile True: x.append(bytearray(10**7))'], check=True)",
        {MEMORY, Outcome.error},
    ),
    "filling /tmp": ("with open('/tmp/x', 'wb') as f:\n    while True: f.write(b'x' * 1_000_000)", {DISK}),
    "filling home": ("with open('x', 'wb') as f:\n    while True: f.write(b'x' * 1_000_000)", {DISK}),
    "filling /dev/shm": ("with open('/dev/shm/x', 'wb') as f:\n    while True: f.write(b'x' * 1_000_000)", {DISK}),
    "inodes": ("import os\nfor i in range(10**6): os.close(os.open(f'/tmp/{i}', os.O_CREAT))", {DISK}),
    "sparse file": ("open('/tmp/x', 'wb').truncate(10**12)", {DISK}),
    "endless print": ("while True: print('x' * 1000)", {OUTPUT}),
    "endless bytes without a newline": ("import os\nwhile True: os.write(1, b'x' * 4096)", {OUTPUT}),
    "endless escapes": ("while True: print('\\x1b]0;title\\x07\\x1b[2J' * 50, end='')", {OUTPUT}),
    "one huge print": ("print('x' * 100_000_000)", {OUTPUT}),
    "a display of 100 MB": ("from IPython.display import HTML, display\ndisplay(HTML('x' * 100_000_000))", {OUTPUT}),
    "a display of 200 MB": (
        "from IPython.display import HTML, display\ndisplay(HTML('x' * 200_000_000))",
        {OUTPUT, MEMORY},
    ),
    "a display nobody shows": (
        "from IPython.display import display\ndisplay({'application/x-none': 'x' * 50_000_000}, raw=True)",
        {OUTPUT},
    ),
    "100,000 displays": (
        "from IPython.display import display\nfor i in range(100_000): display(i)",
        {OUTPUT, TIME},
    ),
    "endless clearing": ("from IPython.display import clear_output\nwhile True: clear_output()", {OUTPUT, TIME}),
    "an exception of 50 MB": ("raise ValueError('x' * 50_000_000)", {OUTPUT}),
    "CPU loop": ("while True: pass", {TIME}),
    "CPU loop that swallows": (
        "while True:\n    try:\n        for _ in iter(int, 1): pass\n    except BaseException: pass",
        {TIME},
    ),
    "sleep without end": ("import time\ntime.sleep(10**8)", {TIME}),
    "hang in C": ("import ctypes\nctypes.CDLL(None).pause()", {TIME}),
    "blocked signals": (
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(10**8)",
        {TIME},
    ),
}
SLOW = {TIME}


@pytest.mark.parametrize(
    ("code", "outcomes"),
    [
        pytest.param(code, outcomes, id=name, marks=[pytest.mark.slow] if SLOW & outcomes else [])
        for name, (code, outcomes) in PROGRAMS.items()
    ],
)
async def test_it_ends_with_the_name_of_its_limit(attack: Attack, code: str, outcomes: set[Outcome]) -> None:
    told = await attack.run(code, timeout_s=2 if TIME in outcomes else None)
    assert told.outcome in outcomes
    limit = told.finished.limit
    if told.outcome != Outcome.error:
        assert limit is not None
        assert limit.value > 0
    if told.outcome == PROCESSES:
        assert limit == type(limit)(name="processes", value=LIMITS["processes"], unit="count")  # type: ignore[misc]
    assert sum(len(e.model_dump_json()) for e in told.events) < 1.2 * 1024 * 1024
