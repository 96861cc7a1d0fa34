"""The audit log as a page and as CSV.

``admin/audit.html`` gets ``entries`` (AuditRow), ``actions``, ``action``, ``person`` (a handle), ``unknown`` (nobody
has that handle), ``kept_days``, ``next_url`` and ``csv_url``.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import HTMLResponse, StreamingResponse

from app.accounts.dependencies import RequiredAdmin
from app.accounts.models import Account
from app.admin.audit import AuditAction, AuditFilter, export_csv, list_entries
from app.admin.responses import admin_page
from app.web.access import Access
from app.web.dependencies import DatabaseDep, SettingsDep
from app.web.languages import LANGUAGE_PREFIX
from app.web.pagination import BeforeCursor
from app.web.security_headers import NO_STORE

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/admin/audit", tags=[Access.admin])

Person = Annotated[str, Query(max_length=100, pattern="^[^\x00]*$")]
_NOBODY = "-"
"""No account has this ID."""


@router.get("", name="admin_audit")
async def show_audit_log(
    request: Request,
    lang: str,
    account: RequiredAdmin,
    db: DatabaseDep,
    settings: SettingsDep,
    action: str = "",
    person: Person = "",
    before: BeforeCursor = None,
) -> HTMLResponse:
    async with db.session() as session:
        narrowed = await _read_filter(session, action, person)
        entries, next_before = await list_entries(session, narrowed, before)
    query = {"action": narrowed.action or "", "person": person}
    address = request.app.url_path_for("admin_audit", lang=lang)
    return admin_page(
        request,
        "admin/audit.html",
        None,
        entries=entries,
        actions=list(AuditAction),
        action=narrowed.action,
        person=person,
        unknown=narrowed.person == _NOBODY,
        kept_days=settings.audit_retention_days,
        next_url=next_before and f"{address}?{urlencode(query | {'before': next_before})}",
        csv_url=f"{request.app.url_path_for('admin_audit_csv', lang=lang)}?{urlencode(query)}",
    )


@router.get("/log.csv", name="admin_audit_csv")
async def download_audit_log(
    request: Request, lang: str, account: RequiredAdmin, db: DatabaseDep, action: str = "", person: Person = ""
) -> StreamingResponse:
    async with db.session() as session:
        narrowed = await _read_filter(session, action, person)
    headers = {**NO_STORE, "content-disposition": 'attachment; filename="lockstep-audit-log.csv"'}
    return StreamingResponse(export_csv(db, narrowed), media_type="text/csv", headers=headers)


async def _read_filter(session: AsyncSession, action: str, person: str) -> AuditFilter:
    handle = person.strip().removeprefix("@").lower()
    known = AuditAction(action) if action in list(AuditAction) else None
    if not handle:
        return AuditFilter(known)
    account_id = await session.scalar(select(Account.id).where(Account.handle == handle))
    return AuditFilter(known, account_id or _NOBODY)
