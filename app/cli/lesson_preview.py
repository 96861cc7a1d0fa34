"""``lockstep lesson preview``: a site for one author on this machine, whose pages follow the files of a lesson.

It has a database of its own, which is deleted at the end, so nothing that happens in it reaches the real site. The link
that it prints has a secret, as Jupyter's has, and signs the author's browser in; everyone else on the machine is a
visitor without an account.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs, urlencode

import typer
import uvicorn
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.accounts.auth_sessions import create_auth_session
from app.accounts.models import Role
from app.accounts.service import create_account
from app.accounts.session_cookie import SESSION_COOKIE
from app.cli.connect_runner import NoRunnerAvailable, connect_runner
from app.cli.console import ending_at_sigterm, fail, print_message, read_settings
from app.cli.lesson_report import shown_path
from app.cli.lesson_target import find_lesson_file
from app.cli.serve import call_when_ready, listen_on
from app.cli.transaction import run_in_transaction
from app.cli.web_process import raise_open_files_limit
from app.i18n import DEFAULT_LANGUAGE
from app.settings import Settings
from app.web.http_protocol import LimitedHttpProtocol
from app.web.security_headers import NO_STORE

_OPENING_PATH = "/preview"
_SHUTDOWN_S = 3


def preview_lesson(
    lesson: Annotated[
        str, typer.Argument(metavar="FILE|LESSON", help="A lesson's file or folder, or its name, also COURSE/LESSON.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 picks a free one.")] = 8001,
) -> None:
    """Show a lesson as instructors see it, drafts included, at a link for this machine only, until Ctrl-C.

    The page reloads at the changed place when you save, and shows the mistakes in the file. Its cells run in the
    sandbox. What happens in the preview is deleted at the end.
    """
    settings = read_settings()
    file = find_lesson_file(settings.lessons_dir, lesson)
    with listen_on("127.0.0.1", port) as listener, tempfile.TemporaryDirectory(prefix="lockstep-preview-") as folder:
        site = _site_settings(Path(folder), file.parents[2])
        token = run_in_transaction(_create_author, site)
        with suppress(KeyboardInterrupt), ending_at_sigterm(0):
            try:
                asyncio.run(_serve(settings, site, listener, file, token))
            except NoRunnerAvailable as e:
                fail(str(e))


def _site_settings(folder: Path, lessons: Path) -> Settings:
    """The settings of the preview. Those of the real site, such as its address and its mail server, have no effect."""
    return Settings.model_construct(data_dir=folder, lessons_dir=lessons, log_level="warning", sign_up="closed")


async def _create_author(session: AsyncSession) -> str:
    """The token of a browser that is signed in as an instructor."""
    author = await create_account(
        session, email="author@localhost", name="Author", role=Role.instructor, confirmed=True
    )
    return await create_auth_session(session, author, method="password")


async def _serve(settings: Settings, site: Settings, listener: socket.socket, file: Path, token: str) -> None:
    """Serve with the runner that is already running here, or with one that ends with the preview."""
    from app.main import create_app  # other commands do not need it

    key = secrets.token_urlsafe(32)
    # Browsers send cookies to every port of a host: another name than that of `serve` keeps its sign-in as it is.
    address = f"http://localhost:{listener.getsockname()[1]}{_OPENING_PATH}?{urlencode({'key': key})}"
    async with connect_runner(settings) as client:
        app = create_app(site.model_copy(update={"runner_socket": client.socket}), only_local=True)
        config = uvicorn.Config(
            OpeningLink(app, key, token, _page_of(file)),
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_S,
            http=LimitedHttpProtocol,
        )
        raise_open_files_limit()
        call_when_ready(listener, lambda: print_message(f"{shown_path(file)} is at {address} (press Ctrl-C to stop)."))
        await uvicorn.Server(config).serve(sockets=[listener])


def _page_of(file: Path) -> str:
    """The path of the lesson's page, in the language of the file."""
    _, *language, _ = file.name.split(".")
    return f"/{language[0] if language else DEFAULT_LANGUAGE}/courses/{file.parents[1].name}/{file.parent.name}"


class OpeningLink:
    """Signs in the browser that opens the link with the key, and leads it to the lesson."""

    def __init__(self, app: ASGIApp, key: str, token: str, page: str) -> None:
        self._app = app
        self._key = key
        self._token = token
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != _OPENING_PATH or not self._admits(scope):
            await self._app(scope, receive, send)
            return
        response = RedirectResponse(self._page, 303, NO_STORE)
        response.set_cookie(SESSION_COOKIE, self._token, httponly=True, samesite="lax")
        await response(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("key", [""])[0]
        return scope["method"] == "GET" and secrets.compare_digest(given.encode(), self._key.encode())
