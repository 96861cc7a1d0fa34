"""Which failures are rejected, and with which message."""

from __future__ import annotations

import pytest

from runners.supervisor.failure_injection import check_failure, check_result
from runners.wire.protocol import ClusterMember, InjectedFailure, PendingFailure, Topology

RUNNING = (ClusterMember(task="worker 0", state="running"), ClusterMember(task="worker 1", state="running"))
SERVING = (
    ClusterMember(task="coordinator", state="running"),
    ClusterMember(task="worker 0", state="running", serves=True),
)
OWN_ENDED = (ClusterMember(task="worker 0", state="ended"), ClusterMember(task="worker 1", state="running"))
ENDED = (ClusterMember(task="worker 0", state="running"), ClusterMember(task="worker 1", state="ended"))


@pytest.mark.parametrize(
    ("failure", "topology", "members", "code"),
    [
        (InjectedFailure(task="worker 1", action="kill"), "gpu:4", (), "no-cluster"),
        (InjectedFailure(task="worker 2", action="kill"), "workers:2", RUNNING, "unknown-task"),
        (InjectedFailure(task="worker 1", action="kill"), "workers:2", (), "not-started"),
        (InjectedFailure(task="worker 1", action="pause"), "workers:2", ENDED, "has-ended"),
        (InjectedFailure(task="worker 0", action="pause", at_step=3), "workers:2", OWN_ENDED, "has-ended"),
        (InjectedFailure(task="worker 1", action="restart"), "workers:2", RUNNING, "still-running"),
        (InjectedFailure(task="worker 0", action="restart"), "workers:2", RUNNING, "own-process"),
        (InjectedFailure(task="worker 1", action="resume", at_step=3), "workers:2", RUNNING, "not-at-a-step"),
        (InjectedFailure(task="worker 1", action="cancel", at_step=3), "workers:2", RUNNING, "not-at-a-step"),
        (InjectedFailure(task="worker 1", action="cancel"), "workers:2", RUNNING, "not-scheduled"),
        (InjectedFailure(task="worker 0", action="kill", at_step=3), "ps:1+1", SERVING, "counts-no-steps"),
    ],
)
def test_what_makes_no_sense_is_refused(
    failure: InjectedFailure, topology: str, members: tuple[ClusterMember, ...], code: str
) -> None:
    refusal = check_failure(failure, Topology.parse(topology), members)
    assert refusal
    assert refusal.code == code
    assert 400 <= refusal.status < 500


def test_what_can_be_done_is_not_refused() -> None:
    workers = Topology.parse("workers:2")
    assert check_failure(InjectedFailure(task="worker 1", action="kill", at_step=5), workers, RUNNING) is None
    assert check_failure(InjectedFailure(task="worker 1", action="restart"), workers, ENDED) is None
    assert check_failure(InjectedFailure(task="worker 0", action="pause"), workers, RUNNING) is None
    assert check_failure(InjectedFailure(task="worker 1", action="kill", at_step=5), workers, ENDED) is None


def test_a_pending_failure_can_be_canceled_and_a_server_can_be_killed_at_once() -> None:
    waiting = (
        RUNNING[0],
        ClusterMember(task="worker 1", state="running", scheduled=PendingFailure(action="kill", at_step=5)),
    )
    assert (
        check_failure(InjectedFailure(task="worker 1", action="cancel"), Topology.parse("workers:2"), waiting) is None
    )
    assert check_failure(InjectedFailure(task="worker 0", action="kill"), Topology.parse("ps:1+1"), SERVING) is None


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ("done", None),
        ("scheduled", None),
        ("passed", "step-passed"),
        ("not-scheduled", "not-scheduled"),
        ("nonsense", "not-started"),
    ],
)
def test_what_came_too_late_is_refused(result: str, code: str | None) -> None:
    refusal = check_result(InjectedFailure(task="worker 1", action="kill", at_step=3), result)
    assert (refusal.code if refusal else None) == code
