"""The reports of the two processes that set up a sandbox."""

from __future__ import annotations

import itertools
import re
import socket

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
