"""Searching lessons and comments over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.accounts.models import Account
from app.comments import queries
from app.comments.models import CommentState
from app.db import Database
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account
from tests.factories.comments import HTML, HTMX, make_comment
from tests.factories.xss_payloads import XSS_PAYLOADS

RESULTS = {**HTMX, "hx-target": "div#search-results"}


async def test_the_page_works_without_a_script(client: httpx.AsyncClient) -> None:
    page = await client.get("/en/search", params={"q": "first lesson"}, headers=HTML)
    assert page.status_code == 200
    assert 'value="first lesson"' in page.text
    assert '<a href="/en/courses/small/first?mark=first%20lesson">The <mark>first</mark> <mark>lesson</mark></a>' in (
        page.text
    )
    assert '<meta name="robots" content="noindex">' in page.text


async def test_the_dialog_gets_the_field_and_then_only_results(client: httpx.AsyncClient) -> None:
    dialog = (await client.get("/en/search", headers={**HTMX, "hx-target": "div#search-place"})).text
    results = (await client.get("/en/search?q=say+hello", headers=RESULTS)).text
    assert "<form" in dialog
    assert "<form" not in results
    assert "#cell-hello" in results
    assert "<!doctype" not in dialog + results


async def test_a_cell_is_found_by_its_code(client: httpx.AsyncClient) -> None:
    results = (await client.get("/en/search?q=print(", headers=RESULTS)).text
    assert "<code><mark>print(</mark>" in results


async def test_nothing_found_is_said(client: httpx.AsyncClient) -> None:
    assert "No lesson contains all of these words." in (await client.get("/en/search?q=zebra", headers=RESULTS)).text


async def test_no_query_becomes_markup(client: httpx.AsyncClient) -> None:
    for payload in (payload for payload in XSS_PAYLOADS if "<" in payload):
        for path in ("/en/search", "/en/search/comments"):
            page = await client.get(path, params={"q": payload}, headers=HTML)
            assert page.status_code == 200
            assert payload not in page.text


async def test_drafts_are_found_by_instructors_only(
    settings: Settings, app: FastAPI, client: httpx.AsyncClient
) -> None:
    file = settings.lessons_dir / "small" / "first" / "lesson.md"
    file.write_text(file.read_text().replace("status: published", "status: draft"))
    app.state.catalog.reload()
    teacher = await signed_in_browser(app, "instructor")
    assert "small/first" not in (await client.get("/en/search?q=prose", headers=RESULTS)).text
    assert "small/first" in (await teacher.get("/en/search?q=prose", headers=RESULTS)).text
    await teacher.aclose()


@pytest.fixture
async def ada(database: Database) -> Account:
    return await store_account(database)


async def store(database: Database, author: Account, *sources: str, **values: object) -> list[str]:
    async with database.writing() as session:
        comments = [make_comment(author, number) for number, _ in enumerate(sources)]
        for comment, source in zip(comments, sources, strict=True):
            comment.source = source
            for name, value in values.items():
                setattr(comment, name, value)
        session.add_all(comments)
        return [comment.id for comment in comments]


async def found(database: Database, *words: str, hidden: tuple[str, ...] = ()) -> list[str]:
    async with database.session() as session:
        return [comment.source for comment in await queries.find_comments(session, words, hidden)]


async def test_comments_contain_all_words_and_the_newest_come_first(database: Database, ada: Account) -> None:
    await store(database, ada, "Scale the LOSS", "the loss is wrong", "scale losses", "100% of_it", "각 副本 한 번")
    assert await found(database, "loss", "scale") == ["scale losses", "Scale the LOSS"]
    assert await found(database, "%") == ["100% of_it"]
    assert await found(database, "f_i") == ["100% of_it"]
    assert await found(database, "副本", "번") == ["각 副本 한 번"]
    assert await found(database, "\\") == []
    assert await found(database) == []


@pytest.mark.parametrize(("word", "slow"), [("loss", False), ("副本", False), ("größe", True)])
async def test_only_letters_outside_ascii_are_compared_by_the_slow_rules_of_a_locale(
    database: Database, ada: Account, monkeypatch: pytest.MonkeyPatch, word: str, slow: bool
) -> None:
    await store(database, ada, f"a {word} here", word, "another")
    statements: list[str] = []
    async with database.session() as session:
        scalars = session.scalars

        async def read(statement: Any) -> Any:
            statements.append(str(statement.compile(session.get_bind())))
            return await scalars(statement)

        monkeypatch.setattr(session, "scalars", read)
        assert len(await queries.find_comments(session, [word], ())) == 2
        assert ("ILIKE" in statements[0]) is (slow and session.get_bind().dialect.name == "postgresql")


async def test_a_search_reads_so_many_comments_at_most_the_newest_first(
    database: Database, ada: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(database, ada, "Loss 1", "loss 2", "other", "LOSS 3")
    assert await found(database, "loss") == ["LOSS 3", "loss 2", "Loss 1"]
    monkeypatch.setattr(queries, "_MAX_SEARCHED_COMMENTS", 3)
    assert await found(database, "loss") == ["LOSS 3", "loss 2"]


@pytest.mark.parametrize("state", [state for state in CommentState if state is not CommentState.shown])
async def test_only_shown_comments_are_found(database: Database, ada: Account, state: CommentState) -> None:
    await store(database, ada, "a secret", state=state)
    assert await found(database, "secret") == []


async def test_comments_on_drafts_are_not_found(database: Database, ada: Account) -> None:
    await store(database, ada, "a secret")
    assert await found(database, "secret", hidden=("small/first",)) == []
    assert await found(database, "secret", hidden=("small/other",)) == ["a secret"]


async def test_found_comments_link_to_their_place(app: FastAPI, client: httpx.AsyncClient) -> None:
    teacher = await signed_in_browser(app, "instructor")
    form = {"text": "Why <b>divide</b> the loss?", "key": "k1"}
    sent = await teacher.post("/en/courses/small/first/comments", data=form, headers=HTML)
    page = (await client.get("/en/search/comments?q=DIVIDE", headers=HTMX)).text
    assert f'href="{sent.headers["location"]}"' in page
    assert "Why &lt;b&gt;<mark>divide</mark>&lt;/b&gt; the loss?" in page
    await teacher.aclose()
