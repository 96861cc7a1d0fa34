"""Accounts, signing in, and the person behind a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.accounts.api_access import API_BUDGET, ApiBudget
from app.accounts.api_routes import router as api_router
from app.accounts.api_token_routes import router as api_token_router
from app.accounts.cleanup import CLEANUP_TASKS, run_cleanup
from app.accounts.dependencies import LoginRequired, SecondFactorRequired, is_instructor
from app.accounts.disabled_accounts import DISABLED_ACCOUNTS, DisabledAccounts
from app.accounts.email_link_routes import router as email_link_router
from app.accounts.emails import should_send
from app.accounts.identity_provider_routes import callback_router
from app.accounts.identity_provider_routes import router as identity_provider_router
from app.accounts.identity_providers import IDENTITY_PROVIDERS, make_identity_providers
from app.accounts.menu_piece import MENU_PIECE
from app.accounts.passkey_routes import router as passkey_router
from app.accounts.passwords import PASSWORD_HASHER, AsyncPasswordHasher
from app.accounts.personal_data import export_account
from app.accounts.routes import answer_login_required, router
from app.accounts.second_factor_routes import answer_second_factor_required
from app.accounts.second_factor_routes import router as second_factor_router
from app.accounts.settings_routes import router as settings_router
from app.accounts.signing import SIGN_IN_SECRET, SIGNER, Signer, load_secrets
from app.accounts.visitor_retention import RETENTION_RULES, VisitorRetention
from app.feature import Feature
from app.mail.worker import EMAIL_FILTER
from app.web.dependencies import BUS, DATABASE, SETTINGS


def setup(app: FastAPI) -> None:
    PASSWORD_HASHER.set(app, AsyncPasswordHasher())
    IDENTITY_PROVIDERS.set(app, make_identity_providers(SETTINGS.get(app).oidc))
    EMAIL_FILTER.set(app, should_send)
    API_BUDGET.set(app, ApiBudget())


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the secrets that sign cookies and challenges, and run background tasks.

    These are the cleanup tasks of all features, and the end of streams whose account is disabled.
    """
    secret_file = SETTINGS.get(app).data_dir / "secrets" / SIGN_IN_SECRET
    SIGNER.set(app, Signer(await asyncio.to_thread(load_secrets, secret_file)))
    disabled = DISABLED_ACCOUNTS.set(app, DisabledAccounts(DATABASE.get(app), BUS.get(app)))
    following = asyncio.create_task(disabled.follow())
    cleaning = asyncio.create_task(run_cleanup(DATABASE.get(app), BUS.get(app), CLEANUP_TASKS.get(app)))
    try:
        yield
    finally:
        await asyncio.gather(cleaning, following)


FEATURE = Feature(
    name="accounts",
    routers=(
        *(router, email_link_router, settings_router, second_factor_router, passkey_router),
        *(identity_provider_router, callback_router, api_token_router, api_router),
    ),
    open_in_maintenance=(r"/\w+/sign-in(/code)?", r"/\w+/passkey/(options|sign-in)", r"/\w+/sign-out"),
    draft_policy=is_instructor,
    exception_handlers={LoginRequired: answer_login_required, SecondFactorRequired: answer_second_factor_required},
    page_pieces=lambda _app: (MENU_PIECE,),
    setup=setup,
    lifespan=lifespan,
    cleanup_tasks=lambda app: (VisitorRetention(RETENTION_RULES.get(app), SETTINGS.get(app).visitor_retention),),
    exporters={"account": export_account},
)
