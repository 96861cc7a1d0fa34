"""The front page of the admin pages.

``admin/overview.html`` gets ``version``, ``staff`` and ``emails`` (their numbers by role and state), ``maintenance``
(since when, or None), ``sign_up`` and ``entries`` (AuditRow).
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.accounts.dependencies import RequiredAdmin
from app.admin.audit import AuditFilter, list_entries
from app.admin.mail import count_emails
from app.admin.people import count_staff
from app.admin.responses import admin_page
from app.site_switches import Switch
from app.version import described_version
from app.web.access import Access
from app.web.dependencies import DatabaseDep, SettingsDep
from app.web.languages import LANGUAGE_PREFIX
from app.web.maintenance import SwitchesDep

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/admin", tags=[Access.admin])

_SHOWN_ENTRIES = 10


@router.get("", name="admin")
async def show_overview(
    request: Request, lang: str, account: RequiredAdmin, db: DatabaseDep, settings: SettingsDep, switches: SwitchesDep
) -> HTMLResponse:
    async with db.session() as session:
        entries, _ = await list_entries(session, AuditFilter(), most=_SHOWN_ENTRIES)
        staff, emails = await count_staff(session), await count_emails(session)
    return admin_page(
        request,
        "admin/overview.html",
        None,
        version=described_version(),
        staff=staff,
        emails=emails,
        maintenance=switches.since(Switch.maintenance),
        sign_up=settings.sign_up,
        entries=entries,
    )
