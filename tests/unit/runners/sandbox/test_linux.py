"""The kernel calls that Python does not wrap, as far as a test can see their effect."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading

import pytest

from runners.sandbox import linux


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_one_thread_only_and_the_parents_death_is_not_forgotten() -> None:
    def change() -> None:
        linux.die_with_parent(signal.SIGTERM)
        with linux.effective_user(65_534):
            seen["inside"] = ctypes.CDLL(None).geteuid()
            inside.set()
            assert other_looked.wait(10)
        told = ctypes.c_int()
        ctypes.CDLL(None).prctl(2, ctypes.byref(told), 0, 0, 0)  # PR_GET_PDEATHSIG
        seen["signal"] = told.value

    seen: dict[str, int] = {}
    inside, other_looked = threading.Event(), threading.Event()
    thread = threading.Thread(target=change)
    thread.start()
    assert inside.wait(10)
    seen["beside"] = os.geteuid()
    other_looked.set()
    thread.join()

    assert seen == {"inside": 65_534, "beside": 0, "signal": signal.SIGTERM}


QUIET = """
import os
from runners.sandbox import linux

called = []
os.register_at_fork(before=lambda: called.append("before"), after_in_child=lambda: called.append("child"))
child = linux.fork_quietly()
if not child:
    os._exit(len(called))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), called)
"""


def test_a_quiet_fork_calls_nothing_that_libraries_have_registered() -> None:
    """In a process of one thread, which it needs: the child would wait forever for another that wants Python's lock."""
    ran = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "0 []\n"
