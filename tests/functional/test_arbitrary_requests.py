"""Whatever is sent to a route, by a visitor or by an instructor: no response says that the server failed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import strategies as st
from starlette.routing import Route

from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import browser_client
from tests.factories.course import LESSON
from tests.factories.hypothesis_examples import VARIABLE, fixed_examples
from tests.factories.routes import ENDLESS, all_routes, path_parameters
from tests.factories.scripted_supervisor import ScriptedSupervisor

EXAMPLES = 8 if VARIABLE in os.environ else 3
"""For each route, each of whoever asks. Eight times the factor of the long tests there, and three in the main tier."""
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
_ODD = (
    *("", " ", "\0", "%00", "\ud800", "\u202e", "x" * 5_000, "e\u0301" * 60, "🦙", "ı", "ß", "\r\nx: y", "2026-13-99"),
    *("-1", "0", "1e400", "9" * 40, "null", "true", "../..", "/", "//evil.example", "\\", "'", '"', "<b>", "%s", "*"),
)
_SENSIBLE = (
    *("en", "ko", "yes", "no", "on", "small", "first", LESSON, "hello", "/en/", "gpu:4", "page", "helpful", "hide"),
    *("pin", "daily", "Ada Byron", "ada@example.org", "correct horse battery", "Asia/Seoul", "Words, `code`, @ada."),
)
_FIELDS = re.findall(
    r"\w+",
    """
    add cell code credential edits email email_frequency email_password handle helpful here id invitation key keras kind
    language lesson lessons name new_password next page passkey_name password public_profile queue reason remove
    response sentence text thread time_zone topology verb which
    """,
)
_QUERY = re.findall(r"\w+", "after before cell code course cursor invitation lesson next page q queue since state verb")
_HEADERS = ("accept", "accept-language", "cookie", "if-none-match", "last-event-id", "range", "x-lockstep-lang")


def words() -> st.SearchStrategy[str]:
    return st.sampled_from(_SENSIBLE) | st.sampled_from(_ODD) | st.text(max_size=30)


def values() -> st.SearchStrategy[Any]:
    """Any JSON value."""
    simple = st.none() | st.booleans() | st.integers() | st.floats() | words()
    return st.recursive(
        simple, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words(), inner, max_size=3), max_leaves=6
    )


def bodies() -> st.SearchStrategy[tuple[str, bytes]]:
    """A content type, and a body that claims to be of that type."""
    fields = st.dictionaries(st.sampled_from(_FIELDS), words(), max_size=8)
    objects = st.dictionaries(st.sampled_from(_FIELDS), values(), max_size=8)
    form = fields.map(lambda said: (FORM, urlencode(said, errors="surrogatepass").encode()))
    of_json = (objects | values()).map(lambda said: (JSON, json.dumps(said).encode()))
    other = st.tuples(st.sampled_from([FORM, JSON, "multipart/form-data", "text/plain", ""]), st.binary(max_size=60))
    return form | of_json | other


@dataclass(frozen=True)
class Asked:
    """A request for any route: values in its path instead of existing ids, and everything else."""

    odd: str
    """For one part of the path; in most requests none."""
    which: int
    query: dict[str, str]
    headers: dict[str, str]
    body: tuple[str, bytes]

    def of(self, route: Route, parts: dict[str, str]) -> tuple[str, str, dict[str, str], bytes]:
        """Method, address, headers and body."""
        names = re.findall(r"\{(\w+)", route.path)
        there = {name: parts.get(name, "1") for name in names}
        if names and self.odd:
            there[names[self.which % len(names)]] = self.odd
        path = re.sub(
            r"\{(\w+)[^}]*\}", lambda part: quote(there[part[1]], safe="", errors="surrogatepass"), route.path
        )
        methods = sorted(route.methods or {"GET"})
        method = methods[self.which % len(methods)]
        address = f"{path}?{urlencode(self.query, errors='surrogatepass')}"
        said = self.headers | {"content-type": self.body[0]}
        return method, address, said, b"" if method in ("GET", "HEAD") else self.body[1]


def asked() -> st.SearchStrategy[Asked]:
    said = words().map(lambda word: re.sub(r"[^ -~]", "?", word).strip())
    headers = st.fixed_dictionaries({}, optional=dict.fromkeys(_HEADERS, said) | {"hx-request": st.just("true")})
    query = st.dictionaries(st.sampled_from(_QUERY), words(), max_size=3)
    return st.builds(Asked, st.just("") | st.just("") | words(), st.integers(0, 7), query, headers, bodies())


@cache
def material(number: int) -> list[Asked]:
    """This many examples, always the same."""
    return fixed_examples(asked(), number)


def asked_of(app: FastAPI) -> Iterator[Route]:
    for route in all_routes(app):
        if isinstance(route, Route) and route.name not in ENDLESS:
            yield route


async def asker(app: FastAPI, who: str) -> httpx.AsyncClient:
    """A browser with a new account for each route, because some of them delete it."""
    return browser_client(app) if who == "stranger" else await signed_in_browser(app, who)


@pytest.mark.parametrize("who", ["instructor", pytest.param("stranger", marks=pytest.mark.long)])
async def test_no_request_makes_the_server_fail(app: FastAPI, supervisor: ScriptedSupervisor, who: str) -> None:
    parts = await path_parameters(app)
    routes = list(asked_of(app))
    examples = iter(material(EXAMPLES * len(routes)))
    statuses, failed = set(), []
    for route in routes:
        async with aclosing(await asker(app, who)) as client:
            for one in islice(examples, EXAMPLES):
                method, address, headers, body = one.of(route, parts)
                cookies = "; ".join([headers.get("cookie", ""), *(f"{c.name}={c.value}" for c in client.cookies.jar)])
                answer = await client.request(method, address, headers=headers | {"cookie": cookies}, content=body)
                statuses.add(answer.status_code)
                if answer.status_code >= 500:
                    failed.append((route.name, answer.status_code, method, address, headers, body))
    assert failed == []
    assert statuses >= {200, 404, 422}, "some went past the door, and some did not"
