"""A fault waits until its process has reached its step."""

from __future__ import annotations

import pytest

from runners.kernel import steps
from runners.kernel.board import Action, Board, Status, Work


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch) -> list[Action]:
    for name in ("_board", "_task", "_carry_out"):
        monkeypatch.setattr(steps, name, getattr(steps, name))
    return []


def test_without_a_cluster_a_step_is_nothing() -> None:
    steps.reached(5)


def test_a_fault_is_carried_out_once_at_its_step_and_not_before(carried_out: list[Action]) -> None:
    board = Board(2)
    steps.belong_to(board, 1, carried_out.append)
    board.await_step(1, 3, Action.pause)
    steps.reached(2)
    assert not carried_out
    steps.reached(4)
    steps.reached(5)
    assert carried_out == [Action.pause]
    assert board.step(1) == 5
    assert board.step(0) == -1


@pytest.mark.usefixtures("carried_out")
def test_each_run_counts_from_the_beginning_and_what_waits_stays() -> None:
    board = Board(1)
    steps.begin_again()
    steps.belong_to(board, 0, lambda _action: None)
    steps.reached(7)
    board.await_step(0, 9, Action.kill)
    steps.begin_again()
    assert (board.step(0), board.fault_at(0)) == (-1, 9)


def test_a_later_fault_replaces_the_one_that_waits() -> None:
    board = Board(1)
    board.await_step(0, 3, Action.pause)
    board.await_step(0, 7, Action.kill)
    assert board.fault_at(0) == 7
    assert board.take_fault(0) == Action.kill
    assert board.take_fault(0) is None


def test_what_a_program_scribbles_on_the_board_is_read_as_something_harmless() -> None:
    board = Board(2)
    board._page[:] = b"\xff" * len(board._page)
    assert board.status(0) == Status.running
    assert board.work(1) == Work.nothing
    assert board.take_fault(1) is None
    board.begin(1)
    assert (board.step(1), board.status(1), board.fault_at(1)) == (-1, Status.starting, -1)
