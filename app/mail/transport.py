"""Sends emails by SMTP or, without a mail server, logs them for the operator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parseaddr
from typing import Protocol
from urllib.parse import unquote, urlsplit

import aiosmtplib
import structlog

from app.mail.message import to_bytes
from app.mail.models import OutboxEmail
from app.settings import Settings

_log = structlog.get_logger("mail")
_TIMEOUT_S = 30.0
_CHECK_TIMEOUT_S = 10.0
_TEMPORARY_CODES = range(400, 500)


class SendFailed(Exception):
    """The server did not accept the email. With ``permanent``, it will not accept it later either."""

    def __init__(self, why: str, *, permanent: bool = False) -> None:
        super().__init__(why)
        self.permanent = permanent


class DeliveryUncertain(Exception):
    """The server may have accepted the email: it was transmitted, but no response came."""


class Transport(Protocol):
    """Sends one email. Never called twice for an email that may have arrived."""

    async def send(self, mail: OutboxEmail) -> None:
        """Return once the server has accepted the email. Raises SendFailed or DeliveryUncertain."""


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """An SMTP server, from ``smtp://user:password@host:587`` (STARTTLS), ``smtps://…`` or ``…?tls=off``."""

    host: str
    port: int
    username: str | None
    password: str | None
    tls: str
    """``start``, ``always`` or ``off``."""

    @classmethod
    def from_url(cls, url: str) -> SmtpServer:
        """Parse the setting ``smtp_url``."""
        parts = urlsplit(url)
        tls = "always" if parts.scheme == "smtps" else "off" if parts.query == "tls=off" else "start"
        port = parts.port or (465 if tls == "always" else 587)
        username, password = (unquote(part) if part else None for part in (parts.username, parts.password))
        return cls(parts.hostname or "", port, username, password, tls)


class SmtpTransport:
    """Sends emails to a server, with a new connection for each."""

    def __init__(self, server: SmtpServer, sender: str) -> None:
        self._server = server
        self._sender = sender

    async def send(self, mail: OutboxEmail) -> None:
        message = to_bytes(mail, self._sender)
        client = self._client()
        try:
            await client.connect()
        except (aiosmtplib.SMTPException, OSError, ValueError) as e:  # including a password that the operator can fix
            client.close()
            raise SendFailed(f"{type(e).__name__}: {e}") from e
        try:
            await client.mail(parseaddr(self._sender)[1])
            await client.rcpt(mail.recipient)
        except aiosmtplib.SMTPResponseException as e:
            client.close()
            raise SendFailed(f"{e.code} {e.message}", permanent=e.code not in _TEMPORARY_CODES) from e
        except (aiosmtplib.SMTPException, OSError, ValueError) as e:
            client.close()
            raise SendFailed(f"{type(e).__name__}: {e}") from e
        try:
            await client.data(message)
        except aiosmtplib.SMTPResponseException as e:
            raise SendFailed(f"{e.code} {e.message}", permanent=e.code not in _TEMPORARY_CODES) from e
        except (aiosmtplib.SMTPException, OSError) as e:
            raise DeliveryUncertain(f"{type(e).__name__}: {e}") from e
        finally:
            client.close()

    async def check(self) -> None:
        """Connect and sign in, and send nothing. Raises SendFailed."""
        client = self._client(_CHECK_TIMEOUT_S)
        try:
            await client.connect()
        except (aiosmtplib.SMTPException, OSError, ValueError) as e:
            raise SendFailed(f"{type(e).__name__}: {e}") from e
        finally:
            client.close()

    def _client(self, timeout_s: float = _TIMEOUT_S) -> aiosmtplib.SMTP:
        server = self._server
        return aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            use_tls=server.tls == "always",
            start_tls=server.tls == "start",
            timeout=timeout_s,
        )


class LogTransport:
    """Used without a mail server: the operator finds each link in the log and forwards it."""

    async def send(self, mail: OutboxEmail) -> None:
        links = re.findall(r"^(?:https?:/)?/\S+$", mail.text, re.MULTILINE)
        _log.warning(
            "email not sent: LOCKSTEP_SMTP_URL is not set", to=mail.recipient, subject=mail.subject, links=links
        )


def make_transport(settings: Settings) -> Transport:
    """The transport that the settings name."""
    if settings.smtp_url:
        return SmtpTransport(SmtpServer.from_url(settings.smtp_url), settings.mail_from)
    return LogTransport()
