"""A PID namespace that cannot be made leaves the process as it was."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ATTEMPT = """
import os, signal, sys
from runners.sandbox import pid_namespace

def fails(*_):
    raise OSError(11, "no more processes")

real, children = os.fork, []
setattr(*{"fork": (os, "fork", fails), "pidfd": (os, "pidfd_open", fails)}[sys.argv[1]])
signal.signal(signal.SIGCHLD, handler := lambda *_: None)
before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}) | {signal.SIGUSR1}
opened = len(os.listdir("/proc/self/fd"))
try:
    pid_namespace.enter_pid_namespace(lambda: None)
except OSError as e:
    print(e.errno)
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before, signal.getsignal(signal.SIGCHLD) is handler)
print(len(os.listdir("/proc/self/fd")) - opened)
for _ in range(2):  # the first one would be PID 1 of the namespace, and the second one could not start
    if not (child := real()):
        os._exit(os.getpid() == 1)
    print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a PID namespace")
@pytest.mark.parametrize("what", ["fork", "pidfd"])
def test_a_namespace_without_a_first_process_leaves_everything_as_it_was(what: str) -> None:
    done = subprocess.run([sys.executable, "-c", ATTEMPT, what], capture_output=True, text=True, timeout=60)

    assert (done.stdout.split("\n"), done.stderr) == (["11", "True True", "0", "0", "0", ""], "")
