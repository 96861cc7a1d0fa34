"""Pages that are seldom seen, or only without a script: they are for every eye too."""

from __future__ import annotations

import secrets

import pytest
from playwright.async_api import expect

from app.accounts.links import Purpose, make_link
from app.accounts.models import Account
from app.comments import writing
from app.comments.writing import Draft
from app.db import Database, now
from app.progress.models import Entry
from tests.browser.conftest import Hall
from tests.browser.people import somebody
from tests.browser.test_pages import PICTURES, violations

LESSON = "distributed-tensorflow/distribution-strategies"


async def made_ready(url: str, account: Account) -> dict[str, str]:
    """Give the account something to show; returns the pages that show it, by what they are."""
    db = Database(url)
    async with db.writing() as session:
        mine = await session.get_one(Account, account.id)
        mine.public_profile = True
        for kind, subject in (("achievement", "first-run"), ("lesson", LESSON), ("read", LESSON)):
            session.add(Entry(learner_id=mine.learner_id, kind=kind, subject=subject, xp=20, at=now()))
        text = f"Why four? {secrets.token_hex(4)}"
        comment = await writing.write(session, mine, Draft(LESSON, "", None, text, "", "en"))
        await writing.change(session, mine, comment.id, f"{text} Or eight?", 0)
        links = {purpose: await make_link(session, mine, purpose, mine.email) for purpose in Purpose}
    await db.close()
    return {
        "profile": f"learners/{mine.handle}",
        "person": f"people/{mine.handle}/comments",
        "thread": f"comments/{comment.id}",
        "history": f"comments/{comment.id}/history",
        "reply": f"comments/{comment.id}/reply",
        "edit": f"comments/{comment.id}/ask/edit",
        "delete": f"comments/{comment.id}/ask/delete",
        "vote": f"courses/{LESSON}/helpful",
        "thanks": f"feedback/thanks?page=/en/courses/{LESSON}",
        **{f"link-{purpose}": f"mail/{token}" for purpose, token in links.items()},
    }


@pytest.mark.parametrize(
    ("lang", "width", "dark"), [("en", 1280, False), ("ko", 360, True), ("zh", 360, False)], ids=["desk", "phone", "zh"]
)
async def test_axe_finds_nothing_on_pages_that_are_seldom_seen(hall: Hall, lang: str, width: int, dark: bool) -> None:
    ada, account = await somebody(hall, "Ada Byron", width=width, height=800, dark=dark)
    pages = await made_ready(ada.site.database, account)
    PICTURES.mkdir(exist_ok=True, parents=True)
    page = await ada.page()
    for name, path in pages.items():
        await page.goto(ada.site.url(f"/{lang}/{path}"))
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert await violations(page) == [], name
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} scrolls"
        await page.screenshot(path=PICTURES / f"seldom-{name}-{lang}.png", full_page=True)
