"""A whole class on one small machine: the real site with the real runner, and everybody at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import httpx
import pytest

from app.accounts.auth_sessions import create_auth_session
from app.accounts.session_cookie import SESSION_COOKIE
from app.db import Database
from tests.browser.site import Site
from tests.factories.accounts import store_account
from tests.factories.sse_client import parse_events, printed_text

LEARNERS = int(os.environ.get("LOCKSTEP_TEST_CLASS", "40"))
"""How many come at once."""
LESSON = "distributed-tensorflow/distribution-strategies"
PAGE = f"/en/courses/{LESSON}"
CODE = """import tensorflow as tf
for step in range({steps}):
    print({learner}, step, float(tf.reduce_sum(tf.ones([100, 100]))), flush=True)"""
STEPS = 50


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """The site, with room for a quarter of the class at a time."""
    with Site(max_sessions=str(LEARNERS // 4), limits__memory_mb="512") as site:
        yield site


@pytest.fixture
async def learners(site: Site) -> AsyncIterator[list[httpx.AsyncClient]]:
    """The browsers of the whole class, signed in."""
    db = Database(site.database)
    async with AsyncExitStack() as leave:
        clients = []
        for number in range(LEARNERS):
            account = await store_account(db, name=f"Learner {number}")
            async with db.writing() as session:
                token = await create_auth_session(
                    session, account, method="password", user_agent="A test", ip_address="127.0.0.1"
                )
            clients.append(
                await leave.enter_async_context(
                    httpx.AsyncClient(
                        base_url=site.url(""),
                        headers={"sec-fetch-site": "same-origin"},
                        cookies={SESSION_COOKIE: token},
                        timeout=httpx.Timeout(60, read=300),
                    )
                )
            )
        await db.close()
        yield clients


async def run(client: httpx.AsyncClient, learner: int) -> str:
    """Press Run and return the output of the run, while the page is reloaded again and again."""
    code = CODE.format(learner=learner, steps=STEPS)
    asked = await client.post("/runs", json={"lesson": LESSON, "cell": "strategy", "code": code})
    assert asked.status_code == 202, asked.text
    stream, *pages = await asyncio.gather(
        client.get(f"/runs/{asked.json()['id']}/stream"), *(client.get(PAGE) for _ in range(5))
    )
    assert {page.status_code for page in pages} == {200}
    frames = parse_events(stream.text)
    assert [frame.data["outcome"] for frame in frames if frame.event == "finished"] == ["ok"], stream.text[-2000:]
    return printed_text(frames)


@pytest.mark.timeout(900)
async def test_a_class_that_runs_at_once_has_every_line_of_its_own_output(
    site: Site, learners: list[httpx.AsyncClient]
) -> None:
    outputs = await asyncio.gather(*(run(client, number) for number, client in enumerate(learners)))

    wanted = ["".join(f"{number} {step} 10000.0\n" for step in range(STEPS)) for number in range(LEARNERS)]
    assert outputs == wanted
    assert '"level": "error"' not in site.log()
    assert (await learners[0].get("/readyz")).status_code == 200
