"""A learner's sessions of one lesson: what the panel on the page says, and what its buttons do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from app.bus import Bus
from app.i18n import N_, gettext, ngettext, number
from app.lessons.machines import topology_words
from app.lessons.model import Lesson
from app.runs.faults import MemberView, key_of, members_of
from app.runs.machines import Machine, machines
from app.runs.outcome import session_words
from app.runs.service import session_id, session_spec
from app.web.sse import Frame
from runners.client import NotKnown, Refused, RunnerClient, RunnerUnavailable
from runners.protocol import SessionInfo, SessionState

_POLL_S = {"queued": 2, "starting": 1, "busy": 2, "down": 2}
_WARN_S = 135.0
"""A session that ends sooner than this is warned of: two minutes, and the time in which nobody asks."""
_LONGEST_POLL_S = 20
_KEPT = N_("Kept. It ends in {time} if nothing runs.")
_GONE = N_("{how}. Outputs stay, variables are gone: run the cells that you need again first.")
_WARNING = N_("This session ends in {time} because nothing ran: its variables will be gone.")
_LIVELIEST = (SessionState.busy, SessionState.starting, SessionState.queued, SessionState.idle, SessionState.gone)


@dataclass(frozen=True, slots=True)
class Wanted:
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
    members: tuple[MemberView, ...] = ()
    kernels: tuple[str, ...] | None = ()
    """Of all of the lesson's sessions: output of any other has lost its variables. None: nobody knows right now."""
    key: str = ""
    """See ``app.runs.faults.key_of``."""
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


async def look(
    runner: RunnerClient,
    learner: str | None,
    lesson: Lesson,
    wanted: Wanted,
    ever_ran: Callable[[], Awaitable[bool]] | None = None,
) -> SessionView:
    """The ``wanted`` one of the learner's sessions of this lesson; without any, ``ever_ran`` tells if there was one."""
    try:
        if infos := await _infos(runner, learner, lesson):
            return _view_of(infos, wanted, lesson)
        starting = (await runner.health()).status == "starting"
    except (RunnerUnavailable, Refused):
        return down(lesson, wanted.machine)
    ran_before = ever_ran is not None and await ever_ran()
    return view(wanted.machine, lesson, None, starting=starting, ran_before=ran_before, exactly=wanted.exactly)


def _view_of(infos: list[SessionInfo], wanted: Wanted, lesson: Lesson, *, kept: bool = False) -> SessionView:
    on_it = next((each for each in infos if _machine_of(each) == wanted.machine), None)
    shown = on_it if wanted.exactly else _liveliest(infos, wanted.machine)
    others = [each for each in infos if each is not shown]
    return view(wanted.machine, lesson, shown, others=others, kept=kept, exactly=wanted.exactly)


async def warm_up(runner: RunnerClient, learner: str, lesson: Lesson, wanted: Wanted) -> SessionView:
    """Ask for a session on the ``wanted`` machine, so that it is there when Run is pressed."""
    chosen = wanted.machine
    try:
        await runner.ask_session(session_id(learner, lesson.key, chosen), session_spec(learner, chosen))
    except (RunnerUnavailable, Refused):
        return down(lesson, chosen)
    return await look(runner, learner, lesson, wanted)


async def restart(runner: RunnerClient, learner: str | None, lesson: Lesson, wanted: Wanted) -> SessionView:
    """Give the session a fresh kernel, or, unless one is wanted exactly, every session of the lesson."""
    return await _each(runner, learner, lesson, wanted, runner.restart)


async def keep(runner: RunnerClient, learner: str | None, lesson: Lesson, wanted: Wanted) -> SessionView:
    """The learner is still there: the idle time restarts in every session of the lesson."""
    return await _each(runner, learner, lesson, wanted, runner.keep, kept=True)


async def idle_sessions(runner: RunnerClient, learner: str | None, lesson: Lesson) -> list[str]:
    """The learner's sessions of the lesson that may be evicted. Raises RunnerError."""
    return [info.id for info in await _infos(runner, learner, lesson) if info.state is SessionState.idle]


async def until_gone(runner: RunnerClient, bus: Bus, names: Sequence[str]) -> AsyncIterator[list[Frame]]:
    """Yield one frame when one of these sessions is gone, or when the runner cannot tell any more."""
    waiting = [asyncio.ensure_future(runner.gone(name)) for name in names]
    try:
        with bus.listen("sessions") as bell:
            while not bus.closed:
                ring = asyncio.ensure_future(bell.wait(_LONGEST_POLL_S))
                try:
                    done, _ = await asyncio.wait({*waiting, ring}, return_when="FIRST_COMPLETED")
                finally:
                    ring.cancel()
                if done - {ring}:
                    yield [Frame("changed", "{}")]
                    return
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def interrupt(runner: RunnerClient, learner: str | None, lesson: Lesson, wanted: Wanted) -> SessionView:
    """Stop what runs and what waits in the session, or, unless one is wanted exactly, in all of the lesson."""
    return await _each(runner, learner, lesson, wanted, runner.interrupt)


def view(
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
    evicted = next((each for each in heard if each.gone_because == "gave-way" and each.runs > 0), None)
    about = ends or evicted or info
    notice = _notice(about, ending=ends is not None, kept=kept, lost=info is None and ran_before)
    if about is not info and about is not None:
        notice = f"{_name(about)}: {notice}"
    polls = [_poll_s(each) for each in heard if each.state is SessionState.idle]
    return SessionView(
        lesson=lesson.key,
        state=state,
        words=_words(info, starting=starting),
        topology=topology,
        topology_words=topology_words(topology, real=info is not None and info.real),
        keras=info.keras if info is not None else chosen.keras,
        members=members_of(info) if info is not None else (),
        kernels=_kernels(heard),
        key=key_of(info) if info is not None else "",
        others=tuple(OtherSession(each.topology, each.keras, _name(each), session_words(each)) for each in others),
        exactly=exactly,
        position=info.position if info is not None else None,
        notice=notice,
        ending=ends is not None or evicted is not None,
        can_keep=ends is not None,
        can_interrupt=state == "busy",
        can_restart=state in ("idle", "busy"),
        poll_s=min((*polls, *([_POLL_S[state]] if state in _POLL_S else ())), default=None),
    )


def _name(info: SessionInfo) -> str:
    return f"{topology_words(info.topology, real=info.real)} · Keras {info.keras}"


def _machine_of(info: SessionInfo) -> Machine:
    return Machine(info.topology, info.keras)


def _words(info: SessionInfo | None, *, starting: bool) -> str:
    if starting:
        return gettext("The runner is starting")
    if info is not None and info.state is SessionState.gone:
        return gettext("Ended")  # the notice says the rest
    return session_words(info)


def _ends_soon(info: SessionInfo) -> bool:
    """A session in which nothing ran has nothing to lose: its end needs no warning."""
    return info.ends_in_s is not None and info.ends_in_s <= _WARN_S and info.runs > 0


def _notice(info: SessionInfo | None, *, ending: bool, kept: bool, lost: bool) -> str:
    if lost:
        return gettext("The variables of earlier runs are gone. Run the cells that the next one needs first.")
    if info is None:
        return ""
    if info.state is SessionState.gone:
        return gettext(_GONE).format(how=session_words(info)) if info.runs else session_words(info)
    if info.ends_in_s is None:
        return ""
    words = _KEPT if kept and not ending else _WARNING if ending else ""
    return gettext(words).format(time=_time_words(info.ends_in_s)) if words else ""


def _time_words(seconds: float) -> str:
    """Whole minutes, so that a warning that is read aloud changes seldom."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return gettext("less than a minute")
    return ngettext("%(num)s minute", "%(num)s minutes", minutes) % {"num": number(minutes)}


def _poll_s(info: SessionInfo) -> int:
    """Seldom while the end is far, in time for the warning, often at the end."""
    if info.ends_in_s is None:
        return _LONGEST_POLL_S
    if info.ends_in_s > _WARN_S:
        return max(1, min(_LONGEST_POLL_S, int(info.ends_in_s - _WARN_S) + 1))
    return 10 if info.ends_in_s > 30 else 3


def _liveliest(infos: list[SessionInfo], chosen: Machine) -> SessionInfo:
    """The liveliest; of several alike the chosen one, or else that which ends first."""

    def rank(info: SessionInfo) -> tuple[int, bool, float]:
        mine = _machine_of(info) == chosen
        return _LIVELIEST.index(info.state), not mine, info.ends_in_s or 0.0

    return min(infos, key=rank)


def down(lesson: Lesson, chosen: Machine) -> SessionView:
    """The panel while the supervisor does not answer."""
    return SessionView(
        lesson=lesson.key,
        state="down",
        words=gettext("The runner is starting or not reachable. This page tries again by itself."),
        topology=chosen.topology,
        topology_words=topology_words(chosen.topology),
        keras=chosen.keras,
        kernels=None,
        poll_s=_POLL_S["down"],
    )


async def _each(
    runner: RunnerClient,
    learner: str | None,
    lesson: Lesson,
    wanted: Wanted,
    act: Callable[[str], Awaitable[SessionInfo]],
    *,
    kept: bool = False,
) -> SessionView:
    meant = [wanted.machine] if wanted.exactly and not kept else machines(lesson)
    try:
        for machine in meant if learner else ():
            with suppress(NotKnown):
                await act(session_id(learner or "", lesson.key, machine))
        infos = await _infos(runner, learner, lesson)
    except (RunnerUnavailable, Refused):
        return down(lesson, wanted.machine)
    if not infos:
        return view(wanted.machine, lesson, None, exactly=wanted.exactly)
    return _view_of(infos, wanted, lesson, kept=kept)


def _kernels(infos: list[SessionInfo]) -> tuple[str, ...]:
    return tuple(info.kernel_id for info in infos if info.kernel_id)


async def _infos(runner: RunnerClient, learner: str | None, lesson: Lesson) -> list[SessionInfo]:
    async def info(machine: Machine) -> SessionInfo | None:
        with suppress(NotKnown):
            return await runner.session(session_id(learner or "", lesson.key, machine))
        return None

    found = await asyncio.gather(*map(info, machines(lesson) if learner else ()))
    return [each for each in found if each is not None]
