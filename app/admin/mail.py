"""What admins do with the outbox: look at emails that were not sent, try one again, discard one, send a test."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Sequence
from socket import gaierror
from typing import Any, cast

import aiosmtplib
from sqlalchemy import CursorResult, delete, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.admin.audit import Actor, AuditAction, record_action
from app.bus import publish_on_commit
from app.db import now
from app.errors import LockstepError
from app.i18n import N_, gettext
from app.mail.message import UnsafeMessage
from app.mail.models import EmailState, OutboxEmail
from app.mail.outbox import TOPIC
from app.mail.renderer import TemplatedEmail, render_email
from app.mail.transport import DeliveryUncertain, SendFailed, Transport

PAGE_SIZE = 50
"""Emails per page."""
_TEST_TIMEOUT_S = 25.0
"""A mail server that takes longer is no use, and a proxy would give up first."""


class EmailMoved(LockstepError):
    """Raised alike for an email that was sent, is being sent, or was deleted in the meantime."""

    status = 409
    message = N_("This email was sent, given up or deleted in the meantime.")


class TrialEmailFailed(LockstepError):
    """``reason`` is a sentence, ``error`` what the mail server or the library said."""

    status = 409
    message = N_("The test email was not sent. {reason} ({error})")


class NoMailServer(LockstepError):
    status = 409
    message = N_("No mail server is set up: LOCKSTEP_SMTP_URL is empty.")


async def count_emails(session: AsyncSession) -> dict[EmailState, int]:
    """How many emails are in each state. Those that were sent have no row, so there are few."""
    counts = await session.execute(select(OutboxEmail.state, func.count()).group_by(OutboxEmail.state))
    known = {EmailState(state): number for state, number in counts}
    return {state: known.get(state, 0) for state in EmailState}


async def list_emails(
    session: AsyncSession, state: EmailState, before: str | None = None
) -> tuple[Sequence[OutboxEmail], str | None]:
    """A page of emails in one state, those that are due last first, and the cursor of the next page."""
    latest = OutboxEmail.due_at.desc(), OutboxEmail.id.desc()
    found = select(OutboxEmail).where(OutboxEmail.state == state).order_by(*latest)
    if before is not None and (last := await session.get(OutboxEmail, before)) is not None:
        found = found.where(tuple_(OutboxEmail.due_at, OutboxEmail.id) < tuple_(last.due_at, last.id))
    page = list(await session.scalars(found.limit(PAGE_SIZE + 1)))
    return page[:PAGE_SIZE], page[PAGE_SIZE - 1].id if len(page) > PAGE_SIZE else None


async def retry_email(session: AsyncSession, actor: Actor, email_id: str) -> None:
    """Make a waiting email due now. Raises EmailMoved."""
    email = await _find(session, email_id)
    waiting = update(OutboxEmail).where(OutboxEmail.id == email_id, OutboxEmail.state == EmailState.waiting)
    await _expect_one(session, waiting.values(due_at=now()))
    await record_action(session, actor, AuditAction.email_retried, account_id=email.account_id)
    publish_on_commit(session, TOPIC)


async def retry_all(session: AsyncSession, actor: Actor) -> None:
    """Make all waiting emails due now, for instance once the mail server works again."""
    waiting = update(OutboxEmail).where(OutboxEmail.state == EmailState.waiting, OutboxEmail.due_at > now())
    moved = cast(CursorResult[Any], await session.execute(waiting.values(due_at=now()))).rowcount
    if moved:
        await record_action(session, actor, AuditAction.emails_retried, detail=str(moved))
        publish_on_commit(session, TOPIC)


async def discard_email(session: AsyncSession, actor: Actor, email_id: str) -> None:
    """Delete an email that is not being sent at this moment. Raises EmailMoved."""
    email = await _find(session, email_id)
    gone = delete(OutboxEmail).where(OutboxEmail.id == email_id, OutboxEmail.state != EmailState.sending)
    await _expect_one(session, gone)
    await record_action(session, actor, AuditAction.email_discarded, account_id=email.account_id, detail=email.state)


async def send_trial_email(transport: Transport, account: Account) -> None:
    """Send an email to the account's address right now, not through the outbox. Raises TrialEmailFailed."""
    rendered = render_email(TemplatedEmail(account.email, account.language, "admin/mail/test.html"))
    email = OutboxEmail(
        id=secrets.token_hex(16),
        recipient=account.email,
        subject=rendered.subject,
        text=rendered.text,
        html=rendered.html,
        unsubscribe_url="",
        created_at=now(),
    )
    try:
        async with asyncio.timeout(_TEST_TIMEOUT_S):
            await transport.send(email)
    except (SendFailed, DeliveryUncertain, UnsafeMessage, TimeoutError) as e:
        raise TrialEmailFailed(reason=gettext(explain_failure(e)), error=str(e) or type(e).__name__) from e


def explain_failure(error: BaseException) -> str:
    """What the operator should look at, as a message to translate. Pure."""
    cause = error.__cause__ or error
    reasons: Sequence[tuple[bool, str]] = (
        (
            isinstance(cause, aiosmtplib.SMTPAuthenticationError),
            N_("The mail server did not accept the user name and password in LOCKSTEP_SMTP_URL."),
        ),
        (
            isinstance(cause, aiosmtplib.SMTPSenderRefused),
            N_("The mail server does not send for the address in LOCKSTEP_MAIL_FROM."),
        ),
        (
            isinstance(cause, aiosmtplib.SMTPRecipientRefused),
            N_("The mail server does not deliver to the address of your account."),
        ),
        (
            "not supported" in str(cause),  # STARTTLS has no exception of its own
            N_("The mail server does not offer STARTTLS or signing in on this port. Check LOCKSTEP_SMTP_URL."),
        ),
        (
            _has(cause, ssl.SSLError),
            N_("A secure connection could not be set up. Check the certificate of the mail server, and the port."),
        ),
        (_has(cause, gaierror), N_("The host name in LOCKSTEP_SMTP_URL is unknown.")),
        (
            isinstance(cause, TimeoutError | aiosmtplib.SMTPTimeoutError),
            N_("The mail server did not answer in time. Check the host, the port, and firewalls in between."),
        ),
        (
            isinstance(cause, OSError | aiosmtplib.SMTPConnectError),
            N_("The mail server cannot be reached. Check the host and the port in LOCKSTEP_SMTP_URL."),
        ),
        (isinstance(error, DeliveryUncertain), N_("The connection broke at the end, so it may still arrive.")),
    )
    return next((reason for fits, reason in reasons if fits), N_("The mail server refused it."))


def _has(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether an error is of this kind, or was caused by one."""
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False


async def _find(session: AsyncSession, email_id: str) -> OutboxEmail:
    email = await session.get(OutboxEmail, email_id) if "\0" not in email_id else None
    if email is None:
        raise EmailMoved
    return email


async def _expect_one(session: AsyncSession, change: Any) -> None:
    done = await session.execute(change.execution_options(synchronize_session=False))
    if cast(CursorResult[Any], done).rowcount == 0:
        raise EmailMoved
