"""Accounts for tests, and browsers that are signed in to them."""

from __future__ import annotations

import secrets

import httpx
from fastapi import FastAPI

from app.accounts.models import Account, Role
from app.accounts.people import make_account
from app.accounts.sign_in_cookie import ACCOUNT, NAME
from app.accounts.sign_ins import start_sign_in
from app.accounts.tokens import marker
from app.db import Database
from tests.factories.browser import browser


async def an_account(
    db: Database, role: Role | str = Role.learner, *, name: str = "Ada Byron", email: str = ""
) -> Account:
    """Store a confirmed account without a password; its address is made up unless one is given."""
    address = email or f"{secrets.token_hex(4)}@example.org"
    async with db.writing() as session:
        return await make_account(session, email=address, name=name, role=Role(role), confirmed=True)


async def signed_in(app: FastAPI, account: Account | Role | str = Role.learner) -> httpx.AsyncClient:
    """A browser that is signed in to an account, or to a new one of that role. Use it in ``async with``."""
    db: Database = app.state.db
    if not isinstance(account, Account):
        account = await an_account(db, account)
    async with db.writing() as session:
        token = await start_sign_in(session, account, method="password", agent="A test", address="192.0.2.1")
    client = browser(app)
    for name, value in ((NAME, token), (ACCOUNT, marker(account.learner_id))):
        client.cookies.set(name, value, domain="test.local")  # as the answer to a sign-in would
    return client
