"""The messages of a sandbox's PID 1."""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.guest.pid1.init import Init, printable
from runners.wire import journal


@pytest.mark.parametrize("words", [b'"', b"\\", b"\n", b"\0", b"\xff", "…".encode()])
def test_last_words_of_any_length_fit_in_a_packet(words: bytes) -> None:
    word = {"exited": -11, "kernel": 1, "trace": printable(words * (65_536 // len(words)))}
    assert len(json.dumps(word).encode()) < 1 << 16


def test_of_long_last_words_the_beginning_and_the_end_are_kept() -> None:
    text = printable(b"Fatal\n" + b"x" * 60_000 + b"\nthe cell")
    assert text.startswith("Fatal\n")
    assert text.endswith("\nthe cell")
    assert len(text) < 16_100
    assert printable("Fatal \x1b[31m\n…".encode()) == "Fatal ?[31m\n???"


def test_a_child_does_nothing_before_pid_1_has_its_own_oom_score(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "oom_score_adj"
    path.touch()
    score, (seen, report), forked = os.open(path, os.O_WRONLY), os.pipe(), os.fork

    def fork_and_linger() -> int:
        pid = forked()
        if pid:
            select.select([seen], [], [], 0.5)  # a child that does not wait for PID 1 reports within this time
        return pid

    def report_score() -> None:
        os.write(report, path.read_bytes())

    monkeypatch.setattr(os, "fork", fork_and_linger)
    _wait_for_child(score, report_score, report)
    assert os.read(seen, 10_000) == b"400"
    for end in (score, seen, report):
        os.close(end)


def test_a_late_child_leaves_the_score_that_the_next_one_is_to_inherit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "oom_score_adj"
    path.touch()
    score, (late, go), forked = os.open(path, os.O_WRONLY), os.pipe(), os.fork

    def fork_late() -> int:
        pid = forked()
        if not pid:
            os.read(late, 1)
        return pid

    def before_the_next_fork() -> None:
        path.write_bytes(b"500")
        os.write(go, b"x")

    monkeypatch.setattr(os, "fork", fork_late)
    _wait_for_child(score, lambda: None, go, before_the_next_fork)
    assert path.read_bytes() == b"500"
    for end in (score, late, go):
        os.close(end)


def _wait_for_child(
    score: int, work: Callable[[], None], complain: int, meanwhile: Callable[[], None] = lambda: None
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
        init = Init(control, journal.create(), [], lambda: None, score)
        pid = init._fork(work, complain)
        meanwhile()
        os.waitpid(pid, 0)
        for side in init._wakeup:
            side.close()
