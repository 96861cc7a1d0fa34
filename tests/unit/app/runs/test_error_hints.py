"""The hints on errors in the languages of pages."""

from __future__ import annotations

import httpx
from fastapi import FastAPI

from app.i18n import LANGUAGE_CODES
from app.main import create_app
from app.runs.error_hints import ERROR_HINTS
from app.settings import Settings
from runners.wire import error_hints
from tests.factories.browser_client import browser_client


def test_the_sentences_are_those_that_the_runner_sends() -> None:
    assert {hint.code: hint.sentence for hint in error_hints.ERROR_HINTS} == ERROR_HINTS


async def test_every_language_has_them_and_shared_caches_may_keep_them(settings: Settings) -> None:
    app: FastAPI = create_app(settings)
    async with app.router.lifespan_context(app), browser_client(app) as client:
        answers: dict[str, httpx.Response] = {lang: await client.get(f"/{lang}/error-hints") for lang in LANGUAGE_CODES}

    assert answers["en"].json() == ERROR_HINTS
    for lang in set(LANGUAGE_CODES) - {"en"}:
        assert answers[lang].json().keys() == ERROR_HINTS.keys()
        assert not set(answers[lang].json().values()) & set(ERROR_HINTS.values())
        assert answers[lang].headers["cache-control"] == "public, max-age=300"
        assert "set-cookie" not in answers[lang].headers
