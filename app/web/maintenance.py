"""Maintenance mode: refuses changes by everyone but admins, and says so on every page."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.i18n import gettext
from app.site_switches import Switch, SwitchStates, UnderMaintenance
from app.web.csrf import SAFE_METHODS
from app.web.dependencies import AppKey

SWITCHES = AppKey[SwitchStates]("site_switches")
SwitchesDep = Annotated[SwitchStates, Depends(SWITCHES.from_request)]


def site_banners(switches: SwitchStates) -> list[str]:
    """What every page says at its top, in the current language."""
    banners = []
    if switches.since(Switch.maintenance) is not None:
        banners.append(
            gettext("This site is under maintenance. You can read the lessons, but not sign in, run or save anything.")
        )
    if switches.since(Switch.drain) is not None:
        banners.append(gettext("No new sessions start at the moment. A session that you have goes on until it ends."))
    return banners


class MaintenanceGate:
    """Answers changes with 503 while maintenance mode is on. Sign-ins look at the account that signs in themselves."""

    def __init__(
        self, app: ASGIApp, *, switches: SwitchStates, is_admin: Callable[[Request], Awaitable[bool]], but: str
    ) -> None:
        """``but`` is a pattern of paths that stay open."""
        self._app = app
        self._switches = switches
        self._is_admin = is_admin
        self._but = re.compile(but)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        closed = scope["type"] == "http" and self._switches.since(Switch.maintenance) is not None
        changes = closed and scope["method"] not in SAFE_METHODS and not self._but.fullmatch(scope["path"])
        if changes and not await self._is_admin(Request(scope)):
            raise UnderMaintenance
        await self._app(scope, receive, send)
