"""Programs for the soak tests: ordinary cells and hostile ones, each with its allowed outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from runners.wire.protocol import Outcome

OK, ERROR, CRASH, TIME, MEMORY, DISK, OUTPUT, PROCESSES = (
    Outcome.ok,
    Outcome.error,
    Outcome.crash,
    Outcome.timeout,
    Outcome.memory,
    Outcome.disk,
    Outcome.output,
    Outcome.processes,
)


@dataclass(frozen=True)
class Program:
    """One cell."""

    code: str
    outcomes: frozenset[Outcome]
    stdout: str | None = None
    """All that it prints, where that is known."""
    timeout_s: float | None = None


def _program(code: str, *outcomes: Outcome, stdout: str | None = None, timeout_s: float | None = None) -> Program:
    return Program(code, frozenset(outcomes), stdout, timeout_s)


ORDINARY = (
    _program("for i in range(100): print(i)", OK, stdout="".join(f"{i}\n" for i in range(100))),
    _program("import numpy as np\nprint(int(np.arange(10).sum()))", OK, stdout="45\n"),
    _program(
        "import tensorflow as tf\nprint(tf.distribute.MirroredStrategy().num_replicas_in_sync)\n"
        "print(float(tf.reduce_sum(tf.ones((64, 64)) @ tf.ones((64, 64)))))",
        OK,
    ),
    _program("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]); plt.show()", OK, stdout=""),
    _program("import time\nfor i in range(20): print(f'\\r{i}', end=''); time.sleep(0.01)", OK),
    _program("1 / 0", ERROR, stdout=""),
    _program("def f(n): return f(n + 1)\nf(0)", ERROR),
    _program("!echo from a shell", OK),
    _program("open('notes', 'w').write('x' * 10**6)\nprint(len(open('notes').read()))", OK, stdout="1000000\n"),
    _program("input()", ERROR, stdout=""),
)
HOSTILE = (
    _program("import os; os._exit(0)", CRASH),
    _program("import ctypes; ctypes.string_at(0)", CRASH),
    _program("import os; os.kill(-1, 9) if os.fork() else os.kill(-1, 9)", OK, ERROR, CRASH),
    _program("kept = []\nwhile True: kept.append(b'x' * 10**7)", MEMORY),
    _program("with open('/tmp/x', 'wb') as f:\n    while True: f.write(bytes(10**6))", DISK),
    _program("with open('/dev/shm/x', 'wb') as f:\n    while True: f.write(bytes(10**6))", DISK),
    _program("while True: print('x' * 1000)", OUTPUT),
    _program("print('x' * 10**7)", OUTPUT),
    _program("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()", PROCESSES),
    _program("import os\nwhile True: os.fork()", PROCESSES, MEMORY, TIME, timeout_s=3),
    _program("while True: pass", TIME, timeout_s=1),
    _program(
        "import os\nif os.fork() == 0:\n    os.setsid()\n    while os.fork() == 0: pass\n    os._exit(0)", OK, PROCESSES
    ),
    _program("import subprocess; p = subprocess.Popen(['setsid', 'sleep', '1000'])", OK),
    _program("import os; os.closerange(0, 4096)", CRASH, OUTPUT, TIME, timeout_s=2),
    _program(
        "import os\nn = os.open('/dev/null', os.O_RDWR)\nfor fd in range(3, 200):\n    if fd != n: os.dup2(n, fd)",
        OK,
        CRASH,
        OUTPUT,
        TIME,
        timeout_s=2,
    ),
    _program("import builtins\nfor n in dir(builtins): delattr(builtins, n)", *Outcome, timeout_s=2),
    _program("import os\nos.mkdir('/tmp/a'); os.chdir('/tmp/a'); os.rmdir('/tmp/a'); os.chmod('/tmp', 0)", OK),
    _program("_ = __import__('os').write(1, b'\\xff\\x00\\xed\\xa0' * 99)", OK),
)
