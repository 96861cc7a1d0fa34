"""How PID 1 handles commands for the processes of a cluster; the processes here only sleep."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from runners.guest.cluster.shared_state import FailureAction
from runners.guest.pid1.cluster_manager import ClusterManager
from runners.wire.topology import Topology

Told = list[list[dict[str, Any]]]


@pytest.fixture
def team() -> Iterator[tuple[ClusterManager, Told]]:
    """Two sleeping workers, and everything reported to the supervisor about them."""
    sleepers: list[subprocess.Popen[bytes]] = []
    told: Told = []

    def sleep(*_: object) -> int:
        sleepers.append(subprocess.Popen(["sleep", "60"]))
        return sleepers[-1].pid

    team = ClusterManager(Topology.parse("workers:2"), sleep, told.append)
    team.begin(sleep())
    yield team, told
    team.close()
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()


def states(members: list[dict[str, Any]]) -> list[str]:
    """The members in one report."""
    return [member["state"] for member in members]


def scheduled(team: ClusterManager) -> list[dict[str, Any] | None]:
    """The pending failure of each worker."""
    return [member["scheduled"] for member in team.members()]


def test_the_supervisor_hears_of_many_changes_seldom_and_of_the_last_in_any_case(
    team: tuple[ClusterManager, Told],
) -> None:
    members, told = team
    assert members.tick() is None
    assert [states(each) for each in told] == [["running", "starting"], ["running", "running"]]

    for action in ["pause", "resume"] * 200 + ["pause"]:
        members.apply("worker 1", action)
        wait_s = members.tick()
    assert len(told) < 50
    while wait_s is not None:
        time.sleep(wait_s)
        wait_s = members.tick()
    assert states(told[-1]) == ["running", "paused"]


@pytest.mark.parametrize(
    ("task", "action", "at_step"),
    [
        ("worker 1", ["kill"], None),
        ("worker 1", ["kill"], 9),
        ("worker 1", "explode", 9),
        ("worker 1", "kill", -1),
        ("worker 1", "kill", True),
        ("worker 1", "kill", 1e308),
        (["worker 1"], "kill", None),
        ("worker 0", "restart", None),
    ],
)
def test_a_wish_that_makes_no_sense_is_not_done(
    team: tuple[ClusterManager, Told], task: object, action: object, at_step: object
) -> None:
    members, _ = team
    members.apply(task, action, at_step)
    assert states(members.members()) == ["running", "running"]


def test_a_pending_failure_is_shown_and_can_be_canceled(team: tuple[ClusterManager, Told]) -> None:
    members, told = team
    assert members.apply("worker 1", "kill", 5) == "scheduled"
    assert scheduled(members) == [None, {"action": "kill", "at_step": 5}]
    members.report()
    assert told[-1] == members.members()

    assert members.apply("worker 1", "cancel") == "done"

    assert scheduled(members) == [None, None]
    assert members.place(0).shared_state.failure_at(1) == -1
    assert members.apply("worker 1", "cancel") == "not-scheduled"
    assert states(members.members()) == ["running", "running"]


def test_a_process_at_its_step_is_killed_and_nothing_is_left_to_take_back(team: tuple[ClusterManager, Told]) -> None:
    members, _ = team
    members.apply("worker 1", "kill", 5)
    board = members.place(1).shared_state
    board.set_step(1, 5)
    assert board.take_failure(1) == FailureAction.kill
    members.place(1).send_command("worker 1", "kill", reached=True)

    members.read_commands()

    assert states(members.members()) == ["running", "ended"]
    assert scheduled(members) == [None, None]
    assert members.apply("worker 1", "cancel") == "not-scheduled"


def test_a_fault_that_is_taken_back_while_its_process_comes_to_the_step_is_not_done(
    team: tuple[ClusterManager, Told],
) -> None:
    members, _ = team
    members.apply("worker 1", "kill", 5)
    board = members.place(1).shared_state
    board.set_step(1, 5)
    assert board.take_failure(1) == FailureAction.kill
    members.place(1).send_command("worker 1", "kill", reached=True)

    assert members.apply("worker 1", "cancel") == "done"
    members.read_commands()

    assert states(members.members()) == ["running", "running"]


def test_a_later_fault_is_not_done_at_the_step_of_the_one_it_replaced(team: tuple[ClusterManager, Told]) -> None:
    members, _ = team
    members.apply("worker 1", "kill", 5)
    board = members.place(1).shared_state
    board.set_step(1, 5)
    board.take_failure(1)
    members.apply("worker 1", "kill", 9)
    members.place(1).send_command("worker 1", "kill", reached=True)

    members.read_commands()

    assert states(members.members()) == ["running", "running"]
    assert scheduled(members) == [None, {"action": "kill", "at_step": 9}]


def test_a_past_step_is_rejected_only_if_somebody_can_be_told(team: tuple[ClusterManager, Told]) -> None:
    members, _ = team
    members.place(1).shared_state.set_step(1, 7)
    assert members.apply("worker 1", "pause", 7, late=False) == "passed"
    assert states(members.members()) == ["running", "running"]
    assert members.apply("worker 1", "pause", 7) == "done"
    assert states(members.members()) == ["running", "paused"]


def test_while_a_failure_is_pending_the_step_of_its_process_is_reported(team: tuple[ClusterManager, Told]) -> None:
    members, told = team
    members.apply("worker 1", "pause", 50)
    members.report()
    members.place(1).shared_state.set_step(1, 12)

    wait_s = members.tick()
    while told[-1][1]["step"] is None:
        assert wait_s is not None
        assert wait_s <= 1
        time.sleep(wait_s)
        wait_s = members.tick()

    assert told[-1][1]["step"] == 12


def test_a_process_that_has_ended_waits_for_nothing(team: tuple[ClusterManager, Told]) -> None:
    members, _ = team
    members.apply("worker 1", "pause", 5)
    members.apply("worker 1", "kill")
    assert scheduled(members) == [None, None]
    members.apply("worker 1", "restart")
    assert members.place(0).shared_state.failure_at(1) == -1


def test_a_failure_that_is_injected_after_the_end_waits_for_the_next_process(
    team: tuple[ClusterManager, Told],
) -> None:
    members, _ = team
    board = members.place(0).shared_state
    board.set_step(1, 7)
    members.apply("worker 1", "kill")
    assert members.apply("worker 1", "pause", 5, late=False) == "scheduled"

    members.apply("worker 1", "restart")

    assert states(members.members()) == ["running", "running"]
    assert scheduled(members) == [None, {"action": "pause", "at_step": 5}]
    board.set_step(1, 5)
    assert board.take_failure(1) == FailureAction.pause
    members.place(1).send_command("worker 1", "pause", reached=True)
    members.read_commands()
    assert states(members.members()) == ["running", "paused"]


def test_code_that_kills_a_process_at_a_step_does_not_kill_its_successor(team: tuple[ClusterManager, Told]) -> None:
    members, _ = team
    members.apply("worker 1", "kill")
    members.apply("worker 1", "kill", 5)  # another process has only now come to this line

    members.apply("worker 1", "restart")

    assert scheduled(members) == [None, None]
    assert members.place(0).shared_state.failure_at(1) == -1


def test_the_notebooks_own_process_counts_as_ended_as_soon_as_it_is_killed(team: tuple[ClusterManager, Told]) -> None:
    members, _ = team
    members.apply("worker 0", "kill")
    assert states(members.members()) == ["ended", "running"]


def test_how_a_process_ended_is_known_once_another_is_in_its_place(team: tuple[ClusterManager, Told]) -> None:
    members, _ = team
    members.apply("worker 1", "kill")
    members.apply("worker 1", "restart")
    assert states(members.members()) == ["running", "running"]
    assert members.place(0).shared_state.exit_status(1) == -signal.SIGKILL
