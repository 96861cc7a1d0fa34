"""API tokens for tests, and the header that carries one."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from app.accounts.api_tokens import NewToken, TokenScope, create_token
from app.accounts.models import Account
from app.db import Database


async def store_token(
    db: Database,
    account: Account,
    scopes: Collection[TokenScope] = tuple(TokenScope),
    *,
    method: str = "password",
    lifetime: timedelta = timedelta(days=90),
) -> str:
    """Store a token of an account, and return it. ``method``: how the browser that created it had signed in."""
    async with db.writing() as session:
        return await create_token(session, account, method, NewToken("A program", scopes, lifetime))


def bearer(token: str) -> dict[str, str]:
    """The header of a request with this token."""
    return {"authorization": f"Bearer {token}"}
