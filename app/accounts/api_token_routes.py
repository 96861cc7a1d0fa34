"""The settings page of an account's API tokens.

Contexts of the templates, beside ``account``:

``accounts/api_tokens.html``
    ``tokens`` (ApiToken), ``scopes_of``, ``now``, ``scope_labels``, ``lifetimes``, ``form``, ``logged_in_recently``.
``accounts/api_token_created.html``
    ``token``: shown this once; ``name``; ``example``: the URL that a first request may ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.api_tokens import (
    DEFAULT_LIFETIME_DAYS,
    LIFETIMES_DAYS,
    SCOPE_LABELS,
    NewToken,
    TokenScope,
    TooManyTokens,
    create_token,
    list_tokens,
    revoke_token,
    scopes_of,
)
from app.accounts.dependencies import AccountMailerDep, RequiredAccount, RequiredSignIn, SignedIn
from app.accounts.routes import InvalidFields, account_page, lock_for_sensitive_change
from app.accounts.sensitive_changes import StrongerLoginRequired
from app.accounts.settings_routes import reauthenticate, redirect_with_flash
from app.accounts.validation import INVALID_NAME, normalize_name
from app.db import now
from app.errors import LockstepError
from app.i18n import N_
from app.rate_limit import TooManyAttempts
from app.security_log import SecurityEvent, record
from app.web.access import Access
from app.web.dependencies import DATABASE, DatabaseDep, site_origin
from app.web.forms import read_form
from app.web.languages import LANGUAGE_PREFIX

router = APIRouter(prefix=f"{LANGUAGE_PREFIX}/settings/tokens", tags=[Access.account])

SCOPE_MISSING = N_("Choose what the token may read.")
INVALID_LIFETIME = N_("Choose how long the token works from the list.")


@router.get("", name="api_tokens_page")
async def api_tokens_page(request: Request, lang: str, signed_in: RequiredSignIn) -> HTMLResponse:
    return await _tokens_page(request, signed_in, {"lifetime": str(DEFAULT_LIFETIME_DAYS)})


@router.post("", name="create_api_token")
async def create_api_token(
    request: Request,
    lang: str,
    signed_in: RequiredSignIn,
    db: DatabaseDep,
    mailer: AccountMailerDep,
) -> Response:
    form = await read_form(request)
    wanted, errors = _read_new_token(form)
    try:
        await reauthenticate(request, signed_in, form, "password", errors)
        async with db.writing() as session:
            account = await lock_for_sensitive_change(request, session)
            token = await create_token(session, account, signed_in.auth_session.method, wanted)
            await mailer.send_changed(session, account, "api_tokens", account.email)
    except (InvalidFields, TooManyAttempts, TooManyTokens, StrongerLoginRequired) as e:
        return await _tokens_page(request, signed_in, form, e)
    record(SecurityEvent.api_token_created, reason=" ".join(sorted(wanted.scopes)))
    facts = {"account": account, "token": token, "name": wanted.name}
    facts["example"] = f"{site_origin(request)}{request.app.url_path_for('api_token')}"
    return account_page(request, "accounts/api_token_created.html", **facts)


@router.post("/{public_id}/revoke", name="revoke_api_token")
async def revoke_api_token(
    request: Request, lang: str, account: RequiredAccount, public_id: str, db: DatabaseDep
) -> Response:
    """Without the password: whoever finds that a token has leaked should not have to look for it."""
    async with db.writing() as session:
        revoked = "\0" not in public_id and await revoke_token(session, account, public_id)
    if revoked:
        record(SecurityEvent.api_token_revoked)
    return redirect_with_flash(request, "api_tokens_page", "token_revoked")


def _read_new_token(form: Mapping[str, str]) -> tuple[NewToken, dict[str, str]]:
    """What the form asks for, and error messages by field. Pure."""
    name = normalize_name(form.get("name", ""))
    scopes = [scope for scope in TokenScope if form.get(scope) == "on"]
    days = next((each for each in LIFETIMES_DAYS if form.get("lifetime") == str(each)), None)
    errors = {"name": INVALID_NAME} if name is None else {}
    errors |= {} if scopes else {"scopes": SCOPE_MISSING}
    errors |= {} if days else {"lifetime": INVALID_LIFETIME}
    return NewToken(name or "", scopes, timedelta(days=days or 0)), errors


async def _tokens_page(
    request: Request, signed_in: SignedIn, form: Mapping[str, str], failure: LockstepError | None = None
) -> HTMLResponse:
    async with DATABASE.get(request.app).session() as session:
        tokens = await list_tokens(session, signed_in.account)
    facts = {
        "account": signed_in.account,
        "logged_in_recently": signed_in.recently,
        "tokens": tokens,
        "scopes_of": scopes_of,
        "now": now(),
        "scope_labels": SCOPE_LABELS,
        "lifetimes": LIFETIMES_DAYS,
    }
    return account_page(request, "accounts/api_tokens.html", failure, form=form, **facts)
