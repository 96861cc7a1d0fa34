"""Errors about invalid input are in the language of the page, completely."""

from __future__ import annotations

import re

import httpx
import pytest

HTML = {"accept": "text/html,*/*"}
_MAIN = re.compile(r'<main id="main".*?</main>', re.DOTALL)


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/ko/password-reset", b"email=a%00b", ""),
        ("/ko/password-reset", b"\xff\xfe", ""),
        ("/ko/achievements?page=0", None, "page"),
    ],
)
async def test_no_english_word_is_on_a_korean_page(
    client: httpx.AsyncClient, path: str, body: bytes | None, named: str
) -> None:
    headers = HTML | {"content-type": "application/x-www-form-urlencoded"}
    answer = await client.request("GET" if body is None else "POST", path, content=body, headers=headers)

    assert answer.status_code == 422
    main = _MAIN.search(answer.text)
    assert main
    assert named in main[0]
    assert not re.search(r"\b(it|is|holds|should|be|form|required|Field)\b", re.sub(r"<[^>]*>", " ", main[0]))
