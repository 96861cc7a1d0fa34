"""Which faults are refused, and with which sentence."""

from __future__ import annotations

import pytest

from runners.faults import refuse, too_late
from runners.protocol import Armed, Fault, Member, Topology

RUNNING = (Member(task="worker 0", state="running"), Member(task="worker 1", state="running"))
SERVING = (Member(task="coordinator", state="running"), Member(task="worker 0", state="running", serves=True))
ENDED = (Member(task="worker 0", state="running"), Member(task="worker 1", state="ended"))


@pytest.mark.parametrize(
    ("fault", "topology", "members", "code"),
    [
        (Fault(task="worker 1", action="kill"), "gpu:4", (), "no-cluster"),
        (Fault(task="worker 2", action="kill"), "workers:2", RUNNING, "unknown-task"),
        (Fault(task="worker 1", action="kill"), "workers:2", (), "not-started"),
        (Fault(task="worker 1", action="pause"), "workers:2", ENDED, "has-ended"),
        (Fault(task="worker 1", action="restart"), "workers:2", RUNNING, "still-running"),
        (Fault(task="worker 0", action="restart"), "workers:2", RUNNING, "own-process"),
        (Fault(task="worker 1", action="resume", at_step=3), "workers:2", RUNNING, "not-at-a-step"),
        (Fault(task="worker 1", action="disarm", at_step=3), "workers:2", RUNNING, "not-at-a-step"),
        (Fault(task="worker 1", action="disarm"), "workers:2", RUNNING, "not-armed"),
        (Fault(task="worker 0", action="kill", at_step=3), "ps:1+1", SERVING, "counts-no-steps"),
    ],
)
def test_what_makes_no_sense_is_refused(fault: Fault, topology: str, members: tuple[Member, ...], code: str) -> None:
    refusal = refuse(fault, Topology.parse(topology), members)
    assert refusal
    assert refusal.code == code
    assert 400 <= refusal.status < 500


def test_what_can_be_done_is_not_refused() -> None:
    workers = Topology.parse("workers:2")
    assert refuse(Fault(task="worker 1", action="kill", at_step=5), workers, RUNNING) is None
    assert refuse(Fault(task="worker 1", action="restart"), workers, ENDED) is None
    assert refuse(Fault(task="worker 0", action="pause"), workers, RUNNING) is None


def test_what_waits_can_be_taken_back_and_who_serves_can_be_killed_at_once() -> None:
    waiting = (RUNNING[0], Member(task="worker 1", state="running", armed=Armed(action="kill", at_step=5)))
    assert refuse(Fault(task="worker 1", action="disarm"), Topology.parse("workers:2"), waiting) is None
    assert refuse(Fault(task="worker 0", action="kill"), Topology.parse("ps:1+1"), SERVING) is None


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ("done", None),
        ("armed", None),
        ("passed", "step-passed"),
        ("not-armed", "not-armed"),
        ("nonsense", "not-started"),
    ],
)
def test_what_came_too_late_is_refused(result: str, code: str | None) -> None:
    refusal = too_late(Fault(task="worker 1", action="kill", at_step=3), result)
    assert (refusal.code if refusal else None) == code
