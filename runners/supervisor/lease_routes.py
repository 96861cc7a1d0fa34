"""The HTTP side of ``runners.supervisor.leases``; the table of routes is in ``runners.wire.protocol``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from runners.supervisor.leases import (
    LeaseLimitReached,
    LeaseManager,
    LeaseMismatch,
    LeaseNotFound,
    LeaseSandboxFailed,
    LeasesForbidden,
)
from runners.supervisor.node import RequestDeclined, UnknownSessionOrRun
from runners.wire.protocol import KernelLease, KernelSignal, LeaseRequest, ReachedLimit

Handler = Callable[[Request], Awaitable[Response]]


def lease_routes(
    leases: LeaseManager, body: Callable[[Request], Awaitable[bytes]]
) -> list[tuple[str, Handler, list[str]]]:
    """Path, handler and methods of each route; ``body`` reads a request of bounded size."""

    async def take(request: Request) -> Response:
        return _json(await leases.take(LeaseRequest.model_validate_json(await body(request))))

    async def restart(request: Request) -> Response:
        spec = LeaseRequest.model_validate_json(await body(request))
        return _json(await leases.restart(request.path_params["kernel"], spec))

    async def signal(request: Request) -> Response:
        leases.signal(request.path_params["kernel"], KernelSignal.model_validate_json(await body(request)).signum)
        return Response(status_code=204)

    async def exit_(request: Request) -> Response:
        reading = leases.reading(request.path_params["kernel"])

        async def lines() -> AsyncIterator[str]:
            async for exited in reading:
                yield "\n" if exited is None else exited.model_dump_json(exclude_none=True) + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def end(request: Request) -> Response:
        await leases.end(request.path_params["kernel"])
        return Response(status_code=204)

    return [
        ("/kernels", _telling(take), ["POST"]),
        ("/kernels/{kernel}", _telling(end), ["DELETE"]),
        ("/kernels/{kernel}/restart", _telling(restart), ["POST"]),
        ("/kernels/{kernel}/signal", _telling(signal), ["POST"]),
        ("/kernels/{kernel}/exit", _telling(exit_), ["GET"]),
    ]


def _json(lease: KernelLease) -> Response:
    return Response(lease.model_dump_json(), media_type="application/json")


def _telling(handler: Handler) -> Handler:
    """Wrap a handler, so that the errors of leases become refusals like those of the node."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except LeaseNotFound as e:
            raise UnknownSessionOrRun(str(e)) from e
        except LeasesForbidden as e:
            raise RequestDeclined(403, "leases-forbidden", str(e)) from e
        except LeaseLimitReached as e:
            raise RequestDeclined(
                429, "node-full", str(e), ReachedLimit(name="sessions", value=e.most, unit="count")
            ) from e
        except LeaseMismatch as e:
            raise RequestDeclined(409, "other-machine", str(e)) from e
        except LeaseSandboxFailed as e:
            raise RequestDeclined(503, "no-sandbox", str(e)) from e

    return answer
