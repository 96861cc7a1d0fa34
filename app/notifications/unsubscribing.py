"""Links that end mails: whoever has one may use it, signed in or not. They are signed, and good for half a year."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from base64 import urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.db import now
from app.errors import NotFound
from app.i18n import N_
from app.notifications.models import MAILED, Kind

LASTS = timedelta(days=180)
ALL = "all"
_SECRET_BYTES = 32
_TOKEN = re.compile(rf"([0-9a-f]{{1,32}})\.({'|'.join((*MAILED, ALL))})\.([0-9a-f]{{1,10}})\.([\w-]{{43}})", re.ASCII)


class LinkNotOurs(NotFound):
    """The token is not ours, or too old."""

    code = "unsubscribe_unknown"
    message = N_("This link is not one of ours, or too old. Sign in and choose in the settings when mails are sent.")


@dataclass(frozen=True, slots=True)
class Wish:
    """Whose mails end. ``kind`` is None for all of them."""

    account_id: str
    kind: Kind | None


class Unsubscribing:
    """Signs and reads the tokens of these links."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, wish: Wish, at: datetime | None = None) -> str:
        """A token made at that moment, or now."""
        said = f"{wish.account_id}.{wish.kind or ALL}.{int((at or now()).timestamp()):x}"
        return f"{said}.{self._signature(said)}"

    def read(self, token: str) -> Wish:
        """What a token asks for.

        Raises:
            LinkNotOurs: somebody else made it, or it is too old.
        """
        found = _TOKEN.fullmatch(token)
        if found is None or not hmac.compare_digest(self._signature(token.rpartition(".")[0]), found[4]):
            raise LinkNotOurs
        if now() - datetime.fromtimestamp(int(found[3], 16), UTC) > LASTS:
            raise LinkNotOurs
        return Wish(found[1], None if found[2] == ALL else Kind(found[2]))

    def _signature(self, said: str) -> str:
        signed = hmac.digest(self._secret, f"unsubscribe {said}".encode(), hashlib.sha256)
        return urlsafe_b64encode(signed).decode().rstrip("=")


def read_secret(file: Path) -> bytes:
    """The secret of this site, made at the first start. Only its user may read it."""
    with suppress(FileNotFoundError):
        return _checked(file)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as made:
            made.write(secrets.token_bytes(_SECRET_BYTES))
            made.flush()
            os.fsync(made.fileno())
        with suppress(FileExistsError):  # another process was quicker: its secret is the one
            os.link(draft, file)
    finally:
        draft.unlink()
    return _checked(file)


def _checked(file: Path) -> bytes:
    secret = file.read_bytes()
    if len(secret) < _SECRET_BYTES:
        raise ValueError(f"{file} is too short to be a secret: delete it, and a new one is made")
    return secret
