"""Personal data: exported as one JSON document, erased with the account. Each ``feature.py`` adds its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

from fastapi import Depends
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.handles import retire_handle
from app.accounts.merge import merged_visitor_ids
from app.accounts.models import Account, ApiToken, Authenticator, AuthSession, Identity, Passkey
from app.accounts.service import lock_account
from app.db import Database
from app.web.dependencies import AppKey

Exporter = Callable[[AsyncSession, Account], AsyncIterator[Mapping[str, Any]]]
"""Yields a feature's data of an account row by row, as plain values and datetimes."""
Eraser = Callable[[AsyncSession, Account], Awaitable[None]]
"""Deletes a feature's data of an account, or removes the account's name from it."""

EXPORTERS = AppKey[Mapping[str, Exporter]]("exporters")
"""The exporters of all features, by their key in the document."""
ExportersDep = Annotated[Mapping[str, Exporter], Depends(EXPORTERS.from_request)]
ERASERS = AppKey[Sequence[Eraser]]("erasers")
"""The erasers of all features."""
ErasersDep = Annotated[Sequence[Eraser], Depends(ERASERS.from_request)]

AfterErasure = Callable[[str], Awaitable[None]]
"""Ends what a feature has going on outside the database for a learner ID of an account that was deleted."""
AFTER_ERASURE = AppKey[Sequence[AfterErasure]]("after_erasure")
AfterErasureDep = Annotated[Sequence[AfterErasure], Depends(AFTER_ERASURE.from_request)]

_CHUNK_BYTES = 65_536
_EXPORTED_FIELDS = (
    "email",
    "name",
    "handle",
    "role",
    "language",
    "time_zone",
    "public_profile",
    "email_frequency",
    "created_at",
)


async def export_personal_data(
    db: Database, account: Account, exporters: Mapping[str, Exporter], folder: Path
) -> AsyncIterator[bytes]:
    """Yield a JSON object with a list of rows for each exporter.

    The rows are first written to an unnamed file in ``folder`` as fast as the database delivers them, then sent from
    there: memory use stays small, and a slow client holds no connection.
    """
    with TemporaryFile(dir=folder) as file:
        async with db.session() as session:
            async for text in _json_document(session, account, exporters):
                file.write(text.encode())
        file.seek(0)
        while piece := file.read(_CHUNK_BYTES):
            yield piece


async def _json_document(
    session: AsyncSession, account: Account, exporters: Mapping[str, Exporter]
) -> AsyncIterator[str]:
    start = "{"
    for name, rows in exporters.items():
        yield f"{start}{json.dumps(name)}: ["
        gap = "\n"
        async for row in rows(session, account):
            yield gap + json.dumps(row, ensure_ascii=False, default=_to_json)
            gap = ",\n"
        yield "]"
        start = ",\n"
    yield "}\n" if start != "{" else "{}\n"


async def erase_account(session: AsyncSession, account: Account, erasers: Sequence[Eraser]) -> set[str]:
    """Delete an account and its data. Its row takes its sessions, API tokens, links, passkeys and identities with it.

    The account is locked first: a browser that signs in meanwhile merges its work before the deletion or not at all.
    Returns the account's learner ID and those of the visitors that were merged into it. Raises AccountDeleted.
    """
    account = await lock_account(session, account)
    learners = {account.learner_id, *await merged_visitor_ids(session, account.learner_id)}
    await retire_handle(session, account)
    for eraser in erasers:
        await eraser(session, account)
    await session.execute(delete(Account).where(Account.id == account.id))
    return learners


async def export_account(session: AsyncSession, account: Account) -> AsyncIterator[Mapping[str, Any]]:
    """The account itself, and the ways to sign in to it."""
    yield {"kind": "account", **{name: getattr(account, name) for name in _EXPORTED_FIELDS}}
    for sign_in in await session.scalars(select(AuthSession).where(AuthSession.account_id == account.id)):
        shown = ("method", "created_at", "last_seen_at", "expires_at", "user_agent", "ip_address")
        yield {"kind": "auth_session", **{name: getattr(sign_in, name) for name in shown}}
    for key in await session.scalars(select(Passkey).where(Passkey.account_id == account.id)):
        yield {"kind": "passkey", "name": key.name, "created_at": key.created_at, "last_used_at": key.last_used_at}
    for token in await session.scalars(select(ApiToken).where(ApiToken.account_id == account.id)):
        facts = ("name", "scopes", "created_at", "expires_at", "last_used_at")
        yield {"kind": "api_token", **{name: getattr(token, name) for name in facts}}
    if (app := await session.get(Authenticator, account.id)) is not None:
        yield {"kind": "authenticator", "created_at": app.created_at}
    for other in await session.scalars(select(Identity).where(Identity.account_id == account.id)):
        yield {"kind": "identity", "issuer": other.issuer, "email": other.email, "created_at": other.created_at}


def _to_json(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value)} cannot be exported")
