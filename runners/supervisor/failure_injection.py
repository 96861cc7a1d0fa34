"""Decides whether a failure can be injected into a process of a cluster in its current state. Pure."""

from __future__ import annotations

from typing import NamedTuple

from runners.wire.protocol import ClusterMember, InjectedFailure, Topology


class FailureRefusal(NamedTuple):
    """Why a failure cannot be injected: an HTTP status, a stable code, and a sentence for people."""

    status: int
    code: str
    message: str


def check_failure(
    failure: InjectedFailure, topology: Topology, members: tuple[ClusterMember, ...]
) -> FailureRefusal | None:
    """Explain why ``failure`` cannot be injected; None if it can.

    Args:
        failure: the requested failure.
        topology: the session's topology.
        members: its processes in their current state; empty while its kernel starts.
    """
    lanes = [task.lane for task in topology.tasks]
    if not lanes:
        return FailureRefusal(
            409, "no-cluster", f"a {topology} is a single process; inject failures into a cluster such as workers:2"
        )
    if failure.task not in lanes:
        return FailureRefusal(
            422, "unknown-task", f"there is no {failure.task} in {topology}; its processes are: {', '.join(lanes)}"
        )
    if failure.at_step is not None and failure.action in ("resume", "restart", "cancel"):
        return FailureRefusal(422, "not-at-a-step", f"{failure.action} happens immediately and cannot wait for a step")
    member = next((member for member in members if member.task == failure.task), None)
    if member is None:
        return FailureRefusal(409, "not-started", f"{failure.task} does not exist yet; run a cell first")
    state = member.state
    if failure.action == "cancel":
        return None if member.scheduled else _not_scheduled(failure)
    if failure.at_step is not None and member.serves:
        message = (
            f"{failure.task} serves the coordinator and counts no steps, so it never reaches step {failure.at_step}"
        )
        return FailureRefusal(409, "counts-no-steps", f"{message}; leave at_step out to {failure.action} it now")
    if failure.action == "restart":
        if failure.task == lanes[0]:
            return FailureRefusal(
                409, "own-process", f"{failure.task} is the notebook's own process: restart the session"
            )
        if state != "ended":
            return FailureRefusal(409, "still-running", f"{failure.task} has not ended")
    elif state == "ended" and (failure.at_step is None or failure.task == lanes[0]):
        return FailureRefusal(
            409, "has-ended", f"{failure.task} has ended; restart it first, or give a step for its next process"
        )
    return None


def check_result(failure: InjectedFailure, result: str) -> FailureRefusal | None:
    """Explain why PID 1 did not carry out the request, from its result (see ``ClusterManager.do``); None if it did."""
    match result:
        case "done" | "scheduled":
            return None
        case "passed":
            message = f"{failure.task} is past step {failure.at_step}"
            return FailureRefusal(
                409, "step-passed", f"{message}; choose a later step, or leave at_step out to do it now"
            )
        case "not-scheduled":
            return _not_scheduled(failure)
    return FailureRefusal(409, "not-started", f"{failure.task} no longer exists; run a cell first")


def _not_scheduled(failure: InjectedFailure) -> FailureRefusal:
    return FailureRefusal(
        409, "not-scheduled", f"no failure is pending for {failure.task}: it has happened or been canceled already"
    )
