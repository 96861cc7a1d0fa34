"""What PID 1 makes of wishes for the processes of a cluster; the processes here only sleep."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from runners.devices.topology import Topology
from runners.kernel.team import Team


@pytest.fixture
def team() -> Iterator[tuple[Team, list[list[list[str]]]]]:
    """Two sleeping workers, and all that the supervisor was told of them."""
    sleepers: list[subprocess.Popen[bytes]] = []
    told: list[list[list[str]]] = []

    def sleep(*_: object) -> int:
        sleepers.append(subprocess.Popen(["sleep", "60"]))
        return sleepers[-1].pid

    team = Team(Topology.parse("workers:2"), sleep, told.append)
    team.begin(sleep())
    yield team, told
    team.close()
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()


def states(members: list[list[str]]) -> list[str]:
    """Of what was told once."""
    return [state for _, state, _ in members]


def test_the_supervisor_hears_of_many_changes_seldom_and_of_the_last_in_any_case(
    team: tuple[Team, list[list[list[str]]]],
) -> None:
    members, told = team
    assert members.tick() is None
    assert [states(each) for each in told] == [["running", "running"]]

    for action in ["pause", "resume"] * 200 + ["pause"]:
        members.do("worker 1", action)
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
    team: tuple[Team, list[list[list[str]]]], task: object, action: object, at_step: object
) -> None:
    members, _ = team
    members.do(task, action, at_step)
    assert states(members.members()) == ["running", "running"]


def test_how_a_process_ended_is_known_once_another_is_in_its_place(team: tuple[Team, list[list[list[str]]]]) -> None:
    members, _ = team
    members.do("worker 1", "kill")
    members.do("worker 1", "restart")
    assert states(members.members()) == ["running", "running"]
    assert members.place(0).board.exit_status(1) == -signal.SIGKILL
