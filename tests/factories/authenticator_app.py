"""An authenticator app, set up over HTTP as a person does it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import httpx

AUTHENTICATOR_URL = "/en/settings/security/authenticator"


class AuthenticatorApp(NamedTuple):
    """What the pages have shown."""

    secret: str
    key: str
    """The key of the form, which is used once."""
    recovery_codes: list[str]


async def set_up_authenticator(
    client: httpx.AsyncClient, password: str, code: Callable[[str], str]
) -> AuthenticatorApp:
    """Set up an app for the signed-in account. ``code`` gives the app's code for a secret."""
    page = (await client.post(AUTHENTICATOR_URL, data={"password": password})).text
    secret = "".join(re.findall(r'class="totp-key">([A-Z2-7 ]+)<', page)[0].split())
    key = re.findall(r'name="key" value="([\w-]+)"', page)[0]
    done = await client.post(f"{AUTHENTICATOR_URL}/confirm", data={"key": key, "code": code(secret)})
    codes = re.findall(r"<li><code>([a-z2-7-]+)</code>", done.text)
    assert codes, done.text
    return AuthenticatorApp(secret, key, codes)
