"""Which origins a request may have."""

from __future__ import annotations

import pytest
from starlette.types import Message, Receive, Scope, Send

from app.errors import CrossSiteRequest
from app.web.csrf import SameOriginOnly, is_same_origin

HOST = {"host": "learn.example.org"}


@pytest.mark.parametrize(
    ("method", "headers", "allowed"),
    [
        ("GET", {}, True),
        ("HEAD", {"sec-fetch-site": "cross-site"}, True),
        ("POST", {"sec-fetch-site": "same-origin"}, True),
        ("POST", {"sec-fetch-site": "none"}, True),
        ("POST", {"sec-fetch-site": "same-site"}, False),
        ("POST", {"sec-fetch-site": "cross-site"}, False),
        ("POST", {"sec-fetch-site": "cross-site", "origin": "https://learn.example.org"}, False),
        ("POST", {"origin": "https://learn.example.org"}, True),
        ("POST", {"origin": "http://learn.example.org"}, True),
        ("POST", {"origin": "https://learn.example.org.evil.test"}, False),
        ("POST", {"origin": "https://evil.test/learn.example.org"}, False),
        ("POST", {"origin": "https://learn.example.org@evil.test"}, False),
        ("POST", {"origin": "null"}, False),
        ("POST", {"origin": "http://[x"}, False),
        ("POST", {}, False),
        ("DELETE", {}, False),
        ("BREW", {}, False),
    ],
)
def test_changes_come_from_our_own_pages_only(method: str, headers: dict[str, str], allowed: bool) -> None:
    assert is_same_origin(method, HOST | headers, "") is allowed


def test_of_the_public_address_the_scheme_counts_too() -> None:
    headers = HOST | {"origin": "http://learn.example.org"}

    assert not is_same_origin("POST", headers, "https://learn.example.org")
    assert is_same_origin("POST", headers, "http://learn.example.org")


@pytest.mark.parametrize("name", ["origin", "sec-fetch-site"])
async def test_who_names_two_origins_is_refused(name: str) -> None:
    value = {"origin": b"https://learn.example.org", "sec-fetch-site": b"same-origin"}[name]
    header = (name.encode(), value)
    reached: list[Scope] = []

    async def app(scope: Scope, _: Receive, __: Send) -> None:
        reached.append(scope)

    async def nothing() -> Message:
        raise AssertionError("nothing is received")

    async def send(_: Message) -> None:
        raise AssertionError("nothing is sent")

    guarded = SameOriginOnly(app, public_url="")
    once = {"type": "http", "method": "POST", "headers": [(b"host", b"learn.example.org"), header]}
    twice = once | {"headers": [(b"host", b"learn.example.org"), header, header]}
    await guarded(once, nothing, send)
    with pytest.raises(CrossSiteRequest):
        await guarded(twice, nothing, send)

    assert reached == [once]


def test_the_public_address_counts_as_here_behind_a_proxy_that_changes_the_host() -> None:
    headers = {"host": "web:8000", "origin": "https://learn.example.org"}

    assert is_same_origin("POST", headers, "https://learn.example.org")
    assert not is_same_origin("POST", headers, "")
