"""The position of a run in the queue."""

from __future__ import annotations

import pytest

from app.runs.models import Run, RunState
from app.runs.queue_position import QueuePosition, position_of_run, round_wait_s
from runners.wire.protocol import SessionInfo, SessionState


def _session(state: SessionState, position: int | None = None) -> SessionInfo:
    return SessionInfo(id="x", state=state, topology="gpu:4", keras=3, position=position)


@pytest.mark.parametrize(
    ("run", "session", "ahead", "expected"),
    [
        (RunState.finished, None, 0, QueuePosition("finished")),
        (RunState.running, _session(SessionState.busy), 0, QueuePosition("running")),
        (RunState.queued, _session(SessionState.queued, 3), 1, QueuePosition("queued", 3, 1)),
        (RunState.queued, _session(SessionState.starting), 0, QueuePosition("starting")),
        (RunState.queued, _session(SessionState.starting), 2, QueuePosition("queued", None, 2)),
        (RunState.queued, _session(SessionState.busy), 1, QueuePosition("queued", None, 1)),
        (RunState.queued, None, 0, QueuePosition("queued", None, 0)),
    ],
)
def test_the_position_of_a_run_follows_from_its_session_and_those_before_it(
    run: RunState, session: SessionInfo | None, ahead: int, expected: QueuePosition
) -> None:
    assert position_of_run(Run(state=run), session, ahead) == expected


def test_an_estimate_comes_in_steps_that_say_how_rough_it_is() -> None:
    session = _session(SessionState.queued, 2).model_copy(update={"wait_s": 23.4})

    assert position_of_run(Run(state=RunState.queued), session, 0) == QueuePosition("queued", 2, 0, wait_s=20)
    assert [round_wait_s(s) for s in (0, 9.9, 10, 26, 54.9, 55, 89, 91, 600)] == [0, 0, 10, 30, 50, 60, 60, 120, 600]
