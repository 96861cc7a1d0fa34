"""How a mail leaves: by SMTP, or, where no server is set, as a line in the operator's log."""

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

_log = structlog.get_logger("mail")
_TIMEOUT_S = 30.0
_TEMPORARY_CODES = range(400, 500)


class SendFailed(Exception):
    """The server does not have the mail. ``for_good``: and will not take it later either."""

    def __init__(self, why: str, *, for_good: bool = False) -> None:
        super().__init__(why)
        self.for_good = for_good


class DeliveryUncertain(Exception):
    """The server may have the mail: it was handed over, and no answer came."""


class Transport(Protocol):
    """Sends one mail. Called by the sender, never twice for a mail that may have arrived."""

    async def send(self, mail: OutboxEmail) -> None:
        """Return once the server has the mail. Raises SendFailed or DeliveryUncertain."""


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """Where mails go out, from ``smtp://user:password@host:587`` (STARTTLS), ``smtps://…`` or ``…?tls=off``."""

    host: str
    port: int
    username: str | None
    password: str | None
    tls: str
    """``start``, ``always`` or ``off``."""

    @classmethod
    def read(cls, url: str) -> SmtpServer:
        """Read the setting ``smtp_url``."""
        parts = urlsplit(url)
        tls = "always" if parts.scheme == "smtps" else "off" if parts.query == "tls=off" else "start"
        port = parts.port or (465 if tls == "always" else 587)
        username, password = (unquote(part) if part else None for part in (parts.username, parts.password))
        return cls(parts.hostname or "", port, username, password, tls)


class SmtpTransport:
    """Hands mails to a server, each over a connection of its own."""

    def __init__(self, server: SmtpServer, sender: str) -> None:
        self._server = server
        self._sender = sender

    async def send(self, mail: OutboxEmail) -> None:
        message = to_bytes(mail, self._sender)
        client = self._client()
        try:
            await client.connect()
        except (aiosmtplib.SMTPException, OSError, ValueError) as e:  # also a password that the operator can correct
            client.close()
            raise SendFailed(f"{type(e).__name__}: {e}") from e
        try:
            await client.mail(parseaddr(self._sender)[1])
            await client.rcpt(mail.recipient)
        except aiosmtplib.SMTPResponseException as e:
            client.close()
            raise SendFailed(f"{e.code} {e.message}", for_good=e.code not in _TEMPORARY_CODES) from e
        except (aiosmtplib.SMTPException, OSError, ValueError) as e:
            client.close()
            raise SendFailed(f"{type(e).__name__}: {e}") from e
        try:
            await client.data(message)
        except aiosmtplib.SMTPResponseException as e:
            raise SendFailed(f"{e.code} {e.message}", for_good=e.code not in _TEMPORARY_CODES) from e
        except (aiosmtplib.SMTPException, OSError) as e:
            raise DeliveryUncertain(f"{type(e).__name__}: {e}") from e
        finally:
            client.close()

    def _client(self) -> aiosmtplib.SMTP:
        server = self._server
        return aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=server.password,
            use_tls=server.tls == "always",
            start_tls=server.tls == "start",
            timeout=_TIMEOUT_S,
        )


class LogTransport:
    """No server is set: the operator finds each link in the log and passes it on."""

    async def send(self, mail: OutboxEmail) -> None:
        links = re.findall(r"^(?:https?:/)?/\S+$", mail.text, re.MULTILINE)
        _log.warning("a mail for want of LOCKSTEP_SMTP_URL", to=mail.recipient, subject=mail.subject, links=links)
