"""The session panel of a lesson's page: its content, and the actions of its buttons."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from app.bus import Bus
from app.errors import LockstepError
from app.i18n import N_, gettext, ngettext, number
from app.lessons.machine_labels import topology_label
from app.lessons.model import Lesson
from app.runs.errors import ExecutionDisabled, refusal_error
from app.runs.failure_injection import ClusterMemberView, cluster_members, state_key
from app.runs.machines import Machine, lesson_machines
from app.runs.service import session_id, session_owner, session_spec
from app.runs.status_labels import session_label
from app.web.sse import ServerSentEvent
from runners.wire.client import RequestRefused, ResourceNotFound, RunnerClient, RunnerUnavailable
from runners.wire.protocol import SessionInfo, SessionState

_POLL_INTERVALS_S = {"queued": 2, "starting": 1, "busy": 2, "down": 2}
_WARN_S = 135.0
"""A session that ends within this time gets a warning: two minutes, plus the interval between polls."""
_MAX_POLL_S = 20
_KEPT_TEXT = N_("Session kept. It ends in {time} if nothing runs.")
_GONE_TEXT = N_("{how}. Outputs stay, but variables are gone: first rerun the cells that you need.")
_WARNING_TEXT = N_("This session ends in {time} because nothing is running. Its variables will be lost.")
SessionAction = Literal["restart", "keep", "interrupt"]
"""The buttons of the panel."""
_ACTIVITY_ORDER = (SessionState.busy, SessionState.starting, SessionState.queued, SessionState.idle, SessionState.gone)


@dataclass(frozen=True, slots=True)
class SessionSelection:
    """Selects a session of the lesson for the panel."""

    machine: Machine
    exactly: bool = False
    """Only the session on that machine; otherwise the most active one of the lesson."""


@dataclass(frozen=True, slots=True)
class OtherSession:
    """A session of the lesson that the panel does not show in detail."""

    topology: str
    keras: int
    machine_words: str
    words: str


@dataclass(frozen=True, slots=True)
class SessionView:
    """The content of the panel."""

    lesson: str
    """``course/slug``."""
    state: str
    """``none``, ``queued``, ``starting``, ``idle``, ``busy``, ``gone`` or ``down`` (the runner does not answer)."""
    words: str
    topology: str
    topology_words: str
    keras: int
    members: tuple[ClusterMemberView, ...] = ()
    kernels: tuple[str, ...] | None = ()
    """Kernel IDs of all of the lesson's sessions: variables of any other kernel are lost. None if unknown."""
    key: str = ""
    """See ``app.runs.failure_injection.state_key``."""
    others: tuple[OtherSession, ...] = ()
    exactly: bool = False
    """Whether the session was selected by its machine; if so, the buttons act on it alone."""
    position: int | None = None
    notice: str = ""
    """A message to announce: that the session ends soon, was kept, or has ended."""
    ending: bool = False
    """Whether to highlight the notice: it is a warning, or the session was evicted."""
    can_keep: bool = False
    can_interrupt: bool = False
    can_restart: bool = False
    poll_s: int | None = None
    """Poll again after this many seconds; None means only when a run starts or ends."""


async def load_panel(
    runner: RunnerClient,
    learner: str | None,
    lesson: Lesson,
    wanted: SessionSelection,
    has_run: Callable[[], Awaitable[bool]] | None = None,
) -> SessionView:
    """The panel for the ``wanted`` session. Without sessions, ``has_run`` tells whether the learner had one before."""
    try:
        if infos := await _load_sessions(runner, learner, lesson):
            return _select_view(infos, wanted, lesson)
        health = await runner.health()
    except (RunnerUnavailable, RequestRefused):
        return unavailable_view(lesson, wanted.machine)
    if health.refuses:
        return unavailable_view(lesson, wanted.machine, ExecutionDisabled())
    starting = health.status == "starting"
    ran_before = has_run is not None and await has_run()
    return session_view(wanted.machine, lesson, None, starting=starting, ran_before=ran_before, exactly=wanted.exactly)


def _select_view(
    infos: list[SessionInfo], wanted: SessionSelection, lesson: Lesson, *, kept: bool = False
) -> SessionView:
    on_it = next((each for each in infos if _machine_of(each) == wanted.machine), None)
    shown = on_it if wanted.exactly else _most_active(infos, wanted.machine)
    others = [each for each in infos if each is not shown]
    return session_view(wanted.machine, lesson, shown, others=others, kept=kept, exactly=wanted.exactly)


async def warm_up(runner: RunnerClient, learner: str, lesson: Lesson, wanted: SessionSelection) -> SessionView:
    """Request a session on the ``wanted`` machine, so that it is ready when Run is pressed."""
    chosen = wanted.machine
    try:
        await runner.request_session(session_id(learner, lesson.key, chosen), session_spec(learner, chosen))
    except RunnerUnavailable:
        return unavailable_view(lesson, chosen)
    except RequestRefused as e:
        return unavailable_view(lesson, chosen, refusal_error(e.status, e.refusal))
    return await load_panel(runner, learner, lesson, wanted)


async def act_on_sessions(
    runner: RunnerClient, learner: str | None, lesson: Lesson, wanted: SessionSelection, action: SessionAction
) -> SessionView:
    """Do what a button of the panel says with the wanted session; if no machine was named exactly, with all of them.

    ``keep`` restarts the idle timers of all sessions of the lesson in any case: the learner is still there.
    """
    act = {"restart": runner.restart, "keep": runner.keep, "interrupt": runner.interrupt}[action]
    kept = action == "keep"
    meant = [wanted.machine] if wanted.exactly and not kept else lesson_machines(lesson)
    try:
        for machine in meant if learner else ():
            with suppress(ResourceNotFound):
                await act(session_id(learner or "", lesson.key, machine))
        infos = await _load_sessions(runner, learner, lesson)
    except (RunnerUnavailable, RequestRefused):
        return unavailable_view(lesson, wanted.machine)
    if not infos:
        return session_view(wanted.machine, lesson, None, exactly=wanted.exactly)
    return _select_view(infos, wanted, lesson, kept=kept)


async def idle_sessions(runner: RunnerClient, learner: str | None, lesson: Lesson) -> list[str]:
    """The IDs of the learner's idle sessions of the lesson, which can be evicted. Raises RunnerError."""
    return [info.id for info in await _load_sessions(runner, learner, lesson) if info.state is SessionState.idle]


async def watch_until_gone(
    runner: RunnerClient, bus: Bus, names: Sequence[str]
) -> AsyncIterator[list[ServerSentEvent]]:
    """Yield one event when one of these sessions has ended, or when the runner cannot tell anymore."""
    waiting = [asyncio.ensure_future(runner.wait_until_gone(name)) for name in names]
    try:
        with bus.subscribe("sessions") as subscription:
            while not bus.closed:
                ring = asyncio.ensure_future(subscription.wait(_MAX_POLL_S))
                try:
                    done, _ = await asyncio.wait({*waiting, ring}, return_when="FIRST_COMPLETED")
                finally:
                    ring.cancel()
                if done - {ring}:
                    yield [ServerSentEvent("changed", "{}")]
                    return
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def session_view(
    chosen: Machine,
    lesson: Lesson,
    info: SessionInfo | None,
    *,
    starting: bool = False,
    ran_before: bool = False,
    kept: bool = False,
    others: Sequence[SessionInfo] = (),
    exactly: bool = False,
) -> SessionView:
    """The panel of a session or, without one, of the ``chosen`` machine. Pure.

    Warns about any session of the lesson that ends soon.
    """
    topology = info.topology if info is not None else chosen.topology
    state = info.state.value if info is not None else "starting" if starting else "none"
    heard = [each for each in (info, *others) if each is not None]
    ends = next(filter(_ends_soon, heard), None)
    evicted = next((each for each in heard if each.gone_because == "evicted" and each.runs > 0), None)
    about = ends or evicted or info
    notice = _notice_text(about, ending=ends is not None, kept=kept, lost=info is None and ran_before)
    if about is not info and about is not None:
        notice = f"{_session_name(about)}: {notice}"
    polls = [_poll_interval_s(each) for each in heard if each.state is SessionState.idle]
    return SessionView(
        lesson=lesson.key,
        state=state,
        words=_state_text(info, starting=starting),
        topology=topology,
        topology_words=topology_label(topology, real=info is not None and info.real),
        keras=info.keras if info is not None else chosen.keras,
        members=cluster_members(info) if info is not None else (),
        kernels=tuple(each.kernel_id for each in heard if each.kernel_id),
        key=state_key(info) if info is not None else "",
        others=tuple(
            OtherSession(each.topology, each.keras, _session_name(each), session_label(each)) for each in others
        ),
        exactly=exactly,
        position=info.position if info is not None else None,
        notice=notice,
        ending=ends is not None or evicted is not None,
        can_keep=ends is not None,
        can_interrupt=state == "busy",
        can_restart=state in ("idle", "busy"),
        poll_s=min((*polls, *([_POLL_INTERVALS_S[state]] if state in _POLL_INTERVALS_S else ())), default=None),
    )


def _session_name(info: SessionInfo) -> str:
    return f"{topology_label(info.topology, real=info.real)} · Keras {info.keras}"


def _machine_of(info: SessionInfo) -> Machine:
    return Machine(info.topology, info.keras)


def _state_text(info: SessionInfo | None, *, starting: bool) -> str:
    if starting:
        return gettext("The runner is starting")
    if info is not None and info.state is SessionState.gone:
        return gettext("Ended")  # the notice has the details
    return session_label(info)


def _ends_soon(info: SessionInfo) -> bool:
    """Whether to warn of the session's end. A session without runs has nothing to lose."""
    return info.ends_in_s is not None and info.ends_in_s <= _WARN_S and info.runs > 0


def _notice_text(info: SessionInfo | None, *, ending: bool, kept: bool, lost: bool) -> str:
    if lost:
        return gettext("The variables from earlier runs are gone. First run the cells that the next one needs.")
    if info is None:
        return ""
    if info.state is SessionState.gone:
        return gettext(_GONE_TEXT).format(how=session_label(info)) if info.runs else session_label(info)
    if info.ends_in_s is None:
        return ""
    words = _KEPT_TEXT if kept and not ending else _WARNING_TEXT if ending else ""
    return gettext(words).format(time=_time_text(info.ends_in_s)) if words else ""


def _time_text(seconds: float) -> str:
    """In whole minutes, so that screen readers do not repeat a warning too often."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return gettext("less than a minute")
    return ngettext("%(num)s minute", "%(num)s minutes", minutes) % {"num": number(minutes)}


def _poll_interval_s(info: SessionInfo) -> int:
    """Long while the end is far away, timed for the warning, then short."""
    if info.ends_in_s is None:
        return _MAX_POLL_S
    if info.ends_in_s > _WARN_S:
        return max(1, min(_MAX_POLL_S, int(info.ends_in_s - _WARN_S) + 1))
    return 10 if info.ends_in_s > 30 else 3


def _most_active(infos: list[SessionInfo], chosen: Machine) -> SessionInfo:
    """The most active session; among equals the one on the chosen machine, then the one that ends first."""

    def rank(info: SessionInfo) -> tuple[int, bool, float]:
        mine = _machine_of(info) == chosen
        return _ACTIVITY_ORDER.index(info.state), not mine, info.ends_in_s or 0.0

    return min(infos, key=rank)


def unavailable_view(lesson: Lesson, chosen: Machine, why: LockstepError | None = None) -> SessionView:
    """The panel while the supervisor does not respond or, with ``why``, gives no session."""
    silent = gettext("The runner is starting or cannot be reached. This page retries automatically.")
    return SessionView(
        lesson=lesson.key,
        state="down",
        words=why.localized_message() if why else silent,
        topology=chosen.topology,
        topology_words=topology_label(chosen.topology),
        keras=chosen.keras,
        kernels=None,
        poll_s=_POLL_INTERVALS_S["down"],
    )


async def _load_sessions(runner: RunnerClient, learner: str | None, lesson: Lesson) -> list[SessionInfo]:
    """The learner's sessions of the lesson, in the order of its machines: one request, however many machines it has."""
    if learner is None:
        return []
    theirs = {info.id: info for info in await runner.sessions_of(session_owner(learner))}
    names = [session_id(learner, lesson.key, machine) for machine in lesson_machines(lesson)]
    return [theirs[name] for name in names if name in theirs]
