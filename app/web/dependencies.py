"""Route dependencies: objects that a process shares, each with its type.

``app.state`` is untyped. An ``AppKey`` is a typed name in it, defined in the module that owns the object, next to an
alias for routes::

    DATABASE = AppKey[Database]("db")
    DatabaseDep = Annotated[Database, Depends(DATABASE.from_request)]

A route takes ``db: DatabaseDep``; startup code calls ``DATABASE.set(app, …)`` and ``DATABASE.get(app)``. No other
module uses ``app.state``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Generic, TypeVar

from fastapi import Depends
from starlette.applications import Starlette
from starlette.requests import Request

from app.bus import Bus
from app.db import Database
from app.settings import Settings
from runners.wire.client import RunnerClient

T = TypeVar("T")


class AppKey(Generic[T]):
    """A typed name in ``app.state``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def set(self, app: Starlette, value: T) -> T:
        """Store an object, and return it."""
        setattr(app.state, self._name, value)
        return value

    def get(self, app: Starlette) -> T:
        """Return the object. Raises AttributeError if it is not set yet."""
        value: T = getattr(app.state, self._name)
        return value

    async def from_request(self, request: Request) -> T:
        """The object as a dependency of a route."""
        return self.get(request.app)


def of_request(read: Callable[[Request], T]) -> Callable[[Request], Awaitable[T]]:
    """``read`` as a dependency of a route. FastAPI would call a plain function in a thread."""

    async def dependency(request: Request) -> T:
        return read(request)

    return dependency


SETTINGS = AppKey[Settings]("settings")
SettingsDep = Annotated[Settings, Depends(SETTINGS.from_request)]


def site_origin(request: Request) -> str:
    """The origin of links to this site: the public URL if it is set, otherwise that of the request."""
    return SETTINGS.get(request.app).public_url or str(request.base_url).rstrip("/")


DATABASE = AppKey[Database]("db")
"""Set while the application runs."""
DatabaseDep = Annotated[Database, Depends(DATABASE.from_request)]

BUS = AppKey[Bus]("bus")
"""Set while the application runs. Routes do not need it: events are sent with the commit that stores their cause."""

ONLY_LOCAL = AppKey[bool]("only_local")
"""Whether the application's port can be reached only from this machine."""

RUNNER = AppKey[RunnerClient]("runner")
"""The client of the supervisor. Set while the application runs."""
RunnerDep = Annotated[RunnerClient, Depends(RUNNER.from_request)]
