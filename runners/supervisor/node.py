"""One machine that runs learner code: its sessions, the queue before them, its runs, its zygotes and its pool."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from pathlib import Path

import structlog

from runners.config.settings import MiB, RunnerSettings, to_environment
from runners.datasets.background_prepare import make_folder, prepare_in_background
from runners.devices.allocation import DeviceAllocation, UsableDevices
from runners.devices.device_pool import DevicePool
from runners.diagnostics.isolation_checks import UNSAFE_MESSAGE
from runners.kernels.kernel_pool import KernelPool
from runners.kernels.kernel_provider import KernelProvider
from runners.kernels.zygote_client import ZygoteClient
from runners.sandbox import cgroups
from runners.sandbox.handle import SandboxGone
from runners.sandbox.machine_limits import available_resources
from runners.sandbox.user_pool import UserPool, claim_users, session_users
from runners.supervisor.capacity import session_capacity
from runners.supervisor.failure_injection import check_failure, check_result
from runners.supervisor.judging import JudgementSession
from runners.supervisor.leases import LeaseManager
from runners.supervisor.run_log import RunLog
from runners.supervisor.scheduling import (
    BusySession,
    IdleSession,
    QueuedSession,
    choose_evictions,
    estimate_wait_s,
    queue_order,
)
from runners.supervisor.session import Session
from runners.wire.protocol import (
    Health,
    InjectedFailure,
    Introspection,
    IntrospectionRequest,
    KerasVersion,
    LibraryPatches,
    LimitName,
    Outcome,
    OwnedSessions,
    OwnersSessions,
    ReachedLimit,
    RunAccepted,
    RunRequest,
    SessionInfo,
    SessionSpec,
    SessionState,
    Topology,
)

log = structlog.get_logger()

_FOLDER = "lockstep-node-"
_SWEEP_S = 15.0
_KEEP_STORED_S = 60.0
"""A finished run whose events are all stored is forgotten after this long; a repeated request still finds it."""
_KEEP_UNSTORED_S = 24 * 3600.0
_MOST_RUNS = 20_000
_QUEUED_PER_PLACE = 10
_EVICT_EVERY_S = 0.25
_MOST_JUDGEMENTS = 3
"""Of one learner, queued and in progress."""
_LONGEST_ASKED_S = 120.0
"""A session that was requested ahead of time waits at most this long for a seat."""
_REMEMBERED_RUNS = 50
"""The number of recent runs on which the estimated wait is based."""
_KEEP_GONE_S = 3600.0
"""For this long, a returning learner is told what happened to their session."""


class UnknownSessionOrRun(Exception):
    """There is no such session or run."""


class RequestDeclined(Exception):
    """A request cannot be carried out; ``code`` is stable, ``status`` the HTTP status, ``limit`` the limit reached."""

    def __init__(self, status: int, code: str, message: str, limit: ReachedLimit | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.limit = status, code, limit


class Node:
    """The whole state of the supervisor. Used from one event loop."""

    def __init__(self, settings: RunnerSettings, first_user: int | None = None) -> None:
        """``first_user`` replaces the ``service_uid`` if its users are claimed already. Raises NoUserRange."""
        self._told = to_environment(settings)
        self._seats = session_capacity(settings, available_resources())
        settings = settings.model_copy(update={"max_sessions": self._seats.count})
        if first_user is None:
            settings = claim_users(settings)
        else:
            settings = settings.model_copy(update={"service_uid": first_user})
        self._settings = settings
        self._sessions: dict[str, Session] = {}
        self._dying: set[Session] = set()
        """Sessions whose name another session has taken over: each keeps its seat until its sandbox is gone."""
        self._queue: list[Session] = []
        """The queue in order of arrival; ``_in_turn`` has the order in which it is served."""
        self._recent_runs_s: deque[float] = deque(maxlen=_REMEMBERED_RUNS)
        self._dropped = 0
        self._memory_kills = 0
        self._runs: dict[str, RunLog] = {}
        self._held_bytes = 0
        """The bytes held for all runs."""
        self._zygotes: dict[tuple[KerasVersion, bool], ZygoteClient] = {}
        """By Keras version and whether they are cold, for kernels with a real TPU."""
        self._groups = cgroups.detect()
        self._users = UserPool(session_users(settings))
        _sweep_folders()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        self._devices = DevicePool.of_this_machine(settings.devices, settings.sessions_per_gpu)
        self._pool = KernelPool(settings.warm_kernels, self._zygote, (settings.warm_topology, settings.warm_keras[0]))
        self._kernel_provider = KernelProvider(self._pool, self._devices, self._zygote, settings.warm_keras)
        no_devices = DevicePool("simulate", 1, UsableDevices())
        self._kernels_for_judging = KernelProvider(self._pool, no_devices, self._zygote, settings.warm_keras)
        """Judgements simulate their devices: checks compare exact values, and the learner may hold the only GPU."""
        self.leases = LeaseManager(self._zygote, self._has_room, self._admit, settings, self._devices)
        self._tasks: set[asyncio.Task[None]] = set()

    # --- lifecycle -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the first zygote and the pool; meanwhile, unpack data sets if the settings say so."""
        data_sets = (self._settings.data_dir / "datasets").absolute()
        make_folder(data_sets)
        if self._settings.prepare_data_sets:
            self._spawn(prepare_in_background(data_sets))
        for keras in self._settings.warm_keras:
            self._zygote(keras)
        self._pool.keep()
        self._spawn(self._sweep())
        self._spawn(self._keep_evicting())

    async def close(self) -> None:
        """End every session, zygote and kernel; leave nothing on the machine."""
        for session in list(self._sessions.values()):
            session.end("supervisor-stopped")
        for task in list(self._tasks):
            task.cancel()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(s.gone.wait() for s in self._all())), 10)
        await self.leases.close()
        await self._pool.close()
        for zygote in self._zygotes.values():
            await zygote.close()
        self._groups.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def health(self) -> Health:
        """Report the state of the node."""
        zygote = self._zygote(self._settings.warm_keras[0])
        trouble = zygote.trouble or self._pool.trouble
        return Health(
            status="broken" if trouble else "ready" if zygote.ready else "starting",
            detail=trouble or "",
            sessions=self._active(),
            max_sessions=self._settings.max_sessions,
            queued=len(self._queue),
            warm_kernels=len(self._pool),
            longest_wait_s=max(
                (time.monotonic() - s.waiting[0].accepted for s in self._queue if s.waiting), default=0.0
            ),
            memory_kills=self._memory_kills,
            dropped_messages=self._dropped + sum(s.dropped for s in self._all() if not s.gone.is_set()),
            safeguards=[*zygote.safeguards, self._seats.safeguard(self._settings.sessions_per_learner)]
            if zygote.safeguards
            else [],
            untrusted_users=self._settings.untrusted_users,
            refuses=self._refuses(self._settings.warm_keras[0]),
            settings=self._told,
        )

    def patches(self) -> LibraryPatches:
        """The patches to other libraries: each zygote knows those for the Keras version that it has imported."""
        return LibraryPatches.merged(zygote.patches for zygote in self._zygotes.values())

    def mark_users_untrusted(self) -> None:
        """From now on, run no code unless every essential isolation layer is in force.

        This cannot be undone: what untrusted users leave behind may outlast their access.
        """
        if self._settings.untrusted_users:
            return
        self._settings = self._settings.model_copy(update={"untrusted_users": True})
        for zygote in self._zygotes.values():
            zygote.mark_users_untrusted()
        self.leases.mark_users_untrusted()

    # --- sessions ---------------------------------------------------------------------------------------------

    def request_session(self, name: str, spec: SessionSpec) -> SessionInfo:
        """Find or create the session. Raises RequestDeclined if it exists with another topology."""
        return self._info(self._ask(name, spec))

    def owned_sessions(self) -> OwnedSessions:
        """The sessions of learners; those of the judge end by themselves."""
        in_turn = self._in_turn()
        positions = {session.name: number for number, session in enumerate(in_turn, 1)}
        return OwnedSessions(sessions=tuple(s.owned(positions.get(s.name)) for s in self._of_learners()))

    async def measured_sessions(self) -> OwnedSessions:
        """The sessions of learners with the memory of each. Reading it takes milliseconds for each of its processes."""
        memory = {session.name: await session.memory_bytes() for session in self._of_learners()}
        sessions = self.owned_sessions().sessions
        measured = tuple(s.model_copy(update={"memory_bytes": memory.get(s.id)}) for s in sessions)
        return OwnedSessions(sessions=measured)

    def sessions_of(self, owner: str) -> OwnersSessions:
        """One owner's sessions, also those that have ended and are still known."""
        theirs = (s for s in self._sessions.values() if s.spec.owner == owner and not _judges(s))
        return OwnersSessions(sessions=tuple(map(self._info, theirs)))

    def _of_learners(self) -> list[Session]:
        return [s for s in self._sessions.values() if not s.over and not _judges(s)]

    def session(self, name: str) -> SessionInfo:
        """Look at a session. Raises UnknownSessionOrRun."""
        return self._info(self._session(name))

    def interrupt(self, name: str) -> SessionInfo:
        """Stop all running and queued runs of a session. Raises UnknownSessionOrRun."""
        self._session(name).interrupt()
        return self.session(name)

    def restart(self, name: str) -> SessionInfo:
        """Give a session a fresh kernel. Raises UnknownSessionOrRun."""
        self._session(name).restart()
        return self.session(name)

    def keep(self, name: str) -> SessionInfo:
        """Keep a session that is still in use: restart its idle time. Raises UnknownSessionOrRun."""
        self._session(name).keep()
        return self.session(name)

    async def inject_failure(self, name: str, failure: InjectedFailure) -> SessionInfo:
        """Inject a failure into one process of a session's cluster; the result shows its effect.

        Raises:
            UnknownSessionOrRun: there is no such session.
            RequestDeclined: it is not a cluster, has no such process, or the process is not in a suitable state.
        """
        session = self._session(name)
        if refusal := check_failure(failure, Topology.parse(session.spec.topology), session.members):
            raise RequestDeclined(refusal.status, refusal.code, refusal.message)
        try:
            result = await session.inject_failure(failure)
        except SandboxGone:
            raise RequestDeclined(409, "not-started", f"{failure.task} no longer exists; run a cell first") from None
        if refusal := check_result(failure, result):
            raise RequestDeclined(refusal.status, refusal.code, refusal.message)
        return self.session(name)

    async def introspect(self, name: str, asked: IntrospectionRequest) -> Introspection:
        """Ask a session's kernel about code, unless it is busy. Raises UnknownSessionOrRun."""
        return await self._session(name).introspect(asked)

    def until_gone(self, name: str, patience_s: float) -> AsyncIterator[SessionInfo | None]:
        """Yield None at intervals, then the session's state once it is gone. Raises UnknownSessionOrRun at once."""
        return self._until_gone(self._session(name), patience_s)

    async def _until_gone(self, session: Session, patience_s: float) -> AsyncIterator[SessionInfo | None]:
        while not session.gone.is_set():
            try:
                await asyncio.wait_for(session.gone.wait(), patience_s)
            except TimeoutError:
                yield None
        yield session.info()

    async def end(self, name: str) -> None:
        """End a session and wait for it. Raises UnknownSessionOrRun."""
        session = self._session(name)
        session.end("ended")
        await session.gone.wait()

    def _session(self, name: str) -> Session:
        try:
            return self._sessions[name]
        except KeyError:
            raise UnknownSessionOrRun(f"no session {name}") from None

    def _info(self, session: Session) -> SessionInfo:
        if session not in self._queue:
            return session.info()
        position = self._in_turn().index(session) + 1
        return session.info(position, self._wait_s(position) if session.waiting else None)

    def _all(self) -> list[Session]:
        return [*self._sessions.values(), *self._dying]

    def _active(self) -> int:
        return sum(s.state != SessionState.queued and not s.gone.is_set() for s in self._all()) + len(self.leases)

    def _has_room(self) -> bool:
        return self._active() < self._settings.max_sessions

    def _refuses(self, keras: KerasVersion) -> str:
        """Tell the operator why no code is run. One kind of zygote without its isolation layers is enough."""
        self._zygote(keras)
        return next((zygote.refuses for zygote in self._zygotes.values() if zygote.refuses), "")

    def _ask(self, name: str, spec: SessionSpec) -> Session:
        self._check_isolation(spec)
        session = self._sessions.get(name)
        if session and not session.over:
            if session.spec != spec:
                if session.spec.owner != spec.owner:
                    raise UnknownSessionOrRun(f"no session {name}")
                raise RequestDeclined(
                    409, "other-machine", f"session {name} is a {session.spec.topology}; restart to change"
                )
            return session
        self._check_queue()
        self._make_room_for(spec.owner)
        if session and not session.gone.is_set():
            self._dying.add(session)
        limits, idle_s = self._settings.limits, self._settings.idle_s
        return self._enqueue(Session(name, spec, limits, idle_s, self._kernel_provider, self._recent_runs_s.append))

    def _ask_for_judgement(self, name: str, spec: SessionSpec) -> JudgementSession:
        """A session for one judgement. It is not one of those that a learner may have, and ends none of them."""
        self._check_isolation(spec)
        if name in self._sessions:
            raise RequestDeclined(409, "session-exists", f"session {name} exists; a judgement has one of its own")
        self._check_queue()
        theirs = [s for s in self._sessions.values() if _judges(s) and s.spec.owner == spec.owner and not s.over]
        if len(theirs) >= _MOST_JUDGEMENTS:
            message = f"{len(theirs)} of your submissions are already waiting to be judged"
            raise RequestDeclined(429, "too-many-runs", message, _count("runs_per_session", _MOST_JUDGEMENTS))
        session = JudgementSession(name, spec, self._settings.limits, self._settings.idle_s, self._kernels_for_judging)
        self._enqueue(session)
        return session

    def _check_isolation(self, spec: SessionSpec) -> None:
        if self._refuses(spec.keras):
            raise RequestDeclined(403, "unsafe", UNSAFE_MESSAGE)

    def _check_queue(self) -> None:
        if len(self._queue) >= _QUEUED_PER_PLACE * self._settings.max_sessions:
            raise RequestDeclined(
                429,
                "node-full",
                "too many sessions are already waiting on this node; try again later",
                _count("sessions", self._settings.max_sessions),
            )

    def _enqueue(self, session: Session) -> Session:
        self._sessions[session.name] = session
        self._queue.append(session)
        self._zygote(session.spec.keras)
        self._spawn(self._bury(session))
        self._admit()
        return session

    def _make_room_for(self, owner: str) -> None:
        """If a learner has the most sessions allowed, end the one that has been idle longest."""
        theirs = [s for s in self._sessions.values() if s.spec.owner == owner and not s.over and not _judges(s)]
        if len(theirs) < self._settings.sessions_per_learner:
            return
        idle = [s for s in theirs if s.state == SessionState.idle]
        if not idle:
            idle = [s for s in theirs if s.state == SessionState.queued and not s.waiting]
        if not idle:
            most = self._settings.sessions_per_learner
            message = f"all of your {most} sessions are busy; stop one or wait"
            raise RequestDeclined(429, "too-many-sessions", message, _count("sessions_per_learner", most))
        max(idle, key=lambda s: s.idle_s).end("replaced")

    def _admit(self) -> None:
        while self._has_room() and (session := next(filter(self._may_begin, self._in_turn()), None)):
            self._queue.remove(session)
            session.admit()

    def _may_begin(self, session: Session) -> bool:
        """Whether a queued session waits for room only: a few judgements at a time, and of one learner one."""
        judging = [s for s in self._sessions.values() if _judges(s) and s not in self._queue and not s.gone.is_set()]
        return not _judges(session) or (
            len(judging) < self._settings.max_judgements and all(s.spec.owner != session.spec.owner for s in judging)
        )

    def _in_turn(self) -> list[Session]:
        """The queue in the order in which it is served."""
        living = (s for s in self._sessions.values() if s not in self._queue and not s.over)
        held = Counter(session.spec.owner for session in living)
        by_name = {session.name: session for session in self._queue}
        waiters = [QueuedSession(s.name, s.spec.owner, bool(s.waiting)) for s in self._queue]
        return [by_name[name] for name in queue_order(waiters, held)]

    def _standing(self) -> tuple[list[IdleSession], list[BusySession]]:
        """The sessions that hold a seat and are not about to end."""
        living = [s.standing() for s in self._sessions.values() if s not in self._queue and not s.over]
        return [s for s in living if isinstance(s, IdleSession)], [s for s in living if isinstance(s, BusySession)]

    def _being_freed(self) -> int:
        """The number of seats whose sessions are ending."""
        return sum(s.over and s.state != SessionState.queued and not s.gone.is_set() for s in self._all())

    def _wait_s(self, position: int) -> float | None:
        idle, busy = self._standing()
        return estimate_wait_s(
            position, idle, busy, self._recent_runs_s, self._settings.eviction_grace_s, free=self._being_freed()
        )

    def _evict(self) -> None:
        """Evict idle sessions while somebody who pressed Run waits for a seat."""
        wanted = sum(bool(s.waiting) and self._may_begin(s) for s in self._queue) - self._being_freed()
        for name in choose_evictions(self._standing()[0], wanted, self._settings.eviction_grace_s):
            self._sessions[name].end("evicted")

    async def _keep_evicting(self) -> None:
        """Check again from time to time, because idle sessions become evictable as time passes."""
        while True:
            await asyncio.sleep(_EVICT_EVERY_S)
            if self._queue:
                for session in [s for s in self._queue if not s.waiting and s.idle_s > _LONGEST_ASKED_S]:
                    session.end("idle")
                self._evict()

    async def _bury(self, session: Session) -> None:
        await session.gone.wait()
        self._dying.discard(session)
        self._dropped += session.dropped
        if session in self._queue:
            self._queue.remove(session)
        self._admit()

    # --- runs -------------------------------------------------------------------------------------------------

    def submit(self, request: RunRequest) -> RunAccepted:
        """Accept a run. Idempotent by id.

        Raises:
            UnknownSessionOrRun: the session belongs to somebody else.
            RequestDeclined: the session or the node has too much to do.
        """
        known = self._runs.get(request.id)
        if known:
            return RunAccepted(id=request.id, session=self.session(known.request.session))
        if len(self._runs) >= _MOST_RUNS or self._held_bytes >= self._settings.unstored_mb * MiB:
            raise RequestDeclined(429, "node-full", "this node has too many unfinished or unstored runs")
        session: Session
        if request.judgement:
            session = self._ask_for_judgement(request.session, request.spec)
        else:
            session = self._ask(request.session, request.spec)
        if len(session.waiting) >= self._settings.runs_per_session:
            message = f"{len(session.waiting)} runs are already waiting in this session"
            raise RequestDeclined(
                429, "too-many-runs", message, _count("runs_per_session", self._settings.runs_per_session)
            )
        run = RunLog(request, self._settings.limits, self._hold, self._note_end)
        self._runs[request.id] = run
        ahead = session.submit(run)
        self._evict()
        return RunAccepted(id=request.id, session=self._info(session), ahead=ahead)

    def _hold(self, size: int) -> None:
        self._held_bytes += size

    def _note_end(self, run: RunLog) -> None:
        if run.outcome == Outcome.memory:
            self._memory_kills += 1
            log.warning("run ended: it exceeded its memory limit", run=run.request.id)

    def run(self, name: str) -> RunLog:
        """Find a run. Raises UnknownSessionOrRun."""
        try:
            return self._runs[name]
        except KeyError:
            raise UnknownSessionOrRun(f"no run {name}") from None

    def stop(self, name: str) -> None:
        """Interrupt a run or remove it from the queue; a finished one stays as it is. Raises UnknownSessionOrRun."""
        run = self.run(name)
        with contextlib.suppress(UnknownSessionOrRun):
            self._session(run.request.session).stop(run)

    # --- upkeep -----------------------------------------------------------------------------------------------

    def _zygote(self, keras: KerasVersion, allocation: DeviceAllocation | None = None) -> ZygoteClient:
        """The zygote for a Keras version and these real devices, started when first requested."""
        key = keras, bool(allocation and allocation.tpu)
        if key not in self._zygotes:
            self._zygotes[key] = ZygoteClient(
                self._settings, keras, self._folder, self._groups, self._users, self._devices.found, cold=key[1]
            )
            self._zygotes[key].keep()
        return self._zygotes[key]

    def _spawn(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            self._groups.sweep()
            self._pool.sweep()
            now = time.monotonic()
            for name, run in list(self._runs.items()):
                keep = _KEEP_STORED_S if run.acknowledged >= run.last else _KEEP_UNSTORED_S
                if run.finished and now - run.finished_at > keep:
                    del self._runs[name]
                    self._held_bytes -= run.held_bytes
            known = {run.request.session for run in self._runs.values()}
            for name, session in list(self._sessions.items()):
                if session.gone.is_set() and name not in known and now - session.gone_at > _KEEP_GONE_S:
                    del self._sessions[name]


def _judges(session: Session) -> bool:
    return isinstance(session, JudgementSession)


def _count(name: LimitName, value: int) -> ReachedLimit:
    return ReachedLimit(name=name, value=value, unit="count")


def _sweep_folders() -> None:
    """Remove the folders of killed supervisors, even if another process now has their process ID."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*"):
        pid = folder.name.removeprefix(_FOLDER).split("-")[0]
        gone = pid == str(os.getpid()) or not Path(f"/proc/{pid}").exists()
        if pid.isdigit() and gone and folder.stat().st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
