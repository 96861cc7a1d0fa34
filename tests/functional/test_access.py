"""Every route, requested by every kind of user: only those that its access allows get in, and no request fails."""

from __future__ import annotations

import re
from contextlib import aclosing

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app.web.access import Access, access_of
from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.routes import all_routes
from tests.factories.scripted_supervisor import ScriptedSupervisor

ASKERS = ("stranger", "visitor", "learner", "instructor", "admin")
LET_IN = {
    Access.public: ASKERS,
    Access.learner: ASKERS,
    Access.token: (),  # whatever cookies they have
    Access.account: ("learner", "instructor", "admin"),
    Access.instructor: ("instructor", "admin"),
    Access.admin: ("admin",),
}
PARTS = {"lang": "en", "course": "small", "slug": "first"}
SHUT = {401, 403}


async def asker(app: FastAPI, who: str) -> httpx.AsyncClient:
    """A browser of a user of that kind, with a new account."""
    if who in ("learner", "instructor", "admin"):
        return await signed_in_browser(app, who)
    client = browser_client(app)
    if who == "visitor":
        await client.post("/en/session", params={"lesson": LESSON})
    return client


def asked(route: Route) -> tuple[str, str]:
    """The method and a path of a route."""
    path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda part: PARTS.get(part[1], "1"), route.path)
    return sorted((route.methods or {"GET"}) - {"HEAD"})[0], path


@pytest.mark.parametrize("who", ASKERS)
async def test_everyone_gets_in_where_they_may_and_nowhere_else(
    app: FastAPI, supervisor: ScriptedSupervisor, who: str
) -> None:
    wrong = []
    async with aclosing(await asker(app, who)) as reader:
        for route in all_routes(app):
            if not isinstance(route, Route):
                continue
            method, path = asked(route)
            if method == "GET":
                answer = await reader.get(path)
            else:  # some delete the account
                async with aclosing(await asker(app, who)) as writer:
                    answer = await writer.request(method, path)
            let_in = answer.status_code not in SHUT
            if let_in is not (who in LET_IN[access_of(route)]) or answer.status_code >= 500:
                wrong.append(f"{route.name}: {method} {path} answered {answer.status_code}")
    assert wrong == []


async def test_who_is_refused_is_told_whether_to_sign_in_or_that_it_is_not_for_them(app: FastAPI) -> None:
    for route in all_routes(app):
        if isinstance(route, Route) and access_of(route) not in (Access.public, Access.learner):
            method, path = asked(route)
            async with browser_client(app) as stranger:
                assert (await stranger.request(method, path)).status_code == 401, route.name
            if access_of(route) in (Access.instructor, Access.admin):
                async with await signed_in_browser(app) as learner:
                    assert (await learner.request(method, path)).status_code == 403, route.name
