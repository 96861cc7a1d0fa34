"""The supervisor: HTTP over a Unix socket in front of one node.

Run as ``python -m runners.server --socket PATH``. Locally it is a child of ``lockstep serve``, under Compose it is
the runner container. It ends, with all that it started, on SIGTERM, SIGINT, or when its parent ends
(``--die-with-parent``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import structlog
import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from runners.lease_routes import lease_routes
from runners.node import Declined, Node, Unknown
from runners.protocol import Ack, Refusal, RunRequest, SessionSpec, Wire
from runners.sandbox import linux
from runners.settings import RunnerSettings, refusals

log = structlog.get_logger()

_KEEP_ALIVE_S = 15.0
_LARGEST_BODY = 1 << 20
_PATIENCE_S = 5.0
"""How long a supervisor that was told to end may still hold its place."""

Handler = Callable[[Request], Awaitable[Response]]


def application(node: Node) -> Starlette:
    """The HTTP side of ``node``; the table of routes is in ``runners.protocol``."""

    async def health(_: Request) -> Response:
        return _json(node.health())

    async def session(request: Request) -> Response:
        name = request.path_params["session"]
        match request.method:
            case "PUT":
                return _json(node.ask_session(name, SessionSpec.model_validate_json(await _body(request))))
            case "DELETE":
                await node.end(name)
                return Response(status_code=204)
            case _:
                return _json(node.session(name))

    async def interrupt(request: Request) -> Response:
        return _json(node.interrupt(request.path_params["session"]))

    async def restart(request: Request) -> Response:
        return _json(node.restart(request.path_params["session"]))

    async def submit(request: Request) -> Response:
        return _json(node.submit(RunRequest.model_validate_json(await _body(request))), 202)

    async def events(request: Request) -> Response:
        run = node.run(request.path_params["run"])
        after = int(request.query_params.get("after", "0"))

        async def lines() -> AsyncIterator[str]:
            async for event in run.after(after, _KEEP_ALIVE_S):
                yield "\n" if event is None else event.model_dump_json() + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def acknowledge(request: Request) -> Response:
        node.run(request.path_params["run"]).acknowledge(Ack.model_validate_json(await _body(request)).through)
        return Response(status_code=204)

    async def stop(request: Request) -> Response:
        node.stop(request.path_params["run"])
        return Response(status_code=204)

    routes: list[tuple[str, Handler, list[str]]] = [
        ("/health", health, ["GET"]),
        ("/sessions/{session}", session, ["GET", "PUT", "DELETE"]),
        ("/sessions/{session}/interrupt", interrupt, ["POST"]),
        ("/sessions/{session}/restart", restart, ["POST"]),
        ("/runs", submit, ["POST"]),
        ("/runs/{run}/events", events, ["GET"]),
        ("/runs/{run}/ack", acknowledge, ["POST"]),
        ("/runs/{run}/stop", stop, ["POST"]),
        *lease_routes(node.leases, _body),
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            node.start()
            yield
        finally:
            await node.close()

    return Starlette(
        routes=[Route(path, _refusing(handler), methods=methods) for path, handler, methods in routes],
        lifespan=lifespan,
    )


def _refusing(handler: Handler) -> Handler:
    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Unknown as e:
            return _json(Refusal(code="unknown", message=str(e)), 404)
        except Declined as e:
            return _json(Refusal(code=e.code, message=str(e), limit=e.limit), e.status)
        except ValidationError as e:
            first = e.errors(include_url=False, include_input=False)[0]
            return _json(Refusal(code="invalid", message=f"{first['loc']}: {first['msg']}"), 422)
        except ValueError as e:
            return _json(Refusal(code="invalid", message=str(e)), 422)

    return answer


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise Declined(413, "too-large", f"a request may have {_LARGEST_BODY:,} bytes")
    return body


def _json(message: Wire, status: int = 200) -> Response:
    return Response(message.model_dump_json(), status, media_type="application/json")


class SocketTaken(RuntimeError):
    """Another supervisor serves there."""


def bind(path: Path) -> tuple[socket.socket, int]:
    """Bind the supervisor's socket; only this user (and group, if the folder allows) may connect.

    Returns:
        The socket and the descriptor of the lock that says who serves it; keep it open.

    Raises:
        SocketTaken: another supervisor holds the lock.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    give_up_at = time.monotonic() + _PATIENCE_S
    while not _locked(lock):
        if time.monotonic() >= give_up_at:
            os.close(lock)
            raise SocketTaken(f"another supervisor serves {path} already")
        time.sleep(0.1)
    path.unlink(missing_ok=True)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.bind(str(path))
    path.chmod(0o660)
    return s, lock


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main() -> None:
    """``python -m runners.server``."""
    parser = argparse.ArgumentParser(description="Lockstep's supervisor: runs learner code in sandboxes.")
    parser.add_argument("--socket", type=Path, required=True, help="path of the Unix socket to serve")
    parser.add_argument(
        "--die-with-parent", action="store_true", help="end when the process that started this one ends"
    )
    arguments = parser.parse_args()
    if arguments.die_with_parent:
        linux.die_with_parent(signal.SIGTERM)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    try:
        settings = RunnerSettings()
        listening, _lock = bind(arguments.socket)
    except ValidationError as e:
        _refuse("\n".join(refusals(e)))
    except (SocketTaken, OSError) as e:
        _refuse(str(e))
    # Streams end when their run does; on shutdown they are cut, the app comes back with its last number.
    config = uvicorn.Config(
        _build(settings), log_level="warning", timeout_graceful_shutdown=2, lifespan="on", ws="none"
    )
    asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


def _refuse(why: str) -> NoReturn:
    """End with the status that says: starting again as it is would end the same way."""
    print(why, file=sys.stderr)
    sys.exit(2)


def _build(settings: RunnerSettings) -> Starlette:
    return application(Node(settings))


if __name__ == "__main__":
    main()
