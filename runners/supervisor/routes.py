"""The supervisor over HTTP: one function for each route; the table is in ``runners.wire.protocol``.

The routes of bare kernels are in ``lease_routes``.

A route reads the request, calls the node, and responds. Declined and invalid requests become a Refusal with a 4xx
status in one place (``_refusing``).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from runners.supervisor.lease_routes import lease_routes
from runners.supervisor.node import Node, RequestDeclined, UnknownSessionOrRun
from runners.wire.protocol import (
    UNTRUSTED_USERS_HEADER,
    Ack,
    Identifier,
    InjectedFailure,
    IntrospectionRequest,
    Refusal,
    RunRequest,
    SessionSpec,
    WireModel,
)

_KEEP_ALIVE_S = 15.0
_LARGEST_BODY = 1 << 20
_BODY_S = 10.0
"""A request body has to arrive within this time."""
_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)

Handler = Callable[[Request], Awaitable[Response]]


def create_app(node: Node) -> Starlette:
    """Create the HTTP application for ``node``, which lives as long as the application."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            node.start()
            yield
        finally:
            await node.close()

    routes = [(path, handler, [method]) for method, path, handler in ROUTES]
    routes += lease_routes(node.leases, _body)
    app = Starlette(
        routes=[Route(path, _refusing(handler), methods=methods) for path, handler, methods in routes],
        lifespan=lifespan,
    )
    app.state.node = node
    return app


# --- health -----------------------------------------------------------------------------------------------------


async def health(request: Request) -> Response:
    return _json(_node(request).health())


async def show_patches(request: Request) -> Response:
    return _json(_node(request).patches())


async def survey_host(_: Request) -> Response:
    """Survey the machine in a separate process, because it leaves its namespaces."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    command = (sys.executable, "-m", "runners.diagnostics.host_survey")
    process = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe)
    said, _errors = await process.communicate()
    if process.returncode:
        raise RequestDeclined(500, "no-survey", f"the survey of the machine exited with status {process.returncode}")
    return Response(said, media_type="application/json")


# --- sessions ---------------------------------------------------------------------------------------------------


async def list_sessions(request: Request) -> Response:
    measured = request.query_params.get("measured") == "1"
    return _json(await _node(request).measured_sessions() if measured else _node(request).owned_sessions())


async def list_owners_sessions(request: Request) -> Response:
    return _json(_node(request).sessions_of(_name(request)))


async def request_session(request: Request) -> Response:
    spec = SessionSpec.model_validate_json(await _body(request))
    return _json(_node(request).request_session(_name(request), spec))


async def show_session(request: Request) -> Response:
    return _json(_node(request).session(_name(request)))


async def interrupt_session(request: Request) -> Response:
    return _json(_node(request).interrupt(_name(request)))


async def restart_session(request: Request) -> Response:
    return _json(_node(request).restart(_name(request)))


async def keep_session(request: Request) -> Response:
    return _json(_node(request).keep(_name(request)))


async def session_gone(request: Request) -> Response:
    told = _node(request).until_gone(_name(request), _KEEP_ALIVE_S)

    async def lines() -> AsyncIterator[str]:
        async for info in told:
            yield "\n" if info is None else info.model_dump_json() + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


async def inject_failure(request: Request) -> Response:
    failure = InjectedFailure.model_validate_json(await _body(request))
    return _json(await _node(request).inject_failure(_name(request), failure))


async def introspect_session(request: Request) -> Response:
    asked = IntrospectionRequest.model_validate_json(await _body(request))
    return _json(await _node(request).introspect(_name(request), asked))


async def end_session(request: Request) -> Response:
    await _node(request).end(_name(request))
    return Response(status_code=204)


# --- runs -------------------------------------------------------------------------------------------------------


async def submit_run(request: Request) -> Response:
    return _json(_node(request).submit(RunRequest.model_validate_json(await _body(request))), 202)


async def run_events(request: Request) -> Response:
    run = _node(request).run(_name(request))
    after = int(request.query_params.get("after", "0"))

    async def lines() -> AsyncIterator[bytes]:
        async for events in run.after(after, _KEEP_ALIVE_S):
            yield events or b"\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


async def acknowledge_run(request: Request) -> Response:
    run = _node(request).run(_name(request))
    run.acknowledge(Ack.model_validate_json(await _body(request)).through)
    return Response(status_code=204)


async def stop_run(request: Request) -> Response:
    _node(request).stop(_name(request))
    return Response(status_code=204)


ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/health", health),
    ("GET", "/host", survey_host),
    ("GET", "/patches", show_patches),
    ("GET", "/sessions", list_sessions),
    ("GET", "/owners/{id}/sessions", list_owners_sessions),
    ("PUT", "/sessions/{id}", request_session),
    ("GET", "/sessions/{id}", show_session),
    ("POST", "/sessions/{id}/interrupt", interrupt_session),
    ("POST", "/sessions/{id}/restart", restart_session),
    ("POST", "/sessions/{id}/keep", keep_session),
    ("GET", "/sessions/{id}/gone", session_gone),
    ("POST", "/sessions/{id}/failures", inject_failure),
    ("POST", "/sessions/{id}/introspect", introspect_session),
    ("DELETE", "/sessions/{id}", end_session),
    ("POST", "/runs", submit_run),
    ("GET", "/runs/{id}/events", run_events),
    ("POST", "/runs/{id}/ack", acknowledge_run),
    ("POST", "/runs/{id}/stop", stop_run),
)


# --- what every route does ---------------------------------------------------------------------------------------


def _node(request: Request) -> Node:
    node: Node = request.app.state.node
    return node


def _name(request: Request) -> str:
    """Read the id in the path. Raises ValidationError if it is invalid."""
    return _IDENTIFIER.validate_python(request.path_params["id"])


async def _body(request: Request) -> bytes:
    """Read the whole body, if it is small enough and arrives in time."""
    body = b""
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _LARGEST_BODY:
                    raise RequestDeclined(413, "too-large", f"a request can have at most {_LARGEST_BODY:,} bytes")
    except TimeoutError:
        raise RequestDeclined(408, "too-slow", f"a request must arrive within {_BODY_S:g} s") from None
    return body


def _refusing(handler: Handler) -> Handler:
    async def answer(request: Request) -> Response:
        if UNTRUSTED_USERS_HEADER in request.headers:
            _node(request).mark_users_untrusted()
        try:
            return await handler(request)
        except UnknownSessionOrRun as e:
            return _json(Refusal(code="unknown", message=str(e)), 404)
        except RequestDeclined as e:
            return _json(Refusal(code=e.code, message=str(e), limit=e.limit), e.status)
        except ValidationError as e:
            first = e.errors(include_url=False, include_input=False)[0]
            return _json(Refusal(code="invalid", message=f"{first['loc']}: {first['msg']}"), 422)
        except ValueError as e:
            return _json(Refusal(code="invalid", message=str(e)), 422)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody will read it

    return answer


def _json(message: WireModel, status: int = 200) -> Response:
    return Response(message.model_dump_json(), status, media_type="application/json")
