"""What the pages of a group share: how they are rendered, and how a change ends."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from app import i18n
from app.accounts import flash
from app.accounts.models import Account
from app.accounts.routes import account_page
from app.accounts.signing import SIGNER
from app.db import now
from app.errors import LockstepError
from app.groups.learners import standing_name
from app.groups.members import has_ended
from app.groups.models import Group, GroupMember
from app.groups.permissions import Staff
from app.groups.report_table import PERIODS
from app.groups.reviews import review_state_name
from app.groups.service import day_before, group_zone
from app.web.cookies import request_cookies
from app.web.security_headers import NO_STORE

_REMOVED = "removed from group"
"""The purpose of a signature."""


def group_page(
    request: Request, template: str, group: Group, failure: LockstepError | None = None, /, **context: Any
) -> HTMLResponse:
    """A page about a group, which is never cached. Its moments are shown in the time zone of the group."""
    zone = group_zone(group)
    facts: dict[str, Any] = {"group": group, "zone": zone, "last_day": lambda moment: day_before(moment, zone)}
    facts |= {"standing_name": standing_name, "review_state_name": review_state_name}
    facts["ended"] = has_ended(group, now())
    return account_page(request, template, failure, **facts, **context)


def staff_page(
    request: Request, template: str, staff: Staff, failure: LockstepError | None = None, /, **context: Any
) -> HTMLResponse:
    """A page for the staff of a group, with the navigation between them, which keeps the period that was chosen."""
    asked = request.query_params.get("period", "")
    kept = {"period": asked} if asked in PERIODS else {}
    return group_page(request, template, staff.group, failure, staff=staff, kept=kept, **context)


def redirect_to_removed(request: Request, group_id: str, account_id: str) -> RedirectResponse:
    """Redirect to the learners, where ``find_removed`` reads who was removed from the signed address."""
    proof = SIGNER.get(request.app).sign(_REMOVED, group_id, account_id)
    url = request.app.url_path_for("group_learners", lang=i18n.current_language(), group_id=group_id)
    return RedirectResponse(f"{url}?{urlencode({'removed': f'{account_id}.{proof}'})}", 303, NO_STORE)


async def find_removed(request: Request, session: AsyncSession, group_id: str, removed: str) -> str:
    """The name of the account that an address of ``redirect_to_removed`` is about; empty if this site made no such."""
    account_id, _, proof = removed.partition(".")
    if not SIGNER.get(request.app).verify(proof, _REMOVED, group_id, account_id):
        return ""
    account = await session.get(Account, account_id)
    is_back = await session.get(GroupMember, (group_id, account_id)) is not None
    return "" if account is None or is_back else account.name


def redirect_after(request: Request, what: str, route: str, anchor: str = "", **parts: str) -> RedirectResponse:
    """Redirect to a page, which says what was done."""
    flash.add(request_cookies(request), what)
    return redirect_to_page(request, route, anchor, **parts)


def redirect_to_page(request: Request, route: str, anchor: str = "", **parts: str) -> RedirectResponse:
    """Redirect to a page, also from where only a form is sent: a refused one is shown there, and may be reloaded."""
    url = request.app.url_path_for(route, lang=i18n.current_language(), **parts)
    return RedirectResponse(f"{url}{anchor}", 303, NO_STORE)
