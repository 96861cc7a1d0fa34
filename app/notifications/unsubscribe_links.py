"""Links that stop emails: anyone who has one may use it, without signing in. Signed; they expire after half a year."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Depends

from app.accounts.signing import Signer
from app.db import now
from app.errors import NotFound
from app.i18n import N_
from app.notifications.models import EMAILED_KINDS, NotificationKind
from app.web.dependencies import AppKey

LINK_LIFETIME = timedelta(days=180)
ALL_KINDS = "all"
_TOKEN = re.compile(
    rf"([0-9a-f]{{1,32}})\.({'|'.join((*EMAILED_KINDS, ALL_KINDS))})\.([0-9a-f]{{1,10}})\.([\w-]{{43}})", re.ASCII
)


class InvalidUnsubscribeLink(NotFound):
    """The token was not made by this site, or it has expired."""

    message = N_("This link is not valid or has expired. Sign in, then choose in your settings when to get emails.")


@dataclass(frozen=True, slots=True)
class UnsubscribeRequest:
    """The account whose emails stop. ``kind`` is None for all kinds."""

    account_id: str
    kind: NotificationKind | None


class UnsubscribeTokens:
    """Signs and verifies the tokens of unsubscribe links."""

    def __init__(self, *secrets: bytes) -> None:
        """The first secret signs; signatures of all are accepted."""
        self._signer = Signer(secrets)

    def sign(self, wish: UnsubscribeRequest, at: datetime | None = None) -> str:
        """A token made at that time, by default now."""
        said = f"{wish.account_id}.{wish.kind or ALL_KINDS}.{int((at or now()).timestamp()):x}"
        return f"{said}.{self._signer.sign('unsubscribe', said)}"

    def verify(self, token: str) -> UnsubscribeRequest:
        """Verify a token.

        Raises:
            InvalidUnsubscribeLink: the signature is wrong, or the token has expired.
        """
        found = _TOKEN.fullmatch(token)
        if found is None or not self._signer.verify(found[4], "unsubscribe", token.rpartition(".")[0]):
            raise InvalidUnsubscribeLink
        if now() - datetime.fromtimestamp(int(found[3], 16), UTC) > LINK_LIFETIME:
            raise InvalidUnsubscribeLink
        return UnsubscribeRequest(found[1], None if found[2] == ALL_KINDS else NotificationKind(found[2]))


UNSUBSCRIBE_TOKENS = AppKey[UnsubscribeTokens]("unsubscribe_tokens")
UnsubscribeTokensDep = Annotated[UnsubscribeTokens, Depends(UNSUBSCRIBE_TOKENS.from_request)]
