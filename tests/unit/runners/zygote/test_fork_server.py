"""The reports of the two processes that set up a sandbox, and the end of a zygote that has no supervisor."""

from __future__ import annotations

import itertools
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from runners.zygote.fork_server import read_report


def _report(*words: str) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        for word in words:
            theirs.send(word.encode())
    return ours


@pytest.mark.parametrize("words", list(itertools.permutations(("4711", "ready 7"))), ids="-".join)
def test_the_words_may_come_in_either_order(words: tuple[str, ...]) -> None:
    with _report(*words) as report:
        assert read_report(report) == (4711, 7)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("!user 7: no",), "user 7: no"),
        (("4711", "!root folder: no"), "root folder: no"),
        (("!root folder: no", "4711"), "root folder: no"),
        (("4711",), "the child ended without a message"),
        (("ready 7",), "the child ended without a message"),
        ((), "the child ended without a message"),
    ],
)
def test_a_failure_is_reported_whenever_it_happens(words: tuple[str, ...], complaint: str) -> None:
    with _report(*words) as report, pytest.raises(RuntimeError, match=re.escape(complaint)):
        read_report(report)


@pytest.mark.parametrize("when", ["while it imports", "before it imports"])
def test_a_zygote_whose_supervisor_goes_ends_at_once(when: str) -> None:
    program = "import signal, socket, sys\nfrom runners.zygote.fork_server import ending_with\n"
    program += "with ending_with(socket.socket(fileno=int(sys.argv[1]))):\n    print('importing', flush=True)\n"
    program += "    signal.pause()"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        if when == "before it imports":
            ours.close()
        command = [sys.executable, "-c", program, str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE)
    with process:
        assert process.stdout
        if when == "while it imports":
            assert process.stdout.readline() == b"importing\n"
            ours.close()
        assert process.wait(30) == -signal.SIGIO


WITHOUT_A_FILTER = """
import pyseccomp  # now: as another user, this process may be unable to enter the folder of Python
from runners.sandbox import linux
from runners.zygote.fork_server import drop_root

if {broken}:
    linux.install_seccomp = lambda program: None
try:
    drop_root(70_001, range(70_002, 70_010))
except OSError as e:
    print(e)
else:
    print("dropped")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has root to drop")
@pytest.mark.parametrize(("broken", "said"), [(False, "dropped"), (True, "the zygote's filter is not in force")])
def test_a_zygote_that_could_become_root_again_ends(broken: bool, said: str) -> None:
    program = WITHOUT_A_FILTER.format(broken=broken)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith(said), done.stderr
