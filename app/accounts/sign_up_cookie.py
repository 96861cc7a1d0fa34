"""The sign-up cookie: a browser that signed up confirms its address without typing the password again.

The cookie is a signature over the address and the hash of the chosen password. If somebody else signs up with the same
address before it is confirmed, the account has another hash, and the cookie becomes invalid: nobody confirms
a password that a stranger chose. It is sent whether or not the address has an account, and signs nobody in by itself.
"""

from __future__ import annotations

from app.accounts.browser import Browser
from app.accounts.email_links import LINK_LIFETIMES, LinkPurpose
from app.accounts.models import Account
from app.accounts.validation import email_key

_COOKIE_NAME = "lockstep_sign_up"
_MAX_AGE_S = int(LINK_LIFETIMES[LinkPurpose.confirm].total_seconds())


def remember_sign_up(browser: Browser, email: str, password_hash: str) -> None:
    """Remember that this browser signed up with this address and password."""
    browser.cookies.set(_COOKIE_NAME, browser.signer.sign(*_signed_parts(email, password_hash)), _MAX_AGE_S)


def has_signed_up(browser: Browser, account: Account) -> bool:
    """Whether this browser chose the account's password when it signed up."""
    signature = browser.cookies.get(_COOKIE_NAME)
    if not signature or not account.password_hash:
        return False
    return browser.signer.verify(signature, *_signed_parts(account.email, account.password_hash))


def forget_sign_up(browser: Browser) -> None:
    """Delete the cookie, if there is one."""
    if browser.cookies.get(_COOKIE_NAME) is not None:
        browser.cookies.delete(_COOKIE_NAME)


def _signed_parts(email: str, password_hash: str) -> tuple[str, str, str]:
    return "sign-up", email_key(email), password_hash
