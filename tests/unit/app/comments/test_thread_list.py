"""Lists of threads that were rendered before: as fresh as new ones after every change, and to each person their own."""

from __future__ import annotations

import re
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import delete, update

from app.accounts.models import Account, Role
from app.comments import queries, thread_list
from app.comments.models import Comment
from app.comments.thread_list import THREAD_LISTS, ThreadLists, lifetime_s
from app.comments.views import thread_views
from app.db import now
from tests.factories.comments import COMMENTS_URL, HTML, HTMX, NEW, NOBODY, Classroom, Commenters, post_comment

_KEY = re.compile(r'name="key" value="[^"]+"')
_LONG_AGO = timedelta(days=40)
"""Lists show a date and no time, so that two renderings are the same."""


@pytest.fixture
async def viewers(room: Classroom) -> dict[str, httpx.AsyncClient]:
    return {"stranger": room.stranger, "ada": room.ada, "bob": room.bob, "teacher": room.teacher}


async def read(room: Classroom, client: httpx.AsyncClient, address: str = COMMENTS_URL, *, cold: bool = False) -> str:
    """What a viewer gets; ``cold``: from a process that has rendered nothing yet."""
    warm = THREAD_LISTS.get(room.app)
    if cold:
        THREAD_LISTS.set(room.app, ThreadLists(0))
    response = await client.get(address, headers=HTMX)
    THREAD_LISTS.set(room.app, warm)
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    return _KEY.sub("", response.text)


async def age(room: Classroom) -> None:
    async with room.app.state.db.writing() as session:
        await session.execute(update(Comment).values(created_at=now() - _LONG_AGO))


async def test_after_every_change_each_viewer_gets_what_a_new_process_renders(
    room: Classroom, viewers: dict[str, httpx.AsyncClient]
) -> None:
    db = room.app.state.db
    root = await post_comment(room.ada, "The root")
    reply = await post_comment(room.bob, "The reply", thread=root)
    other = await post_comment(room.bob, "Another thread")
    await age(room)

    async def act(client: httpx.AsyncClient, path: str, **fields: str) -> None:
        response = await client.post(f"/en/comments/{path}", data=fields, headers=HTML)
        assert response.status_code in (200, 303), response.text

    async def change(**values: object) -> None:
        async with db.writing() as session:
            await session.execute(update(Account).where(Account.id == room.names["bob"].id).values(**values))

    async def erase() -> None:
        async with db.writing() as session:
            await session.execute(delete(Account).where(Account.id == room.names["bob"].id))

    steps = {
        "react": lambda: act(room.bob, f"{root}/reactions", add="helpful"),
        "react too": lambda: act(room.teacher, f"{root}/reactions", add="same"),
        "take it back": lambda: act(room.bob, f"{root}/reactions", remove="helpful"),
        "edit": lambda: act(room.ada, root, text="Another root", edits="0"),
        "edit a reply": lambda: act(room.bob, reply, text="Another reply", edits="0"),
        "pin": lambda: act(room.teacher, f"{root}/moderate", verb="pin"),
        "answer": lambda: act(room.teacher, f"{reply}/moderate", verb="answer"),
        "report": lambda: act(room.ada, f"{other}/report", text="A reason"),
        "dismiss": lambda: act(room.teacher, f"{other}/moderate", verb="dismiss"),
        "hide": lambda: act(room.teacher, f"{other}/moderate", verb="hide", text="A secret reason"),
        "another reason": lambda: act(room.teacher, f"{other}/moderate", verb="hide", text="A better reason"),
        "hide a reply": lambda: act(room.teacher, f"{reply}/moderate", verb="hide", text="A secret reason"),
        "show it": lambda: act(room.teacher, f"{reply}/moderate", verb="show"),
        "rename": lambda: change(name="Rob Moore"),
        "another handle": lambda: change(handle="rob"),
        "promote": lambda: change(role=Role.instructor),
        "demote": lambda: change(role=Role.learner),
        "delete a reply": lambda: act(room.bob, f"{reply}/delete"),
        "delete a root": lambda: act(room.ada, f"{root}/delete"),
        "erase": erase,
    }
    for step, take in steps.items():
        before = {name: await read(room, client) for name, client in viewers.items()}
        await take()
        changed = False
        for name, client in viewers.items():
            if step == "erase" and name == "bob":
                continue
            warm, cold = await read(room, client), await read(room, client, cold=True)
            assert warm == cold, f"{name} after {step}"
            assert await read(room, client) == cold, f"{name} again after {step}"
            changed |= warm != before[name]
        assert changed, f"nobody sees {step}"


async def test_what_is_one_persons_never_reaches_another(
    room: Classroom, viewers: dict[str, httpx.AsyncClient]
) -> None:
    settings = room.app.state.settings
    root = await post_comment(room.ada, "By Ada")
    room.app.state.settings = settings.model_copy(update={"hold_first_comments": 1})
    await post_comment(room.bob, "Held, by Bob")
    hidden = await post_comment(room.teacher, "Hidden soon")
    await room.teacher.post(f"/en/comments/{hidden}/moderate", data={"verb": "hide", "text": "Why"}, headers=HTML)
    await room.bob.post(f"/en/comments/{root}/reactions", data={"add": "thanks"}, headers=HTML)

    for order in (list(viewers), list(reversed(viewers))):  # whoever comes first fills the cache
        THREAD_LISTS.set(room.app, ThreadLists(10**7))
        seen = {name: await read(room, viewers[name]) for name in order}
        assert {name for name in seen if "Held, by Bob" in seen[name]} == {"bob", "teacher"}
        assert {name for name in seen if "Hidden soon" in seen[name]} == {"teacher"}
        assert {name for name in seen if f"comments/{root}/forms/edit" in seen[name]} == {"ada"}
        assert {name for name in seen if f"comments/{root}/forms/hide" in seen[name]} == {"teacher"}
        assert {name for name in seen if f"comments/{root}/forms/report" in seen[name]} == {"bob"}
        assert {name for name in seen if 'name="remove" value="thanks"' in seen[name]} == {"bob"}
        assert {name for name in seen if "Sign in to comment" in seen[name]} == {"stranger"}
        for name, account in room.names.items():
            assert {each for each in seen if f'data-whose="{account.handle}"' in seen[each]} == {name}


async def test_each_language_and_each_cell_has_a_list_of_its_own(room: Classroom) -> None:
    await post_comment(room.ada, "About the lesson")
    await post_comment(room.ada, "About the cell", cell="hello")
    korean = COMMENTS_URL.replace("/en/", "/ko/")

    assert "답글" in await read(room, room.bob, korean)
    assert "Reply" in await read(room, room.bob)
    assert "답글" in await read(room, room.bob, korean)
    assert "About the cell" not in await read(room, room.bob)
    assert "About the lesson" not in await read(room, room.bob, f"{COMMENTS_URL}?cell=hello")


async def test_the_second_reader_gets_the_list_that_the_first_had_rendered(
    room: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post_comment(room.ada, "Once")
    await age(room)
    first = await read(room, room.bob)

    async def rendered_again(*_: object) -> None:
        raise AssertionError("the list was rendered again")

    monkeypatch.setattr(thread_list, "thread_views", rendered_again)

    assert await read(room, room.bob) == first


async def test_each_form_has_a_key_of_its_own_and_can_be_sent(room: Classroom) -> None:
    keys = set()
    for _ in range(2):
        page = (await room.ada.get(COMMENTS_URL, headers=HTMX)).text
        found = re.search(r'name="key" value="([^"]+)"', page)
        assert found
        keys.add(found[1])
    assert len(keys) == 2
    await post_comment(room.ada, "Sent", key=keys.pop())


async def test_a_list_is_the_same_with_and_without_compression(room: Classroom) -> None:
    await post_comment(room.ada, "한글 " * 300)
    await age(room)
    plain = await room.bob.get(COMMENTS_URL, headers=HTMX | {"accept-encoding": "identity"})
    zipped = await room.bob.get(COMMENTS_URL, headers=HTMX | {"accept-encoding": "gzip"})

    assert "content-encoding" not in plain.headers
    assert zipped.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in zipped.headers["vary"]
    assert _KEY.sub("", plain.text) == _KEY.sub("", zipped.text)


async def test_a_new_comment_is_kept_for_as_long_as_its_time_is_about_right(people: Commenters) -> None:
    await people.write(people.ada)
    async with people.db.session() as session:
        threads, _ = await queries.list_threads(session, NOBODY, NEW.lesson, "")
        views = await thread_views(session, NOBODY, threads)
    written = views[0].root.comment.created_at

    assert lifetime_s(views, written + timedelta(seconds=5)) == 1
    assert lifetime_s(views, written + timedelta(seconds=120)) == pytest.approx(12)
    assert lifetime_s(views, written + timedelta(days=1)) == 60
    assert lifetime_s([], written) == 60
