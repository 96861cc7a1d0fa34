"""The web application's side of the wire: an async client of one supervisor, over its Unix socket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Self

import httpx
from pydantic import ValidationError

from runners.wire.protocol import (
    EVENT_ADAPTER,
    UNTRUSTED_USERS_HEADER,
    Ack,
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
    SessionInfo,
    SessionSpec,
)

_SILENCE_S = 45.0
"""The supervisor sends an empty line every 15 s; a stream silent for longer than this is broken."""


class RunnerError(Exception):
    """A request was not carried out."""


class RunnerUnavailable(RunnerError):
    """The supervisor does not respond, or its response broke off. A later retry may succeed."""


class RequestRefused(RunnerError):
    """The supervisor declined the request: ``refusal`` says why, ``status`` is the HTTP status."""

    def __init__(self, status: int, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.status = status
        self.refusal = refusal


class ResourceNotFound(RequestRefused):
    """The supervisor has no such run or session, or no longer has it."""


KEEP_ALIVE_S = 5.0
"""How long a client keeps an idle connection; the supervisor keeps it longer."""


class RunnerClient:
    """One supervisor. Safe to share between tasks; close it when done.

    Args:
        socket: its Unix socket.
        untrusted_users: whether untrusted users can cause these requests; every request then tells the supervisor.
    """

    def __init__(self, socket: Path, *, untrusted_users: bool = False) -> None:
        self.socket = socket
        no_limit = httpx.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_S)
        self._http = httpx.AsyncClient(  # verify=False: there is no TLS, and loading certificates takes 20 ms
            transport=httpx.AsyncHTTPTransport(uds=str(socket), limits=no_limit, verify=False),
            base_url="http://supervisor",
            headers={UNTRUSTED_USERS_HEADER: "1"} if untrusted_users else {},
            timeout=httpx.Timeout(30.0, connect=5.0),
        )

    def mark_users_untrusted(self) -> None:
        """Tell the supervisor with every request from now on that untrusted users can cause it."""
        self._http.headers[UNTRUSTED_USERS_HEADER] = "1"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; runs continue."""
        await self._http.aclose()

    async def health(self) -> Health:
        """Fetch the state of the supervisor. Raises RunnerUnavailable while it is down."""
        return Health.model_validate_json(await self._send("GET", "/health"))

    async def machine(self) -> HostSurvey:
        """Fetch the survey of its machine. Raises RunnerUnavailable while it is down."""
        return HostSurvey.model_validate_json(await self._send("GET", "/host"))

    async def patches(self) -> LibraryPatches:
        """Fetch the patches to other libraries in sessions. Raises RunnerUnavailable while it is down."""
        return LibraryPatches.model_validate_json(await self._send("GET", "/patches"))

    async def owned_sessions(self, *, measured: bool = False) -> Sequence[OwnedSession]:
        """Fetch all sessions of learners, with their owners; with ``measured``, their memory, which takes longer."""
        path = "/sessions?measured=1" if measured else "/sessions"
        return OwnedSessions.model_validate_json(await self._send("GET", path)).sessions

    async def sessions_of(self, owner: str) -> Sequence[SessionInfo]:
        """Fetch the sessions of one owner, also those that ended in the last hour."""
        return OwnersSessions.model_validate_json(await self._send("GET", f"/owners/{owner}/sessions")).sessions

    async def request_session(self, session: str, spec: SessionSpec) -> SessionInfo:
        """Create or find the session. Returns at once; its state may be queued or starting."""
        return SessionInfo.model_validate_json(await self._send("PUT", f"/sessions/{session}", spec.model_dump_json()))

    async def session(self, session: str) -> SessionInfo:
        """Fetch a session. Raises ResourceNotFound if there is none."""
        return SessionInfo.model_validate_json(await self._send("GET", f"/sessions/{session}"))

    async def interrupt(self, session: str) -> SessionInfo:
        """Interrupt the session's current run, and drop the runs queued behind it."""
        return SessionInfo.model_validate_json(await self._send("POST", f"/sessions/{session}/interrupt"))

    async def restart(self, session: str) -> SessionInfo:
        """Give the session a fresh kernel."""
        return SessionInfo.model_validate_json(await self._send("POST", f"/sessions/{session}/restart"))

    async def keep(self, session: str) -> SessionInfo:
        """Restart the idle time of a session that is still in use."""
        return SessionInfo.model_validate_json(await self._send("POST", f"/sessions/{session}/keep"))

    async def wait_until_gone(self, session: str) -> SessionInfo:
        """Wait until the session is gone, however long that takes.

        Raises:
            ResourceNotFound: there is no such session.
            RunnerUnavailable: the runner ended, or the connection broke.
        """
        async with aclosing(self._stream(f"/sessions/{session}/gone", {})) as lines:
            async for line in lines:
                return SessionInfo.model_validate_json(line)
        raise RunnerUnavailable("the runner did not report the end of a session")

    async def inject_failure(self, session: str, failure: InjectedFailure) -> SessionInfo:
        """Inject a failure into one process of the session's cluster. Raises RequestRefused if that is not possible."""
        return SessionInfo.model_validate_json(
            await self._send("POST", f"/sessions/{session}/failures", failure.model_dump_json())
        )

    async def introspect(self, session: str, request: IntrospectionRequest) -> Introspection:
        """Ask the session's kernel about code, if it has nothing else to do. Raises ResourceNotFound."""
        return Introspection.model_validate_json(
            await self._send("POST", f"/sessions/{session}/introspect", request.model_dump_json())
        )

    async def end(self, session: str) -> None:
        await self._send("DELETE", f"/sessions/{session}")

    async def submit(self, run: RunRequest) -> RunAccepted:
        """Submit a run. Idempotent by id."""
        return RunAccepted.model_validate_json(await self._send("POST", "/runs", run.model_dump_json()))

    async def stop(self, run: str) -> None:
        """Interrupt this run, or remove it from the queue."""
        await self._send("POST", f"/runs/{run}/stop")

    async def acknowledge(self, run: str, through: int) -> None:
        """Acknowledge that the events up to ``through`` are stored."""
        await self._send("POST", f"/runs/{run}/ack", Ack(through=through).model_dump_json())

    async def events(self, run: str, after: int = 0) -> AsyncGenerator[Event, None]:
        """Yield the events after number ``after`` until ``finished``.

        Raises:
            ResourceNotFound: the supervisor has no such run, because it has restarted: the run is lost.
            RunnerUnavailable: the stream broke before ``finished``; call again with the last number seen.
        """
        async with aclosing(self._stream(f"/runs/{run}/events", {"after": after})) as lines:
            async for line in lines:
                event = EVENT_ADAPTER.validate_json(line)
                yield event
                if event.kind == "finished":
                    return
        raise RunnerUnavailable("the runner's event stream ended early")

    async def _stream(self, path: str, params: dict[str, int]) -> AsyncGenerator[bytes, None]:
        timeout = httpx.Timeout(30.0, connect=5.0, read=_SILENCE_S)
        try:
            async with self._http.stream("GET", path, params=params, timeout=timeout) as r:
                if r.status_code != 200:
                    _refuse(r.status_code, await r.aread())
                async for line in _lines(r.aiter_bytes()):
                    yield line
        except httpx.HTTPError as e:
            raise RunnerUnavailable(f"the runner's stream broke: {e!r}") from e

    async def _send(self, method: str, path: str, body: str | None = None) -> bytes:
        headers = {"content-type": "application/json"} if body is not None else {}
        try:
            r = await self._http.request(method, path, content=body, headers=headers)
        except httpx.HTTPError as e:
            raise RunnerUnavailable(f"the runner at {self.socket} is not responding: {e!r}") from e
        if r.status_code >= 400:
            _refuse(r.status_code, r.content)
        return r.content


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Split at line feeds only. (httpx would also split at U+2028 and the like, which a learner may print.)"""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                yield line


def _refuse(status: int, body: bytes) -> None:
    try:
        refusal = Refusal.model_validate_json(body)
    except ValidationError:
        refusal = Refusal(code="unreadable", message=f"the runner responded with status {status} and no reason")
    if status >= 500:
        raise RunnerUnavailable(refusal.message)
    raise (ResourceNotFound if status == 404 else RequestRefused)(status, refusal)
