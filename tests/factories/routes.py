"""The routes of the application, and objects to name in their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import aclosing

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute, Mount, Route

from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import press_run
from tests.factories.course import LESSON

ENDLESS = {"run_stream", "notifications_stream", "lesson_changes"}
"""Routes whose answers go on until the browser leaves."""


def all_routes(app: FastAPI) -> Iterator[Route | Mount]:
    """All routes, including those of included routers."""
    return _routes(app.router.routes)


def _routes(routes: list[BaseRoute]) -> Iterator[Route | Mount]:
    for route in routes:
        if isinstance(included := getattr(route, "original_router", None), APIRouter):
            yield from _routes(included.routes)
        else:
            assert isinstance(route, Route | Mount), f"{type(route)} is of a kind these tests do not know"
            yield route


async def path_parameters(app: FastAPI) -> dict[str, str]:
    """Objects to name in a path: a lesson, a comment, a run. Needs a supervisor."""
    async with aclosing(await signed_in_browser(app)) as author:
        posted = await author.post(f"/en/courses/{LESSON}/comments", data={"text": "Why?", "key": "one"})
        run = await press_run(author)
    comment = re.findall(r"[0-9a-f]{30,32}", posted.headers["location"])[0]
    course, slug = LESSON.split("/")
    own = {"lang": "en", "course": course, "slug": slug, "comment_id": comment, "run_id": run["id"], "action": "delete"}
    return own | {"seq": "1", "verb": "hide", "handle": "ada-byron"}
