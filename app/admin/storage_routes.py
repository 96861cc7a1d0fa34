"""The admin page of storage.

``admin/storage.html`` gets ``storage`` (StorageReport), ``settings`` and ``format_bytes``.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.accounts.dependencies import RequiredAdmin
from app.admin.responses import admin_page
from app.admin.storage import load_storage
from app.runs.limit_labels import format_bytes
from app.web.access import Access
from app.web.dependencies import DatabaseDep, SettingsDep
from app.web.languages import LANGUAGE_PREFIX

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/admin/storage", tags=[Access.admin])


@router.get("", name="admin_storage")
async def show_storage(
    request: Request, lang: str, account: RequiredAdmin, db: DatabaseDep, settings: SettingsDep
) -> HTMLResponse:
    async with db.session() as session:
        storage = await load_storage(session)
    return admin_page(
        request, "admin/storage.html", None, storage=storage, settings=settings, format_bytes=format_bytes
    )
