"""A failure waits until its process has reached its step."""

from __future__ import annotations

import pytest

from runners.guest.cluster import training_step
from runners.guest.cluster.shared_state import FailureAction, ProcessActivity, ProcessStatus, SharedState


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch) -> list[FailureAction]:
    for name in ("_board", "_task", "_carry_out"):
        monkeypatch.setattr(training_step, name, getattr(training_step, name))
    return []


def test_without_a_cluster_a_step_is_nothing() -> None:
    training_step.reached(5)


def test_a_fault_is_carried_out_once_at_its_step_and_not_before(carried_out: list[FailureAction]) -> None:
    board = SharedState(2)
    training_step.attach(board, 1, carried_out.append)
    board.await_step(1, 3, FailureAction.pause)
    training_step.reached(2)
    assert not carried_out
    training_step.reached(4)
    training_step.reached(5)
    assert carried_out == [FailureAction.pause]
    assert board.step(1) == 5
    assert board.step(0) == -1


@pytest.mark.usefixtures("carried_out")
def test_each_run_counts_from_the_beginning_and_what_waits_stays() -> None:
    board = SharedState(1)
    training_step.reset()
    training_step.attach(board, 0, lambda _action: None)
    training_step.reached(7)
    board.await_step(0, 9, FailureAction.kill)
    training_step.reset()
    assert (board.step(0), board.failure_at(0)) == (-1, 9)


def test_a_later_fault_replaces_the_one_that_waits() -> None:
    board = SharedState(1)
    board.await_step(0, 3, FailureAction.pause)
    board.await_step(0, 7, FailureAction.kill)
    assert board.failure_at(0) == 7
    assert board.take_failure(0) == FailureAction.kill
    assert board.take_failure(0) is None


def test_what_a_program_scribbles_on_the_board_is_read_as_something_harmless() -> None:
    board = SharedState(2)
    board._page[:] = b"\xff" * len(board._page)
    assert board.status(0) == ProcessStatus.running
    assert board.work(1) == ProcessActivity.nothing
    assert board.take_failure(1) is None
    board.begin(1, 1)
    assert (board.step(1), board.status(1), board.failure_at(1)) == (-1, ProcessStatus.starting, -1)
