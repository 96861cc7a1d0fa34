"""Comments, and people who write them, with a database or with browsers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import httpx
from fastapi import FastAPI

from app.accounts.models import Account
from app.comments import editing, queries
from app.comments.editing import CommentDraft
from app.comments.models import Comment
from app.comments.permissions import Viewer
from app.db import Database, now

NEW = CommentDraft(lesson="small/first", cell="", thread_id=None, text="Hello", key="k1", language="en")
NOBODY = Viewer(None, False)
COMMENTS_URL = "/en/courses/small/first/comments"
HTML = {"accept": "text/html,*/*"}
HTMX = {"hx-request": "true", "accept": "*/*"}


@dataclass
class Commenters:
    """The people in a discussion, and shortcuts for their actions."""

    db: Database
    ada: Account
    bob: Account
    teacher: Account

    async def write(self, author: Account, text: str = "Hello", thread: Comment | None = None, **more: int) -> Comment:
        draft = replace(NEW, text=text, key=f"{author.id}{text}", thread_id=thread.id if thread else None)
        async with self.db.writing() as session:
            return await editing.create_comment(session, author, draft, **more)

    async def read(self, comment: Comment) -> Comment:
        async with self.db.session() as session:
            return await session.get_one(Comment, comment.id)

    async def count(self) -> int:
        async with self.db.session() as session:
            return (await queries.count_by_cell(session, NEW.lesson)).get("", 0)


def make_comment(author: Account, number: int, thread_id: str | None = None) -> Comment:
    return Comment(
        id=f"{number:04}",
        lesson=NEW.lesson,
        cell="",
        thread_id=thread_id,
        author_id=author.id,
        idempotency_key=str(number),
        source="x",
        html="<p>x</p>",
        renderer_version=1,
        language="en",
        created_at=now(),
        reply_count=120 if not number else 0,
    )


@dataclass
class Classroom:
    """People with each role, each with a browser."""

    app: FastAPI
    stranger: httpx.AsyncClient
    ada: httpx.AsyncClient
    bob: httpx.AsyncClient
    teacher: httpx.AsyncClient
    names: dict[str, Account]


async def post_comment(client: httpx.AsyncClient, text: str = "Hello", **fields: str) -> str:
    """Send the form as a browser without scripts does; returns the id of the comment."""
    response = await client.post(COMMENTS_URL, data={"text": text, "key": f"k{text[:20]}", **fields}, headers=HTML)
    assert response.status_code == 303, response.text
    found = re.fullmatch(r"/en/comments/([0-9a-f]+)#c-\1", response.headers["location"])
    assert found
    return found[1]
