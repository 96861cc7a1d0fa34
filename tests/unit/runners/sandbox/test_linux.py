"""The kernel calls that Python does not wrap, as far as a test can see their effect."""

from __future__ import annotations

import ctypes
import os
import signal
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
