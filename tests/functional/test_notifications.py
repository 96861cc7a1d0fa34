"""Notifications over HTTP: the bell, its stream, the list, and unsubscribe links."""

from __future__ import annotations

import asyncio
import re
import stat
from datetime import timedelta

import pytest
from fastapi import FastAPI
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, AuthSession, EmailFrequency
from app.comments import editing, moderation
from app.comments.editing import CommentDraft
from app.comments.models import Comment
from app.db import Database, now
from app.errors import TooManyRequests
from app.main import create_app
from app.notifications import service, unread_stream
from app.notifications.models import NotificationKind
from app.notifications.unsubscribe_links import LINK_LIFETIME, UnsubscribeRequest
from app.progress.events import LearningEvent
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import FIRST_RUN, LESSON
from tests.factories.scripted_supervisor import ScriptedSupervisor
from tests.factories.smtp_server import SmtpMailbox, serve_smtp

NAME = 'Bob <img src=x onerror="alert(1)">'
_FIRST_DAY_AND_HELP = """
[[achievements]]
id = "first-day"
badge = "course"
xp = 5
title.en = "A day"
description.en = "Come here on one day."
needs = { kind = "day" }

[[achievements]]
id = "first-help"
badge = "helpful"
xp = 5
title.en = "Helpful"
description.en = "Help somebody."
needs = { kind = "helpful" }
"""
EVENTS = {"accept": "text/event-stream"}


async def a_reply(
    app: FastAPI, ada: Account, name: str = NAME, text: str = "Because <b>four</b>.", *, elsewhere: bool = False
) -> Comment:
    """Somebody answers Ada's question; ``elsewhere``: by another web process, whose events do not reach this one."""
    bob = await store_account(app.state.db, name=name)
    db: Database = Database(app.state.db.url) if elsewhere else app.state.db
    async with db.writing() as session:
        root = await editing.create_comment(
            session, ada, CommentDraft(LESSON, "", None, f"Why four? {now()}", "k1", "en")
        )
        told = await editing.create_comment(session, bob, CommentDraft(LESSON, "", root.id, text, "k2", "en"))
    if elsewhere:
        await db.close()
    return told


async def the_sign_in(session: AsyncSession, account: Account) -> AuthSession:
    found = await session.scalar(select(AuthSession).where(AuthSession.account_id == account.id))
    assert found
    return found


@pytest.mark.parametrize("lang", ["en", "ko", "zh"])
async def test_the_bell_says_in_words_how_many_are_unread(app: FastAPI, lang: str) -> None:
    ada = await store_account(app.state.db)
    async with await signed_in_browser(app, ada) as client:
        before = (await client.get(f"/{lang}/notifications/bell")).text
        await a_reply(app, ada)
        after = await client.get(f"/{lang}/notifications/bell")
    assert 'data-unread="0"' in before
    assert "bell-count" not in before
    words = {"en": "Notifications: 1 unread", "ko": "알림: 읽지 않은 것 1건", "zh": "1 条未读"}[lang]
    assert words in after.text
    assert after.headers["cache-control"] == "no-store"
    async with browser_client(app) as stranger:
        assert (await stranger.get(f"/{lang}/notifications/bell")).text.strip() == ""


async def test_a_notification_leads_to_its_comment_and_is_read_then(app: FastAPI) -> None:
    ada = await store_account(app.state.db)
    told = await a_reply(app, ada)
    async with await signed_in_browser(app, ada) as client, await signed_in_browser(app) as other:
        page = await client.get("/en/notifications")
        link = re.search(r'href="(/en/notifications/[0-9a-f]+)"', page.text)
        assert link
        assert "<img src=x" not in page.text
        assert "Bob &lt;img src=x onerror=&#34;alert(1)&#34;&gt; replied in one of your threads" in page.text
        assert "Because &lt;b&gt;four&lt;/b&gt;." in page.text
        assert ">unread<" in page.text
        assert page.headers["cache-control"] == "no-store"
        assert (await other.get(link[1])).status_code == 404
        opened = await client.get(link[1])
        assert (opened.status_code, opened.headers["location"]) == (303, f"/en/comments/{told.id}#c-{told.id}")
        page = await client.get("/en/notifications")
    assert ">unread<" not in page.text
    assert "Mark all as read" not in page.text


async def test_all_are_marked_as_read_without_a_script(app: FastAPI) -> None:
    ada = await store_account(app.state.db)
    for name in ("Bob", "Cy"):
        await a_reply(app, ada, name)
    async with await signed_in_browser(app, ada) as client:
        one = re.findall(r'name="which" value="([0-9a-f]+)"', (await client.get("/en/notifications")).text)
        assert len(one) == 2
        answer = await client.post("/en/notifications/read", data={"which": one[0]})
        assert (answer.status_code, answer.headers["location"]) == (303, "/en/notifications")
        assert 'data-unread="1"' in (await client.get("/en/notifications/bell")).text
        await client.post("/en/notifications/read")
        assert 'data-unread="0"' in (await client.get("/en/notifications/bell")).text


async def test_a_comment_that_is_gone_or_hidden_is_neither_quoted_nor_linked(app: FastAPI) -> None:
    ada, teacher = await store_account(app.state.db), await store_account(app.state.db, "instructor")
    hidden = await a_reply(app, ada, "Bob", "A hidden reply")
    async with app.state.db.writing() as session:
        await moderation.hide_comment(session, teacher, hidden.id, "Not kind")
    async with await signed_in_browser(app, ada) as client:
        page = (await client.get("/en/notifications")).text
    assert "A hidden reply" not in page
    assert "This is no longer available." in page
    assert not re.search(r'href="/en/notifications/[0-9a-f]+"', page)


async def test_a_comment_is_quoted_without_the_marks_of_markdown(app: FastAPI) -> None:
    ada = await store_account(app.state.db)
    await a_reply(app, ada, text="See **every** `replica` [here](https://example.org)")
    async with await signed_in_browser(app, ada) as client:
        page = (await client.get("/en/notifications")).text
    assert "See every replica here" in page


async def test_the_stream_counts_live_and_ends_with_the_sign_in(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread_stream, "_POLL_INTERVAL_S", 0.2)
    ada = await store_account(app.state.db)
    async with await signed_in_browser(app, ada), asyncio.timeout(20):
        async with app.state.db.session() as session:
            here = await the_sign_in(session, ada)
        frames = app.state.unread_count_streams.events(here)
        assert [frame.data for frame in await anext(frames)] == ["0"]
        await a_reply(app, ada)
        assert [frame.data for frame in await anext(frames)] == ["1"]
        await a_reply(app, ada, elsewhere=True)
        assert [frame.data for frame in await anext(frames)] == ["2"]
        async with app.state.db.writing() as session:
            await session.execute(delete(AuthSession))
        assert [frame.event for frame in await anext(frames)] == ["over"]
        assert await anext(frames, None) is None


async def test_an_achievement_rings_the_bell_with_the_commit_of_what_earned_it(
    settings: Settings, supervisor: ScriptedSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread_stream, "_POLL_INTERVAL_S", 3600.0)
    supervisor.answer = ["1"]
    (settings.lessons_dir / "achievements.toml").write_text(FIRST_RUN + _FIRST_DAY_AND_HELP)
    app = create_app(settings)
    async with app.router.lifespan_context(app), asyncio.timeout(30):
        ada = await store_account(app.state.db)
        async with app.state.db.writing() as session:
            draft = CommentDraft(LESSON, "", None, "It is sharded.", "k1", "en")
            comment = (await editing.create_comment(session, ada, draft)).id
        async with await signed_in_browser(app, ada) as client, await signed_in_browser(app) as bob:
            async with app.state.db.session() as session:
                frames = app.state.unread_count_streams.events(await the_sign_in(session, ada))
            assert [frame.data for frame in await anext(frames)] == ["0"]

            moment = int(now().timestamp() * 1000)
            mark = {"lesson": LESSON, "opened_at": moment, "last_seen_at": moment}
            assert (await client.post("/progress/reading", json={"lessons": [mark]})).status_code == 200
            assert [frame.data for frame in await anext(frames)] == ["1"]

            await press_run(client)
            assert [frame.data for frame in await anext(frames)] == ["2"]

            reacted = await bob.post(f"/en/comments/{comment}/reactions", data={"add": "helpful"})
            assert reacted.status_code == 303
            assert [frame.data for frame in await anext(frames)] == ["3"]
        await frames.aclose()


async def test_one_account_has_only_a_few_streams(app: FastAPI) -> None:
    ada = await store_account(app.state.db)
    async with await signed_in_browser(app, ada) as client:
        async with app.state.db.session() as session:
            here = await the_sign_in(session, ada)
        streams = [app.state.unread_count_streams.events(here) for _ in range(unread_stream.MAX_STREAMS)]
        for stream in streams:
            await anext(stream)
        with pytest.raises(TooManyRequests):
            app.state.unread_count_streams.events(here)
        assert (await client.get("/notifications/stream", headers=EVENTS)).status_code == 429
        await streams[0].aclose()
        streams[0] = app.state.unread_count_streams.events(here)
        await anext(streams[0])
        for stream in streams:
            await stream.aclose()
        assert (await client.get("/notifications/stream")).status_code == 406


async def test_a_stream_without_a_sign_in_says_that_it_is_over_and_is_no_error(app: FastAPI) -> None:
    async with browser_client(app) as stranger:
        answer = await stranger.get("/notifications/stream", headers=EVENTS)
    assert (answer.status_code, answer.text) == (200, "event: over\ndata: {}\n\n")


async def test_streams_that_are_asked_for_at_once_are_not_more(app: FastAPI) -> None:
    ada = await store_account(app.state.db)
    async with await signed_in_browser(app, ada):
        async with app.state.db.session() as session:
            here = await the_sign_in(session, ada)
        streams = [app.state.unread_count_streams.events(here) for _ in range(unread_stream.MAX_STREAMS + 3)]
        begun = [await anext(stream, None) for stream in streams]
        assert begun[unread_stream.MAX_STREAMS :] == [None, None, None]
        for stream in streams:
            await stream.aclose()
        assert await anext(app.state.unread_count_streams.events(here))


# --- links in mails ---------------------------------------------------------------------------------------------------


async def email_settings(app: FastAPI, account: Account) -> tuple[str, list[NotificationKind]]:
    async with app.state.db.session() as session:
        return (await session.get_one(Account, account.id)).email_frequency, await service.email_opt_outs(
            session, account.id
        )


@pytest.mark.parametrize("lang", ["en", "ko", "zh"])
async def test_opening_a_link_of_a_mail_changes_nothing_and_its_button_ends_mails(app: FastAPI, lang: str) -> None:
    ada = await store_account(app.state.db)
    address = (
        f"/{lang}/unsubscribe/{app.state.unsubscribe_tokens.sign(UnsubscribeRequest(ada.id, NotificationKind.reply))}"
    )
    async with browser_client(app) as stranger:
        page = await stranger.get(address)
        assert await email_settings(app, ada) == (EmailFrequency.immediately, [])
        posts = re.findall(r'action="(/[a-z]+/unsubscribe/[^"]+)"', page.text)
        assert posts[0] == address
        assert ada.email not in page.text
        assert (await stranger.post(posts[0])).status_code == 200
        assert await email_settings(app, ada) == (EmailFrequency.immediately, [NotificationKind.reply])
        await stranger.post(posts[1])
        assert await email_settings(app, ada) == (EmailFrequency.never, [NotificationKind.reply])


async def test_a_mail_program_ends_mails_in_one_step_without_saying_where_it_comes_from(app: FastAPI) -> None:
    ada = await store_account(app.state.db)
    address = f"/en/unsubscribe/{app.state.unsubscribe_tokens.sign(UnsubscribeRequest(ada.id, None))}"
    async with browser_client(app) as client:
        client.headers.pop("sec-fetch-site")
        for _ in range(2):
            answer = await client.post(address, data={"List-Unsubscribe": "One-Click"})
            assert answer.status_code == 200
        form = {"List-Unsubscribe": (None, "One-Click")}
        assert (await client.post(address, files=form)).status_code == 200
        assert (await client.post("/en/notifications/read")).status_code == 403, "everything else comes from here"
    assert await email_settings(app, ada) == (EmailFrequency.never, [])


async def test_a_forged_or_expired_link_changes_nothing(app: FastAPI) -> None:
    ada = await store_account(app.state.db)
    ours = app.state.unsubscribe_tokens
    old = ours.sign(UnsubscribeRequest(ada.id, None), now() - LINK_LIFETIME - timedelta(days=1))
    forged = ours.sign(UnsubscribeRequest("f" * 32, None)).replace("f" * 32, ada.id)
    async with browser_client(app) as stranger:
        for token in (old, forged, "x", "%00", "a" * 3000):
            address = f"/en/unsubscribe/{token}"
            assert (await stranger.get(address)).status_code == 404, token
            assert (await stranger.post(address)).status_code == 404, token
    assert await email_settings(app, ada) == (EmailFrequency.immediately, [])


async def test_mails_about_a_kind_can_be_had_again(app: FastAPI) -> None:
    ada = await store_account(app.state.db)
    async with app.state.db.writing() as session:
        await service.opt_out_of_emails(session, ada.id, NotificationKind.mention)
    async with await signed_in_browser(app, ada) as client:
        assert "You do not get emails about mentions." in (await client.get("/en/notifications")).text
        assert (await client.post("/en/notifications/emails", data={"kind": "mention"})).status_code == 303
        assert (await client.post("/en/notifications/emails", data={"kind": "achievement"})).status_code == 422
    assert await email_settings(app, ada) == (EmailFrequency.immediately, [])


async def test_the_secret_of_these_links_is_kept_where_only_we_can_read_it(app: FastAPI) -> None:
    file = app.state.settings.data_dir / "secrets" / "unsubscribe"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


# --- from end to end --------------------------------------------------------------------------------------------------


async def test_a_new_achievement_is_in_the_list_and_links_to_the_achievements(settings: Settings) -> None:
    (settings.lessons_dir / "achievements.toml").write_text(FIRST_RUN)
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        ada = await store_account(app.state.db)
        for _ in range(2):
            async with app.state.db.writing() as session:
                await app.state.progress.ledger.award(
                    session, ada.learner_id, [LearningEvent("cell", f"{LESSON}#hello", 10)]
                )
                await app.state.progress.ledger.award(
                    session, "a stranger", [LearningEvent("cell", f"{LESSON}#hello", 10)]
                )
        async with await signed_in_browser(app, ada) as client:
            assert 'data-unread="1"' in (await client.get("/en/notifications/bell")).text
            page = (await client.get("/ko/notifications")).text
            link = re.search(r'href="(/ko/notifications/[0-9a-f]+)" rel="nofollow">업적을 얻었습니다: 첫걸음</a>', page)
            assert link
            assert page.count("첫걸음") == 2, "in the link and in the name of Mark as read"
            assert (await client.get(link[1])).headers["location"] == "/ko/achievements"


@pytest.mark.parametrize("lang", ["en", "ko", "zh"])
async def test_a_reply_sent_by_a_browser_is_mailed_and_the_mails_links_lead_somewhere(
    settings: Settings, lang: str
) -> None:
    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        mail = {"smtp_url": f"smtp://{address}?tls=off", "mail_from": "Lockstep <l@example.org>"}
        app = create_app(settings.model_copy(update={**mail, "public_url": "http://test"}))
        async with app.router.lifespan_context(app), asyncio.timeout(30):
            ada = await store_account(app.state.db, email="ada@example.org")
            async with app.state.db.writing() as session:
                mine = await session.merge(ada)
                mine.language = lang
                root = await editing.create_comment(
                    session, mine, CommentDraft(LESSON, "", None, "Why four?", "k1", "en")
                )
            async with await signed_in_browser(app) as bob:
                form = {"thread": root.id, "text": "Because <b>four</b>.", "key": "k2"}
                assert (await bob.post(f"/en/courses/{LESSON}/comments", data=form)).status_code == 303
            letter = await postbox.first_mail()
            async with browser_client(app) as reader:
                text = letter.get_body(("plain",))
                assert text is not None
                links = re.findall(r"^http://test(/\S+)$", text.get_content().replace("\r\n", "\n"), re.MULTILINE)
                comment, everything, choices, ending = links
                assert "Because &lt;b&gt;four&lt;/b&gt;." in (await reader.get(comment)).text
                for asks_to_sign_in in (everything, choices):
                    assert asks_to_sign_in.startswith(f"/{lang}/")
                    assert (await reader.get(asks_to_sign_in)).status_code == 401
                assert letter["list-unsubscribe"] == f"<http://test{ending}>"
                assert (await reader.post(ending)).status_code == 200
            assert await email_settings(app, ada) == (EmailFrequency.immediately, [NotificationKind.reply])
    assert postbox.recipients == ["ada@example.org"]


async def test_a_comment_that_is_held_tells_nobody_until_it_is_approved(app: FastAPI) -> None:
    ada, bob = await store_account(app.state.db), await store_account(app.state.db)
    teacher = await store_account(app.state.db, "instructor")
    async with await signed_in_browser(app, ada) as client:
        async with app.state.db.writing() as session:
            root = await editing.create_comment(session, ada, CommentDraft(LESSON, "", None, "Why?", "k1", "en"))
            held = await editing.create_comment(
                session, bob, CommentDraft(LESSON, "", root.id, "So.", "k2", "en"), hold_first=1
            )
        assert 'data-unread="0"' in (await client.get("/en/notifications/bell")).text
        for _ in range(2):
            async with app.state.db.writing() as session:
                await moderation.approve_comment(session, teacher, held.id)
        assert 'data-unread="1"' in (await client.get("/en/notifications/bell")).text
