"""What the editor says, which a page loads with the editor."""

from __future__ import annotations

from app.i18n import LANGUAGE_CODES
from app.main import create_app
from app.runs.editor_texts import EDITOR_TEXTS
from app.settings import Settings
from tests.factories.browser_client import browser_client


async def test_the_editor_speaks_the_language_of_the_page(settings: Settings) -> None:
    app = create_app(settings)
    async with app.router.lifespan_context(app), browser_client(app) as client:
        answers = {lang: await client.get(f"/{lang}/editor-texts") for lang in LANGUAGE_CODES}
    assert answers["en"].json() == EDITOR_TEXTS
    for lang in set(LANGUAGE_CODES) - {"en"}:
        assert answers[lang].json().keys() == EDITOR_TEXTS.keys()
        assert not set(answers[lang].json().values()) & set(EDITOR_TEXTS.values())
        assert answers[lang].headers["cache-control"] == "public, max-age=300"
        assert "set-cookie" not in answers[lang].headers
