"""A learner's sessions of one lesson: what the panel on the page says, and what its buttons do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.bus import Bus
from app.i18n import N_, gettext, ngettext, number
from app.lessons.machine_labels import topology_label
from app.lessons.model import Lesson
from app.runs.failure_injection import ClusterMemberView, cluster_members, state_key
from app.runs.machines import Machine, lesson_machines
from app.runs.service import session_id, session_spec
from app.runs.status_labels import session_label
from app.web.sse import ServerSentEvent
from runners.wire.client import RequestRefused, ResourceNotFound, RunnerClient, RunnerUnavailable
from runners.wire.protocol import SessionInfo, SessionState

_POLL_INTERVALS_S = {"queued": 2, "starting": 1, "busy": 2, "down": 2}
_WARN_S = 135.0
"""A session that ends sooner than this is warned of: two minutes, and the time in which nobody asks."""
_MAX_POLL_S = 20
_KEPT_TEXT = N_("Session kept. It ends in {time} if nothing runs.")
_GONE_TEXT = N_("{how}. Outputs stay, but variables are gone: first rerun the cells that you need.")
_WARNING_TEXT = N_("This session ends in {time} because nothing is running. Its variables will be lost.")
_ACTIVITY_ORDER = (SessionState.busy, SessionState.starting, SessionState.queued, SessionState.idle, SessionState.gone)


@dataclass(frozen=True, slots=True)
class SessionSelection:
    """Which of a lesson's sessions the panel is about."""

    machine: Machine
    exactly: bool = False
    """The one on that machine, or none; otherwise the liveliest."""


@dataclass(frozen=True, slots=True)
class OtherSession:
    """A session of the lesson that the panel does not show."""

    topology: str
    keras: int
    machine_words: str
    words: str


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
    keras: int
    members: tuple[ClusterMemberView, ...] = ()
    kernels: tuple[str, ...] | None = ()
    """Of all of the lesson's sessions: output of any other has lost its variables. None: nobody knows right now."""
    key: str = ""
    """See ``app.runs.failure_injection.state_key``."""
    others: tuple[OtherSession, ...] = ()
    exactly: bool = False
    """It was asked for by its machine; its buttons act on it alone."""
    position: int | None = None
    notice: str = ""
    """What has to be heard: that the session ends soon, was kept, or has ended."""
    ending: bool = False
    """The notice is a warning, or says that the session was evicted: it stands out."""
    can_keep: bool = False
    can_interrupt: bool = False
    can_restart: bool = False
    poll_s: int | None = None
    """Ask again after so many seconds; None: only when a run begins or ends."""


async def load_panel(
    runner: RunnerClient,
    learner: str | None,
    lesson: Lesson,
    wanted: SessionSelection,
    has_run: Callable[[], Awaitable[bool]] | None = None,
) -> SessionView:
    """The ``wanted`` one of the learner's sessions of this lesson; without any, ``has_run`` tells if there was one."""
    try:
        if infos := await _load_sessions(runner, learner, lesson):
            return _select_view(infos, wanted, lesson)
        starting = (await runner.health()).status == "starting"
    except (RunnerUnavailable, RequestRefused):
        return unavailable_view(lesson, wanted.machine)
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
    """Ask for a session on the ``wanted`` machine, so that it is there when Run is pressed."""
    chosen = wanted.machine
    try:
        await runner.request_session(session_id(learner, lesson.key, chosen), session_spec(learner, chosen))
    except (RunnerUnavailable, RequestRefused):
        return unavailable_view(lesson, chosen)
    return await load_panel(runner, learner, lesson, wanted)


async def restart_sessions(
    runner: RunnerClient, learner: str | None, lesson: Lesson, wanted: SessionSelection
) -> SessionView:
    """Give the session a fresh kernel, or, unless one is wanted exactly, every session of the lesson."""
    return await _apply_to_sessions(runner, learner, lesson, wanted, runner.restart)


async def keep_sessions(
    runner: RunnerClient, learner: str | None, lesson: Lesson, wanted: SessionSelection
) -> SessionView:
    """The learner is still there: the idle time restarts in every session of the lesson."""
    return await _apply_to_sessions(runner, learner, lesson, wanted, runner.keep, kept=True)


async def idle_sessions(runner: RunnerClient, learner: str | None, lesson: Lesson) -> list[str]:
    """The learner's sessions of the lesson that may be evicted. Raises RunnerError."""
    return [info.id for info in await _load_sessions(runner, learner, lesson) if info.state is SessionState.idle]


async def watch_until_gone(
    runner: RunnerClient, bus: Bus, names: Sequence[str]
) -> AsyncIterator[list[ServerSentEvent]]:
    """Yield one frame when one of these sessions is gone, or when the runner cannot tell any more."""
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


async def interrupt_sessions(
    runner: RunnerClient, learner: str | None, lesson: Lesson, wanted: SessionSelection
) -> SessionView:
    """Stop what runs and what waits in the session, or, unless one is wanted exactly, in all of the lesson."""
    return await _apply_to_sessions(runner, learner, lesson, wanted, runner.interrupt)


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
    """The panel of a session, or of none: then it is about the ``chosen`` machine. Pure.

    What ends soon is warned of, whichever of the lesson's sessions it is.
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
        kernels=_kernel_ids(heard),
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
        return gettext("Ended")  # the notice says the rest
    return session_label(info)


def _ends_soon(info: SessionInfo) -> bool:
    """A session in which nothing ran has nothing to lose: its end needs no warning."""
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
    """Whole minutes, so that a warning that is read aloud changes seldom."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return gettext("less than a minute")
    return ngettext("%(num)s minute", "%(num)s minutes", minutes) % {"num": number(minutes)}


def _poll_interval_s(info: SessionInfo) -> int:
    """Seldom while the end is far, in time for the warning, often at the end."""
    if info.ends_in_s is None:
        return _MAX_POLL_S
    if info.ends_in_s > _WARN_S:
        return max(1, min(_MAX_POLL_S, int(info.ends_in_s - _WARN_S) + 1))
    return 10 if info.ends_in_s > 30 else 3


def _most_active(infos: list[SessionInfo], chosen: Machine) -> SessionInfo:
    """The liveliest; of several alike the chosen one, or else that which ends first."""

    def rank(info: SessionInfo) -> tuple[int, bool, float]:
        mine = _machine_of(info) == chosen
        return _ACTIVITY_ORDER.index(info.state), not mine, info.ends_in_s or 0.0

    return min(infos, key=rank)


def unavailable_view(lesson: Lesson, chosen: Machine) -> SessionView:
    """The panel while the supervisor does not answer."""
    return SessionView(
        lesson=lesson.key,
        state="down",
        words=gettext("The runner is starting or cannot be reached. This page retries automatically."),
        topology=chosen.topology,
        topology_words=topology_label(chosen.topology),
        keras=chosen.keras,
        kernels=None,
        poll_s=_POLL_INTERVALS_S["down"],
    )


async def _apply_to_sessions(
    runner: RunnerClient,
    learner: str | None,
    lesson: Lesson,
    wanted: SessionSelection,
    act: Callable[[str], Awaitable[SessionInfo]],
    *,
    kept: bool = False,
) -> SessionView:
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


def _kernel_ids(infos: list[SessionInfo]) -> tuple[str, ...]:
    return tuple(info.kernel_id for info in infos if info.kernel_id)


async def _load_sessions(runner: RunnerClient, learner: str | None, lesson: Lesson) -> list[SessionInfo]:
    async def info(machine: Machine) -> SessionInfo | None:
        with suppress(ResourceNotFound):
            return await runner.session(session_id(learner or "", lesson.key, machine))
        return None

    found = await asyncio.gather(*map(info, lesson_machines(lesson) if learner else ()))
    return [each for each in found if each is not None]
