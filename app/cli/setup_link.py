"""The setup link: how the operator of a new site makes the first admin in a browser."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlencode

from app.accounts.invitations import SETUP_LINK_LIFETIME, create_setup_link
from app.cli.console import print_message
from app.cli.db import run_with_database
from app.db import Database
from app.i18n import DEFAULT_LANGUAGE
from app.settings import Settings


def print_setup_link(settings: Settings, listener: socket.socket) -> None:
    """While there is no admin, print a link that makes one. The database has to be up to date."""
    if (token := run_with_database(settings, _create)) is None:
        return
    site = settings.known_url or _local_address(listener)
    link = f"{site}/{DEFAULT_LANGUAGE}/sign-up?{urlencode({'invitation': token})}"
    hours = SETUP_LINK_LIFETIME.total_seconds() / 3600
    print_message(f"There is no admin yet. Open this link within {hours:.0f} hours to create one: {link}")


async def _create(db: Database) -> str | None:
    async with db.writing() as session:
        return await create_setup_link(session)


def _local_address(listener: socket.socket) -> str:
    """The server's own address as a browser on this machine reaches it."""
    host, port = listener.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"http://{f'[{address}]' if address.version == 6 else address}:{port}"
