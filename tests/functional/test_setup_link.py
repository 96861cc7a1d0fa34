"""The link that ``lockstep serve`` prints while there is no admin: it makes one, once, and only while there is none."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from app.accounts.invitations import InvalidSetupLink, create_setup_link, find_invitation, use_invitation
from app.accounts.models import Account, Invitation, Role
from app.accounts.service import create_account
from app.admin.models import AuditEntry
from app.cli.setup_link import print_setup_link
from app.db import Database, now
from app.main import create_app
from app.settings import Settings
from tests.factories.accounts import store_account
from tests.factories.browser_client import browser_client
from tests.factories.cli_process import finish, start
from tests.factories.http_server import free_port

PASSWORD = "correct horse battery"
ADA = {"name": "Ada Byron", "email": "ada@example.org", "password": PASSWORD, "time_zone": "Europe/London"}
EVE = {**ADA, "name": "Eve Moore", "email": "eve@example.org"}


@pytest.fixture(params=["open", "invitation", "closed"])
async def site(request: pytest.FixtureRequest, settings: Settings) -> AsyncIterator[FastAPI]:
    """A new site with each rule about who may sign up."""
    app = create_app(settings.model_copy(update={"sign_up": request.param}))
    async with app.router.lifespan_context(app):
        yield app


async def new_link(app: FastAPI) -> str:
    async with app.state.db.writing() as session:
        token = await create_setup_link(session)
    assert token is not None
    return token


async def roles(db: Database) -> list[tuple[str, str]]:
    async with db.session() as session:
        return [(email, role) for email, role in await session.execute(select(Account.email, Account.role))]


async def test_whoever_opens_the_link_first_is_the_admin_and_signed_in(site: FastAPI) -> None:
    token, other = await new_link(site), await new_link(site)
    async with browser_client(site) as client, browser_client(site) as stranger:
        page = await client.get("/en/sign-up", params={"invitation": token})
        assert "Create the first admin" in page.text
        assert page.headers["cache-control"] == "no-store"

        assert (await client.post("/en/sign-up", data={**ADA, "invitation": token})).status_code == 303

        assert "Ada Byron" in (await client.get("/en/account-menu")).text
        assert await roles(site.state.db) == [(ADA["email"], Role.admin)]
        async with site.state.db.session() as session:
            (entry,) = await session.scalars(select(AuditEntry))
            ada = await session.scalar(select(Account.id))
        assert (entry.action, entry.detail, entry.actor_id, entry.account_id) == ("account_created", "admin", ada, ada)
        for dead in (token, other):
            assert (await stranger.get("/en/sign-up", params={"invitation": dead})).status_code == 403
            late = await stranger.post("/en/sign-up", data={**EVE, "invitation": dead})
            assert late.status_code == 403
            assert "there is already an admin" in late.text
    async with site.state.db.writing() as session:
        assert await create_setup_link(session) is None
    assert await roles(site.state.db) == [(ADA["email"], Role.admin)]


@pytest.mark.parametrize("site", ["open"], indirect=True)
@pytest.mark.parametrize("links", [1, 2])
async def test_two_browsers_at_once_make_one_admin(site: FastAPI, links: int) -> None:
    tokens = [await new_link(site) for _ in range(links)]
    async with browser_client(site) as one, browser_client(site) as two:
        sent = [
            one.post("/en/sign-up", data={**ADA, "invitation": tokens[0]}),
            two.post("/en/sign-up", data={**EVE, "invitation": tokens[-1]}),
        ]
        answers = await asyncio.gather(*sent)

    assert sorted(answer.status_code for answer in answers) == [303, 403]
    assert [role for _, role in await roles(site.state.db)] == [Role.admin]


async def test_of_two_links_that_are_used_in_one_moment_one_is_refused(database: Database) -> None:
    async with database.writing() as session:
        tokens = [await create_setup_link(session), await create_setup_link(session)]
    both_have_looked = asyncio.Barrier(2)

    async def become_admin(token: str | None, email: str) -> None:
        async with database.session() as session:
            invitation = await find_invitation(session, token or "")
        await both_have_looked.wait()
        async with database.writing() as session:
            await use_invitation(session, invitation)
            await create_account(session, email=email, name="Ada", role=Role.admin, confirmed=True)

    results = await asyncio.gather(
        *(become_admin(token, f"{n}@example.org") for n, token in enumerate(tokens)), return_exceptions=True
    )

    assert [type(result) for result in results if result] == [InvalidSetupLink]
    assert [role for _, role in await roles(database)] == [Role.admin]


@pytest.mark.parametrize("site", ["open"], indirect=True)
async def test_an_old_link_is_dead_and_only_its_hash_is_stored(site: FastAPI) -> None:
    token = await new_link(site)
    async with site.state.db.writing() as session:
        (stored,) = (await session.scalars(select(Invitation))).all()
        assert token not in str(vars(stored))
        assert stored.expires_at <= now() + timedelta(hours=24)
        await session.execute(update(Invitation).values(expires_at=now()))
    async with browser_client(site) as client:
        answer = await client.post("/en/sign-up", data={**ADA, "invitation": token})
    assert answer.status_code == 403
    assert "restart the server" in answer.text
    assert await roles(site.state.db) == []


@pytest.mark.parametrize("site", ["open"], indirect=True)
async def test_the_link_takes_over_no_account_that_exists_and_stays_valid(site: FastAPI) -> None:
    token = await new_link(site)
    await store_account(site.state.db, email=ADA["email"])
    async with browser_client(site) as client:
        taken = await client.post("/en/sign-up", data={**ADA, "invitation": token})
        assert taken.status_code == 403
        assert "already exists" in taken.text
        assert "Create the first admin" in taken.text
        assert (await client.post("/en/sign-up", data={**EVE, "invitation": token})).status_code == 303
    assert dict(await roles(site.state.db)) == {ADA["email"]: Role.learner, EVE["email"]: Role.admin}


async def test_the_server_prints_the_link_until_there_is_an_admin(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"http://localhost:{(port := free_port())}"
    process = await start(
        *("serve", "--port", str(port)),
        data_dir=settings.data_dir,
        lessons_dir=settings.lessons_dir,
        runner_socket=settings.data_dir / "none",
        published_address=f"localhost:{port}",
    )
    assert process.stderr is not None
    said = ""
    async with asyncio.timeout(120):
        while " is at http" not in said:
            said += (line := await process.stderr.readline()).decode()
            assert line, said
    (link,) = re.findall(r"^There is no admin yet\. Open this link within 24 hours to create one: (\S+)$", said, re.M)
    assert f" is at {address} (press" in said
    token = link.removeprefix(f"{address}/en/sign-up?invitation=")
    async with httpx.AsyncClient(base_url=address, headers={"origin": address}, timeout=30) as client:
        made = await client.post("/en/sign-up", data={**ADA, "invitation": token})
        assert made.status_code == 303, made.text
    process.terminate()
    await finish(process)

    capsys.readouterr()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await asyncio.to_thread(print_setup_link, settings, listener)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("host", "public_url", "published", "site"),
    [
        ("127.0.0.1", "https://learn.example.org", "127.0.0.1:9000", "https://learn.example.org/en/"),
        ("0.0.0.0", "", "", "http://127.0.0.1:"),
        ("::1", "", "", "http://[::1]:"),
        ("0.0.0.0", "", "127.0.0.1:9000", "http://127.0.0.1:9000/en/"),
        ("0.0.0.0", "", "0.0.0.0:8000-8002", "http://127.0.0.1:8000/en/"),
        ("0.0.0.0", "", "[::]:9000", "http://[::1]:9000/en/"),
        ("0.0.0.0", "", "192.0.2.7:9000", "http://192.0.2.7:9000/en/"),
        ("::1", "", "127.0.0.1:0", "http://[::1]:"),  # Docker picks the port
    ],
)
def test_the_link_leads_to_the_address_of_the_site(
    settings: Settings, capsys: pytest.CaptureFixture[str], host: str, public_url: str, published: str, site: str
) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    known = {"public_url": public_url, "published_address": published}
    with socket.create_server((host, 0), family=family) as listener:
        print_setup_link(settings.model_copy(update=known), listener)
    assert f"to create one: {site}" in capsys.readouterr().err
