"""The admin page of emails that were not sent.

``admin/mail.html`` gets ``state``, ``states``, ``counts`` by state, ``emails`` (OutboxEmail), ``next_url``,
``mail_from``, ``connected`` (a mail server is set up) and ``address`` (where a test goes).
"""

from __future__ import annotations

from enum import StrEnum

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.dependencies import RequiredAdmin
from app.accounts.models import Account
from app.accounts.rate_limit import account_limit_key
from app.admin import mail
from app.admin.audit import Actor, AuditAction, record_action
from app.admin.mail import EmailMoved, NoMailServer, TrialEmailFailed
from app.admin.responses import admin_page, redirect_to_page
from app.errors import InvalidInput, LockstepError
from app.mail.models import EmailState
from app.mail.transport import make_transport
from app.rate_limit import RateLimitPolicy, TooManyAttempts, count_attempt
from app.web.access import Access
from app.web.dependencies import DATABASE, SETTINGS, DatabaseDep, SettingsDep
from app.web.forms import read_form
from app.web.languages import LANGUAGE_PREFIX
from app.web.pagination import BeforeCursor

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/admin/mail", tags=[Access.admin])

_TRIALS = RateLimitPolicy(free_attempts=10, initial_delay_s=10.0)
"""Test emails of one admin: each may keep a connection to the mail server for a while."""


class EmailAction(StrEnum):
    """What can be done with an email, or with all that wait."""

    retry = "retry"
    retry_all = "retry_all"
    discard = "discard"


_DONE = {
    EmailAction.retry: "email_retried",
    EmailAction.retry_all: "emails_retried",
    EmailAction.discard: "email_discarded",
}
"""The flash message of each."""


@router.get("", name="admin_mail")
async def show_mail(
    request: Request, lang: str, account: RequiredAdmin, state: str = "", before: BeforeCursor = None
) -> HTMLResponse:
    shown = EmailState(state) if state in list(EmailState) else EmailState.waiting
    return await _mail_page(request, account, shown, before)


@router.post("", name="admin_change_mail")
async def change_mail(request: Request, lang: str, account: RequiredAdmin, db: DatabaseDep) -> Response:
    form = await read_form(request)
    try:
        verb = EmailAction(form.get("verb", ""))
    except ValueError as e:
        raise InvalidInput(reason="verb") from e
    actor, email_id = Actor.of(account), form.get("email", "")
    try:
        async with db.writing() as session:
            match verb:
                case EmailAction.retry:
                    await mail.retry_email(session, actor, email_id)
                case EmailAction.retry_all:
                    await mail.retry_all(session, actor)
                case EmailAction.discard:
                    await mail.discard_email(session, actor, email_id)
    except EmailMoved as e:
        return await _mail_page(request, account, failure=e)
    return redirect_to_page(request, _DONE[verb], "admin_mail")


@router.post("/test", name="admin_send_test_mail")
async def send_test(
    request: Request, lang: str, account: RequiredAdmin, db: DatabaseDep, settings: SettingsDep
) -> Response:
    try:
        if not settings.smtp_url:
            raise NoMailServer
        async with db.writing() as session:
            await count_attempt(session, account_limit_key("test email", account.id), _TRIALS)
            await record_action(session, Actor.of(account), AuditAction.test_email_sent)
        await mail.send_trial_email(make_transport(settings), account)
    except (NoMailServer, TooManyAttempts, TrialEmailFailed) as e:
        return await _mail_page(request, account, failure=e)
    return redirect_to_page(request, "test_email_sent", "admin_mail")


async def _mail_page(
    request: Request,
    account: Account,
    state: EmailState = EmailState.waiting,
    before: str | None = None,
    failure: LockstepError | None = None,
) -> HTMLResponse:
    async with DATABASE.get(request.app).session() as session:
        counts = await mail.count_emails(session)
        emails, next_before = await mail.list_emails(session, state, before)
    settings = SETTINGS.get(request.app)
    address = request.app.url_path_for("admin_mail", lang=request.path_params["lang"])
    facts = {"connected": bool(settings.smtp_url), "mail_from": settings.mail_from, "address": account.email}
    facts |= {"next_url": next_before and f"{address}?state={state}&before={next_before}"}
    states = list(EmailState)
    return admin_page(
        request, "admin/mail.html", None, failure, state=state, states=states, counts=counts, emails=emails, **facts
    )
