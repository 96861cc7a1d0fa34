"""Who asks for a page of a group, and what sends its reminders."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from app.accounts.dependencies import LoginRequired, get_principal
from app.accounts.models import Role
from app.accounts.second_factor import is_strong
from app.accounts.signing import SIGNER
from app.groups.permissions import GroupViewer
from app.groups.reminders import ReminderMailer
from app.web.dependencies import ONLY_LOCAL, SETTINGS, of_request


async def _viewer(request: Request) -> GroupViewer:
    principal = await get_principal(request)
    account, sign_in = principal.account, principal.auth_session
    if account is None or sign_in is None:
        raise LoginRequired
    lacks = SETTINGS.get(request.app).staff_second_factor and not is_strong(sign_in.method)
    return GroupViewer(account, principal.role or Role.learner, lacks)


def _mailer(request: Request) -> ReminderMailer:
    settings = SETTINGS.get(request.app)
    base_url = settings.public_url
    if not base_url and ONLY_LOCAL.get(request.app):
        base_url = str(request.base_url).rstrip("/")
    enabled = bool(settings.smtp_url and base_url)
    return ReminderMailer(SIGNER.get(request.app), request.app.url_path_for, base_url, enabled)


GroupViewerDep = Annotated[GroupViewer, Depends(_viewer)]
ReminderMailerDep = Annotated[ReminderMailer, Depends(of_request(_mailer))]
