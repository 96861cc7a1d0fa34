"""Paths that stay on this site, and forms whose values a database accepts."""

from __future__ import annotations

import time

import httpx
import pytest

from app.web.forms import local_path


@pytest.mark.parametrize(
    ("asked", "own"),
    [
        ("/en/", True),
        ("/en/courses/a?x=1&y=/b#c", True),
        ("", False),
        ("en/", False),
        ("//evil.test", False),
        ("/\\evil.test", False),
        ("\\/evil.test", False),
        ("/en/\\..", False),
        ("https://evil.test/", False),
        ("javascript:alert(1)", False),
        ("/\t/evil.test", False),
        ("/en/\r\nset-cookie: a=b", False),
        (" /en/", False),
        ("/한국어", False),
        ("/" + "x" * 600, False),
        (None, False),
    ],
)
def test_only_a_path_of_our_own_is_gone_on_to(asked: str | None, own: bool) -> None:
    assert local_path(asked) == (asked if own else None)


@pytest.mark.parametrize(
    "body",
    [
        *(b"email=a%00b", b"email=%ff", b"\xff=1", b"email=%ED%A0%80", b"&".join(b"a=1" for _ in range(100))),
        *(b"email=100%", b"email=%4", b"email=%4g"),
    ],
    ids=[
        *("NUL", "no UTF-8", "no UTF-8 at all", "half a surrogate pair", "too many fields"),
        *("a percent sign", "half an escape", "no hexadecimal escape"),
    ],
)
async def test_an_invalid_form_is_rejected(client: httpx.AsyncClient, body: bytes) -> None:
    for path in ("/en/sign-in", "/en/sign-up", "/en/password-reset", "/en/email-link/x"):
        answer = await client.post(
            path, content=body, headers={"accept": "text/html", "content-type": "application/x-www-form-urlencoded"}
        )
        assert answer.status_code == 422, path


async def test_a_form_that_takes_long_to_decode_is_refused_before_it_is_decoded(client: httpx.AsyncClient) -> None:
    headers = {"accept": "text/html", "content-type": "application/x-www-form-urlencoded"}
    await client.post("/en/sign-in", content=b"email=%4", headers=headers)  # compiles the page's templates
    for body, status in ((b"text=" + b"%25" * 100_000, 413), (b"text=" + b"%" * 290_000, 422)):
        took = time.thread_time()
        answer = await client.post("/en/sign-in", content=body, headers=headers)
        assert answer.status_code == status
        assert time.thread_time() - took < 0.1
