"""The rate limits of accounts: on guesses at passwords and codes, on emails, and on exports."""

from __future__ import annotations

import hashlib

from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.browser import Browser
from app.accounts.trusted_devices import trusted_device
from app.accounts.validation import email_key
from app.db import Database
from app.rate_limit import RateLimitPolicy, count_attempt, network_limit_key, refund_attempt, reset_attempts

ATTEMPTS_PER_ACCOUNT = RateLimitPolicy(free_attempts=5)
ATTEMPTS_PER_NETWORK = RateLimitPolicy(free_attempts=40, max_delay_s=300.0)
AUTH_CHALLENGES = RateLimitPolicy(free_attempts=500, max_delay_s=60.0)
"""Unfinished challenges, per network (which may be a whole school's) or account: each is a row in SQL."""
EXPORTS_PER_ACCOUNT = RateLimitPolicy(free_attempts=10, initial_delay_s=60.0)
"""Each export is a file while it is sent."""
EMAILS_PER_RECIPIENT = RateLimitPolicy(free_attempts=3, initial_delay_s=3600.0, max_delay_s=3600.0)
"""To one address, whoever requests them: three per hour."""
EMAILS_PER_NETWORK = RateLimitPolicy(free_attempts=100, max_delay_s=300.0)
"""Emails requested by one network. A class signs up at once; each of its addresses also has its own limit."""


def account_limit_key(action: str, email: str) -> str:
    """The key of attempts on one account, whether it exists or not. Pure."""
    return f"{action} account {hashlib.sha256(email_key(email).encode('utf-8', 'replace')).hexdigest()[:32]}"


async def count_auth_attempt(db: Database, browser: Browser, action: str, who: str) -> None:
    """Count an attempt on one account and from one network; a trusted device's attempts are counted apart.

    Raises TooManyAttempts.
    """
    device = trusted_device(browser, who)
    async with db.writing() as session:
        if device is None:
            await count_attempt(session, network_limit_key(action, browser.network), ATTEMPTS_PER_NETWORK)
        await count_attempt(session, account_limit_key(action, device or who), ATTEMPTS_PER_ACCOUNT)


async def clear_auth_attempts(session: AsyncSession, browser: Browser, action: str, who: str) -> None:
    """Reset the account's count after a successful attempt, and take the attempt off its network's count."""
    device = trusted_device(browser, who)
    if device is None:
        network = network_limit_key(action, browser.network)
        await refund_attempt(session, network)  # locked in the order of count_auth_attempt
    await reset_attempts(session, account_limit_key(action, device or who))


async def count_email_request(db: Database, browser: Browser, action: str, email: str) -> None:
    """Count a requested email, whoever owns the address. Raises TooManyAttempts."""
    async with db.writing() as session:
        await count_attempt(session, network_limit_key(action, browser.network), EMAILS_PER_NETWORK)
        await count_attempt(session, account_limit_key(action, email), EMAILS_PER_RECIPIENT)


async def clear_email_requests(session: AsyncSession, browser: Browser, action: str, email: str) -> None:
    """Reset the count: the person who requested the email has proved that they own the address."""
    await refund_attempt(session, network_limit_key(action, browser.network))
    await reset_attempts(session, account_limit_key(action, email))
