"""A supervisor for tests: it speaks the whole wire over a real Unix socket, but executes nothing.

The test says what happens in a run (``say``, ``finish``); everything else is as the real one does it: numbered events,
streams that stay open, forgetting what was acknowledged, ids that may be submitted twice, a restart that knows nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from runners.wire.protocol import (
    EVENT_ADAPTER,
    UNTRUSTED_USERS_HEADER,
    Ack,
    Capability,
    Event,
    Health,
    HostSurvey,
    InjectedFailure,
    Introspection,
    IntrospectionRequest,
    LibraryPatches,
    OwnedSession,
    OwnedSessions,
    OwnersSessions,
    Refusal,
    RunAccepted,
    RunRequest,
    Safeguard,
    SessionInfo,
    SessionSpec,
    SessionState,
    WireModel,
)
from tests.factories.http_server import HttpServer

_PATIENCE_S = 60.0
"""How long a command may take to start and submit its run on a busy machine."""


@dataclass
class ScriptedRun:
    """One run: its request, and the events that have not been acknowledged."""

    request: RunRequest
    events: list[Event] = field(default_factory=list)
    last_seq: int = 0
    acknowledged: int = 0
    stopped: bool = False
    finished: bool = False
    news: asyncio.Condition = field(default_factory=asyncio.Condition)


class ScriptedSupervisor:
    """Start it, stop it, break its streams; ``restart`` forgets everything, as a crash does."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.runs: dict[str, ScriptedRun] = {}
        self.sessions: dict[str, SessionInfo] = {}
        self.submitted: list[str] = []
        self.untrusted: list[bool] = []
        """Of each submission, whether it said that untrusted users can cause it."""
        self.restarted: list[str] = []
        self.interrupted: list[str] = []
        self.kept: list[str] = []
        self.failures: list[tuple[str, InjectedFailure]] = []
        self.questions: list[IntrospectionRequest] = []
        self.introspection = Introspection(state="answered")
        self.health = Health(
            status="ready", max_sessions=4, safeguards=[Safeguard(name="seccomp", in_force=True, detail="on")]
        )
        self.machine = HostSurvey(capabilities=[Capability(name="kernel", good=True, detail="Linux 6")])
        self.patches = LibraryPatches()
        self.refuse: tuple[int, Refusal] | None = None
        self.session_state = SessionState.idle
        self.memory_bytes: int | None = None
        self.answer: list[str] | None = None
        """If set, every run prints these and ends ``ok`` by itself."""
        self.garbled: set[int] = set()
        """Numbers of events that are left out of streams, as no real supervisor would."""
        self._submission = asyncio.Condition()
        self._server: HttpServer | None = None
        self._cut = asyncio.Event()
        self._sessions_changed = asyncio.Condition()
        self._awaited: set[str] = set()
        self._owners: dict[str, str] = {}
        self.lists = self.looks = 0
        """How often the sessions of one owner were requested, and single sessions."""

    # --- what tests do ---

    async def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self._cut = asyncio.Event()
        config = uvicorn.Config(
            self._app(),
            uds=str(self.socket),
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=60,  # as the real one
        )
        self._server = HttpServer(config)
        await self._server.start()

    async def stop(self) -> None:
        """Stop: streams break, connections are refused."""
        if self._server is None:
            return
        stopping = asyncio.create_task(self._server.stop())
        while not stopping.done():
            await self.break_streams()
            await asyncio.wait({stopping}, timeout=0.02)
        self.socket.unlink(missing_ok=True)
        self._server = None

    async def restart(self) -> None:
        """Crash and restart without any memory."""
        await self.stop()
        self.runs.clear()
        self.sessions.clear()
        await self.start()

    async def break_streams(self) -> None:
        """End every open stream in the middle."""
        self._cut.set()
        self._cut = asyncio.Event()
        for run in list(self.runs.values()):  # another may be submitted meanwhile
            async with run.news:
                run.news.notify_all()
        async with self._sessions_changed:
            self._sessions_changed.notify_all()

    async def run(self, run_id: str | None = None) -> ScriptedRun:
        """The run of that id, or the latest, once it was submitted."""
        async with asyncio.timeout(_PATIENCE_S), self._submission:
            await self._submission.wait_for(lambda: self.runs and (run_id is None or run_id in self.runs))
        return self.runs[run_id or self.submitted[-1]]

    async def say(self, run: ScriptedRun, *texts: str) -> None:
        for text in texts:
            await self.emit(run, kind="text", stream="stdout", text=text)

    async def finish(self, run: ScriptedRun, outcome: str = "ok", **more: Any) -> None:
        await self.emit(run, kind="finished", outcome=outcome, **more)

    async def change(self, name: str, **fields: Any) -> None:
        """Change a session; clients that wait for its end are notified when it is gone."""
        self.sessions[name] = self.sessions[name].model_copy(update=fields)
        async with self._sessions_changed:
            self._sessions_changed.notify_all()

    async def asked_for_the_end(self, name: str) -> None:
        """Return once somebody waits for the end of that session."""
        async with self._sessions_changed:
            await self._sessions_changed.wait_for(lambda: name in self._awaited)

    async def session_ended(self, name: str) -> None:
        """Return once somebody has ended that session."""
        async with self._sessions_changed:
            await self._sessions_changed.wait_for(lambda: name not in self.sessions)

    async def emit(self, run: ScriptedRun, **event: Any) -> None:
        async with run.news:
            run.last_seq += 1
            run.finished = event["kind"] == "finished"
            run.events.append(EVENT_ADAPTER.validate_python({"seq": run.last_seq, "at_ms": run.last_seq, **event}))
            run.news.notify_all()

    # --- the wire ---

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/health", self._health),
                Route("/host", self._machine),
                Route("/patches", self._patches),
                Route("/sessions", self._list, methods=["GET"]),
                Route("/owners/{id}/sessions", self._list_of, methods=["GET"]),
                Route("/sessions/{id}", self._ask, methods=["PUT"]),
                Route("/sessions/{id}", self._session, methods=["GET"]),
                Route("/sessions/{id}", self._end, methods=["DELETE"]),
                Route("/sessions/{id}/interrupt", self._interrupt, methods=["POST"]),
                Route("/sessions/{id}/restart", self._restart, methods=["POST"]),
                Route("/sessions/{id}/keep", self._keep, methods=["POST"]),
                Route("/sessions/{id}/gone", self._gone, methods=["GET"]),
                Route("/sessions/{id}/failures", self._fault, methods=["POST"]),
                Route("/sessions/{id}/introspect", self._introspect, methods=["POST"]),
                Route("/runs", self._submit, methods=["POST"]),
                Route("/runs/{id}/events", self._events),
                Route("/runs/{id}/ack", self._ack, methods=["POST"]),
                Route("/runs/{id}/stop", self._stop, methods=["POST"]),
            ]
        )

    async def _health(self, _: Request) -> Response:
        return _json(self.health)

    async def _machine(self, _: Request) -> Response:
        return _json(self.machine)

    async def _patches(self, _: Request) -> Response:
        return _json(self.patches)

    async def _ask(self, request: Request) -> Response:
        if self.refuse is not None:
            return _json(self.refuse[1], self.refuse[0])
        return _json(
            self._make_session(request.path_params["id"], SessionSpec.model_validate_json(await request.body()))
        )

    def _make_session(self, name: str, spec: SessionSpec) -> SessionInfo:
        position = 3 if self.session_state is SessionState.queued else None
        info = SessionInfo(
            id=name, state=self.session_state, topology=spec.topology, keras=spec.keras, position=position
        )
        self._owners[name] = spec.owner
        return self.sessions.setdefault(name, info)

    async def _list(self, _: Request) -> Response:
        busy = {run.request.session for run in self.runs.values() if not run.finished}
        theirs = [
            OwnedSession(
                id=name,
                owner=self._owners[name],
                state=SessionState.busy if name in busy else info.state,
                topology=info.topology,
                keras=info.keras,
                position=info.position,
                memory_bytes=self.memory_bytes,
            )
            for name, info in self.sessions.items()
        ]
        return _json(OwnedSessions(sessions=tuple(theirs)))

    async def _list_of(self, request: Request) -> Response:
        self.lists += 1
        owner = request.path_params["id"]
        theirs = (info for name, info in self.sessions.items() if self._owners.get(name, owner) == owner)
        return _json(OwnersSessions(sessions=tuple(theirs)))

    async def _session(self, request: Request) -> Response:
        self.looks += 1
        info = self.sessions.get(request.path_params["id"])
        return _json(info) if info else _unknown()

    async def _gone(self, request: Request) -> Response:
        name = request.path_params["id"]
        return StreamingResponse(self._until_gone(name, self._cut)) if name in self.sessions else _unknown()

    async def _until_gone(self, name: str, cut: asyncio.Event) -> AsyncIterator[str]:
        self._awaited.add(name)
        async with self._sessions_changed:
            self._sessions_changed.notify_all()
            over = (SessionState.gone, None)
            await self._sessions_changed.wait_for(
                lambda: cut.is_set() or getattr(self.sessions.get(name), "state", None) in over
            )
        if cut.is_set():
            raise ConnectionResetError("the test broke the stream")
        yield self.sessions[name].model_dump_json() + "\n"

    async def _end(self, request: Request) -> Response:
        async with self._sessions_changed:
            ended = self.sessions.pop(request.path_params["id"], None)
            self._sessions_changed.notify_all()
        return Response(status_code=204) if ended else _unknown()

    async def _interrupt(self, request: Request) -> Response:
        return await self._noted(request, self.interrupted)

    async def _restart(self, request: Request) -> Response:
        return await self._noted(request, self.restarted)

    async def _keep(self, request: Request) -> Response:
        name = request.path_params["id"]
        if name in self.sessions:
            self.sessions[name] = self.sessions[name].model_copy(update={"ends_in_s": 1200.0})
        return await self._noted(request, self.kept)

    async def _fault(self, request: Request) -> Response:
        if self.refuse is not None:
            return _json(self.refuse[1], self.refuse[0])
        if request.path_params["id"] in self.sessions:
            self.failures.append((request.path_params["id"], InjectedFailure.model_validate_json(await request.body())))
        return await self._session(request)

    async def _introspect(self, request: Request) -> Response:
        if request.path_params["id"] not in self.sessions:
            return _unknown()
        self.questions.append(IntrospectionRequest.model_validate_json(await request.body()))
        return _json(self.introspection)

    async def _noted(self, request: Request, notes: list[str]) -> Response:
        if request.path_params["id"] in self.sessions:
            notes.append(request.path_params["id"])
        return await self._session(request)

    async def _submit(self, request: Request) -> Response:
        if self.refuse is not None:
            return _json(self.refuse[1], self.refuse[0])
        asked = RunRequest.model_validate_json(await request.body())
        self.submitted.append(asked.id)
        self.untrusted.append(UNTRUSTED_USERS_HEADER in request.headers)
        session = self._make_session(asked.session, asked.spec)
        ahead = sum(not run.finished and run.request.session == asked.session for run in self.runs.values())
        if asked.id not in self.runs:
            self.runs[asked.id] = run = ScriptedRun(asked)
            async with self._submission:
                self._submission.notify_all()
            if self.answer is not None:
                await self.emit(run, kind="started")
                await self.say(run, *self.answer)
                await self.finish(run)
        return _json(RunAccepted(id=asked.id, session=session, ahead=ahead), 202)

    async def _events(self, request: Request) -> Response:
        run = self.runs.get(request.path_params["id"])
        if run is None:
            return _unknown()
        return StreamingResponse(self._lines(run, int(request.query_params["after"]), self._cut))

    async def _lines(self, run: ScriptedRun, after: int, cut: asyncio.Event) -> AsyncIterator[str]:
        while True:
            for event in [event for event in run.events if event.seq > after]:
                after = event.seq
                if event.seq not in self.garbled:
                    yield event.model_dump_json() + "\n"
                if event.kind == "finished":
                    return
            async with run.news:
                if all(event.seq <= after for event in run.events) and not cut.is_set():
                    await run.news.wait()
            if cut.is_set():
                raise ConnectionResetError("the test broke the stream")

    async def _ack(self, request: Request) -> Response:
        run = self.runs.get(request.path_params["id"])
        if run is None:
            return _unknown()
        through = Ack.model_validate_json(await request.body()).through
        run.acknowledged = max(run.acknowledged, through)
        run.events = [event for event in run.events if event.seq > through]
        return Response(status_code=204)

    async def _stop(self, request: Request) -> Response:
        run = self.runs.get(request.path_params["id"])
        if run is None:
            return _unknown()
        if not run.stopped and not run.finished:
            run.stopped = True
            await self.finish(run, "interrupted")
        return Response(status_code=204)


def _json(message: WireModel, status: int = 200) -> Response:
    return Response(message.model_dump_json(), status, media_type="application/json")


def _unknown() -> Response:
    return _json(Refusal(code="unknown", message="there is no such thing here"), 404)
