"""An interrupt does not break into ``isinstance``, whose answers TensorFlow caches."""

from __future__ import annotations

import signal
import threading
import time
from abc import ABCMeta
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from runners.guest.runtime import interrupts


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, interrupts.handle_sigint)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupted(metaclass=ABCMeta):  # noqa: B024 - asked about, never made
    """A class whose ``isinstance`` check is interrupted before it answers."""

    @classmethod
    def __subclasshook__(cls, _: type) -> bool:
        signal.raise_signal(signal.SIGINT)
        return True


class Endless(metaclass=ABCMeta):  # noqa: B024 - as above
    """A check that never returns."""

    @classmethod
    def __subclasshook__(cls, _: type) -> bool:
        signal.raise_signal(signal.SIGINT)
        while True:
            time.sleep(0.001)


def test_a_question_is_answered_before_the_interrupt_comes() -> None:
    def ask() -> None:
        isinstance(object(), Interrupted)
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt) as interrupt:
        ask()
    during = {"__instancecheck__", "__subclasscheck__", "__subclasshook__"}
    assert during.isdisjoint(entry.name for entry in interrupt.traceback)
    assert isinstance(object(), Interrupted), "the answer was kept"


def test_elsewhere_the_interrupt_comes_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_question_without_an_answer_is_interrupted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_MOST_TRIES", 5)
    with pytest.raises(KeyboardInterrupt):
        isinstance(object(), Endless)


def test_an_interrupt_that_a_blocking_call_did_not_notice_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    send = signal.pthread_kill

    def unnoticed_at_first(thread: int, signum: int) -> None:
        sent.append(signum)
        if len(sent) > 1:
            send(thread, signum)

    def ask() -> None:
        assert isinstance(0.5, Interrupted)  # of no class that was asked about before: the answers are kept
        time.sleep(60)

    monkeypatch.setattr(signal, "pthread_kill", unnoticed_at_first)
    with pytest.raises(KeyboardInterrupt):
        ask()
    assert len(sent) > 1


def test_an_interrupt_that_comes_while_interrupts_begin_to_be_ignored_is_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    really = signal.signal

    def interrupted(signum: int, handler: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return really(signum, handler)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(signal, "signal", interrupted)
            interrupts.ignore()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        interrupts.accept()
        interrupts.raise_deferred()
    except KeyboardInterrupt:
        pytest.fail("it came")


def test_an_interrupt_that_was_deferred_past_its_cell_does_not_come_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_over = threading.Event()

    def sleep(seconds: float) -> None:
        is_over.wait(60)
        time.sleep(seconds)

    monkeypatch.setattr(interrupts, "time", SimpleNamespace(sleep=sleep))
    before = set(threading.enumerate())
    try:
        assert isinstance(1j, Interrupted)  # of no class that was asked about before
        (sends_it_again,) = set(threading.enumerate()) - before
        interrupts.ignore()
        interrupts.accept()
        interrupts.raise_deferred()
        is_over.set()
        sends_it_again.join()
    except KeyboardInterrupt:
        pytest.fail("it came")
    finally:
        is_over.set()


def test_an_interrupt_that_waits_can_be_raised_where_it_does_no_damage() -> None:
    def ask() -> None:
        assert isinstance(b"", Interrupted)  # of no class that was asked about before
        interrupts.raise_deferred()
        raise AssertionError("it was not raised")

    with pytest.raises(KeyboardInterrupt):
        ask()


def test_without_a_deferred_interrupt_nothing_is_raised() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    interrupts.raise_deferred()


def test_an_interrupt_that_came_while_its_signal_was_prepared_does_not_come_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delayed = interrupts._Delayed(signal.SIGINT)
    monkeypatch.setattr(interrupts, "_delayed", delayed)
    sent = []

    def handle_meanwhile(_signum: int) -> bool:
        interrupts._delayed = None  # as its handler does, in the main thread
        return True

    monkeypatch.setattr(interrupts, "_handled_here", handle_meanwhile)
    monkeypatch.setattr(signal, "pthread_kill", lambda *signalled: sent.append(signalled))
    interrupts._send_again(delayed)
    assert sent == []
