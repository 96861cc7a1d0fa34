"""Looking at another thread hangs no process, whatever is garbage at that moment."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

from runners.guest.runtime.thread_frames import current_frame

_PROGRAM = """
import gc, threading, time
from runners.guest.runtime.thread_frames import current_frame

class Garbage:
    def __init__(self):
        self.itself, self.local = self, threading.local()
        self.local.x = 1

def nap():
    time.sleep(0.001)

def run():
    while True:
        nap()

for _ in range(20):
    threading.Thread(target=run, daemon=True).start()
for number in range(300):
    gc.collect()
    gc.set_threshold(3 + number % 30, 100, 100)
    Garbage()
    current_frame(threading.get_ident())
print("looked")
"""
"""Each look needs a new frame object for each thread; one of the thresholds makes that collect the garbage."""


def test_looking_at_threads_never_hangs_while_a_thread_local_is_garbage() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "looked\n"


def test_the_frame_is_that_of_the_thread_and_garbage_is_collected_as_before() -> None:
    there, leave = threading.Event(), threading.Event()

    def stay() -> None:
        there.set()
        leave.wait()

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    there.wait()
    frame = current_frame(thread.ident or 0)
    names = set()
    while frame is not None:
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    leave.set()
    thread.join()
    assert "stay" in names
    assert current_frame(thread.ident or 0) is None
    assert gc.isenabled()
    gc.disable()
    try:
        current_frame(threading.get_ident())
        assert not gc.isenabled()
    finally:
        gc.enable()
