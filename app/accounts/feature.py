"""Accounts, signing in, and the person behind a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app.accounts.cleanup import CLEANUP_TASKS, CleanupTask, run_cleanup
from app.accounts.dependencies import LoginRequired, is_instructor
from app.accounts.email_link_routes import router as email_link_router
from app.accounts.emails import should_send
from app.accounts.identity_provider_routes import callback_router
from app.accounts.identity_provider_routes import router as identity_provider_router
from app.accounts.identity_providers import IDENTITY_PROVIDERS, make_identity_providers
from app.accounts.passkey_routes import router as passkey_router
from app.accounts.passwords import PASSWORD_HASHER, AsyncPasswordHasher
from app.accounts.personal_data import export_account
from app.accounts.routes import answer_login_required, router
from app.accounts.settings_routes import router as settings_router
from app.accounts.signing import SIGN_IN_SECRET, SIGNER, Signer, load_secrets
from app.accounts.visitor_retention import RETENTION_RULES, VisitorRetention
from app.feature import Feature
from app.mail.worker import EMAIL_FILTER
from app.web.access import Access
from app.web.dependencies import BUS, DATABASE, SETTINGS


def setup(app: FastAPI) -> None:
    PASSWORD_HASHER.set(app, AsyncPasswordHasher())
    IDENTITY_PROVIDERS.set(app, make_identity_providers(SETTINGS.get(app).oidc))
    EMAIL_FILTER.set(app, should_send)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the secrets that sign cookies and challenges, and run the cleanup tasks of all features."""
    secret_file = SETTINGS.get(app).data_dir / "secrets" / SIGN_IN_SECRET
    SIGNER.set(app, Signer(await asyncio.to_thread(load_secrets, secret_file)))
    cleaning = asyncio.create_task(run_cleanup(DATABASE.get(app), BUS.get(app), CLEANUP_TASKS.get(app)))
    try:
        yield
    finally:
        await cleaning


def cleanup_tasks(app: FastAPI) -> list[CleanupTask]:
    return [VisitorRetention(RETENTION_RULES.get(app), SETTINGS.get(app).visitor_retention)]


FEATURE = Feature(
    name="accounts",
    routers=(router, email_link_router, settings_router, passkey_router, identity_provider_router, callback_router),
    access={
        "sign_in_page": Access.public,
        "sign_in": Access.public,
        "sign_out": Access.public,
        "sign_up_page": Access.public,
        "sign_up": Access.public,
        "account_menu": Access.learner,
        "password_reset_page": Access.public,
        "password_reset": Access.public,
        "email_link_page": Access.public,
        "email_link": Access.public,
        "settings_page": Access.account,
        "settings_profile": Access.account,
        "security_page": Access.account,
        "change_password": Access.account,
        "change_email": Access.account,
        "end_auth_sessions": Access.account,
        "data_page": Access.account,
        "export_data": Access.account,
        "delete_account": Access.account,
        "passkey_options": Access.public,
        "passkey_sign_in": Access.public,
        "new_passkey_options": Access.account,
        "add_passkey": Access.account,
        "passkey_page": Access.account,
        "rename_passkey": Access.account,
        "remove_passkey": Access.account,
        "provider_sign_in": Access.public,
        "provider_callback": Access.public,
        "provider_page": Access.account,
        "link_provider": Access.account,
        "unlink_provider": Access.account,
    },
    draft_policy=is_instructor,
    exception_handlers={LoginRequired: answer_login_required},
    setup=setup,
    lifespan=lifespan,
    cleanup_tasks=cleanup_tasks,
    exporters={"account": export_account},
)
