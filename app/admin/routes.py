"""The front page of the admin pages. ``admin/overview.html`` gets ``version``, ``staff`` and ``entries``."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.accounts.dependencies import RequiredAdmin
from app.admin.audit import AuditFilter, list_entries
from app.admin.people import count_staff
from app.admin.responses import admin_page
from app.version import described_version
from app.web.access import Access
from app.web.dependencies import DatabaseDep, SettingsDep
from app.web.languages import LANGUAGE_PREFIX

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/admin", tags=[Access.admin])

_SHOWN_ENTRIES = 10


@router.get("", name="admin")
async def show_overview(
    request: Request, lang: str, account: RequiredAdmin, db: DatabaseDep, settings: SettingsDep
) -> HTMLResponse:
    async with db.session() as session:
        entries, _ = await list_entries(session, AuditFilter(), most=_SHOWN_ENTRIES)
        staff = await count_staff(session)
    facts = {"version": described_version(), "entries": entries, "staff": staff, "sign_up": settings.sign_up}
    return admin_page(request, "admin/overview.html", None, **facts)
