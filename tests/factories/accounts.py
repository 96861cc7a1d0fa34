"""Accounts for tests, and browsers that are signed in to them."""

from __future__ import annotations

import secrets

import httpx
from fastapi import FastAPI

from app.accounts.auth_sessions import create_auth_session
from app.accounts.models import Account, Role
from app.accounts.service import create_account
from app.accounts.session_cookie import ACCOUNT_COOKIE, SESSION_COOKIE
from app.accounts.tokens import learner_marker
from app.db import Database
from tests.factories.browser_client import browser_client


async def store_account(
    db: Database, role: Role | str = Role.learner, *, name: str = "Ada Byron", email: str = ""
) -> Account:
    """Store a confirmed account without a password; its email address is generated unless given."""
    address = email or f"{secrets.token_hex(4)}@example.org"
    async with db.writing() as session:
        return await create_account(session, email=address, name=name, role=Role(role), confirmed=True)


async def signed_in_browser(
    app: FastAPI, account: Account | Role | str = Role.learner, *, db: Database | None = None
) -> httpx.AsyncClient:
    """A browser that is signed in to an account, or to a new one with that role. Use it in ``async with``.

    ``db`` is the application's database with other limits, if its own are too tight to prepare a test.
    """
    db = db or app.state.db
    if not isinstance(account, Account):
        account = await store_account(db, account)
    async with db.writing() as session:
        token = await create_auth_session(
            session, account, method="password", user_agent="A test", ip_address="192.0.2.1"
        )
    client = browser_client(app)
    for name, value in ((SESSION_COOKIE, token), (ACCOUNT_COOKIE, learner_marker(account.learner_id))):
        client.cookies.set(name, value, domain="test.local")  # as the answer to a sign-in would
    return client
