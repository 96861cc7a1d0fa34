"""A learner's sessions of one lesson: what the panel on the page says, and what its buttons do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from app.i18n import gettext
from app.lessons.machines import topology_words
from app.lessons.model import Lesson
from app.runs.outcome import session_words
from app.runs.service import Machine, session_id, session_spec
from runners.client import NotKnown, Refused, RunnerClient, RunnerUnavailable
from runners.protocol import SessionInfo, SessionState

_POLL_S = {"queued": 2, "starting": 1, "busy": 2, "idle": 15, "down": 2}
_LIVELIEST = (SessionState.busy, SessionState.starting, SessionState.queued, SessionState.idle, SessionState.gone)


@dataclass(frozen=True, slots=True)
class SessionView:
    """What the panel shows."""

    lesson: str
    """``course/slug``."""
    state: str
    """``none``, ``queued``, ``starting``, ``idle``, ``busy``, ``gone`` or ``down`` (the runner does not answer)."""
    words: str
    topology: str
    topology_words: str
    simulated: bool
    keras: int
    position: int | None = None
    can_interrupt: bool = False
    can_restart: bool = False
    poll_s: int | None = None
    """Ask again after so many seconds; None: only when a run begins or ends."""


def machines(lesson: Lesson) -> list[Machine]:
    """Every machine that a lesson's cells ask for, the lesson's own first."""
    own = (lesson.topology, lesson.keras)
    asked = [own, *((cell.topology, cell.keras) for cell in lesson.cells)]
    return [Machine(topology, 2 if keras == 2 else 3) for topology, keras in dict.fromkeys(asked)]


async def look(runner: RunnerClient, visitor: str | None, lesson: Lesson) -> SessionView:
    """The liveliest of the visitor's sessions of this lesson."""
    try:
        infos = await _infos(runner, visitor, lesson)
        if not infos and (await runner.health()).status == "starting":
            return view(lesson, None, starting=True)
    except (RunnerUnavailable, Refused):
        return down(lesson)
    return view(lesson, min(infos, key=lambda info: _LIVELIEST.index(info.state), default=None))


async def warm_up(runner: RunnerClient, visitor: str, lesson: Lesson) -> SessionView:
    """Ask for the lesson's own session, so that it is there when Run is pressed."""
    machine = machines(lesson)[0]
    try:
        await runner.ask_session(session_id(visitor, lesson.key, machine), session_spec(visitor, machine))
    except (RunnerUnavailable, Refused):
        return down(lesson)
    return await look(runner, visitor, lesson)


async def restart(runner: RunnerClient, visitor: str | None, lesson: Lesson) -> SessionView:
    """Give every session of the lesson a fresh kernel."""
    return await _each(runner, visitor, lesson, runner.restart)


async def interrupt(runner: RunnerClient, visitor: str | None, lesson: Lesson) -> SessionView:
    """Stop what runs in the lesson's sessions, and what waits."""
    return await _each(runner, visitor, lesson, runner.interrupt)


def view(lesson: Lesson, info: SessionInfo | None, *, starting: bool = False) -> SessionView:
    """The panel of a session, or of none. Pure."""
    topology = info.topology if info is not None else lesson.topology
    state = info.state.value if info is not None else "starting" if starting else "none"
    return SessionView(
        lesson=lesson.key,
        state=state,
        words=gettext("The runner is starting") if starting else session_words(info),
        topology=topology,
        topology_words=topology_words(topology),
        simulated=topology != "cpu",
        keras=info.keras if info is not None else lesson.keras,
        position=info.position if info is not None else None,
        can_interrupt=state == "busy",
        can_restart=state in ("idle", "busy"),
        poll_s=_POLL_S.get(state),
    )


def down(lesson: Lesson) -> SessionView:
    """The panel while the supervisor does not answer."""
    return SessionView(
        lesson=lesson.key,
        state="down",
        words=gettext("The runner is starting or not reachable. This page tries again by itself."),
        topology=lesson.topology,
        topology_words=topology_words(lesson.topology),
        simulated=lesson.topology != "cpu",
        keras=lesson.keras,
        poll_s=_POLL_S["down"],
    )


async def _each(
    runner: RunnerClient, visitor: str | None, lesson: Lesson, act: Callable[[str], Awaitable[SessionInfo]]
) -> SessionView:
    try:
        for machine in machines(lesson) if visitor else ():
            with suppress(NotKnown):
                await act(session_id(visitor or "", lesson.key, machine))
    except (RunnerUnavailable, Refused):
        return down(lesson)
    return await look(runner, visitor, lesson)


async def _infos(runner: RunnerClient, visitor: str | None, lesson: Lesson) -> list[SessionInfo]:
    infos = []
    for machine in machines(lesson) if visitor else ():
        with suppress(NotKnown):
            infos.append(await runner.session(session_id(visitor or "", lesson.key, machine)))
    return infos
