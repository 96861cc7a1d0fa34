"""A real SMTP server, with and without TLS, that stores the emails it receives."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.factories.http_server import free_port

USER, PASSWORD = "lockstep", "p@ss word"
HOST = "127.0.0.1"
_PATIENCE_S = 60


class SmtpMailbox:
    """The handler of aiosmtpd. It gives ``answers`` one by one, and then accepts every email."""

    def __init__(self, *answers: str) -> None:
        self.mails: list[EmailMessage] = []
        self.raw: list[bytes] = []
        self.recipients: list[str] = []
        self.encrypted: list[bool] = []
        self.answers = list(answers)
        self._received = threading.Event()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.answers:
            return self.answers.pop(0)
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.raw.append(envelope.content)
        self.recipients += envelope.rcpt_tos
        self.encrypted.append(session.ssl is not None)
        self._received.set()
        return "250 kept"

    async def first_mail(self) -> EmailMessage:
        """Wait for the first email. The server has a thread of its own."""
        assert await asyncio.to_thread(self._received.wait, _PATIENCE_S), "no email came"
        return self.mails[0]


@contextmanager
def serve_smtp(postbox: SmtpMailbox, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve during the block; with TLS, it requires STARTTLS and a password. Yields host and port."""

    def authenticate(_server: SMTP, _session: Session, _envelope: Envelope, _how: str, data: object) -> AuthResult:
        good = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=good)

    controller = Controller(
        postbox,
        hostname=HOST,
        port=free_port(),
        tls_context=tls,
        require_starttls=tls is not None,
        auth_required=tls is not None,
        authenticator=authenticate if tls else None,
    )
    controller.start()
    try:
        yield f"{HOST}:{controller.port}"
    finally:
        controller.stop(no_assert=True)


def make_certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """The server side of TLS for this machine, and the certificate that a client has to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted, secret = folder / "trusted.pem", folder / "key.pem"
    trusted.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, secret)
    return context, trusted
