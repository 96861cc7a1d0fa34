"""The emails of an application under test, stored instead of sent."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from app.mail.models import OutboxEmail
from app.mail.transport import LogTransport


class Mailbox:
    """Every email that an application without a mail server would have logged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mails: list[OutboxEmail] = []

        async def keep(_transport: LogTransport, mail: OutboxEmail) -> None:
            self.mails.append(mail)

        monkeypatch.setattr(LogTransport, "send", keep)

    def to(self, address: str) -> Sequence[OutboxEmail]:
        """Emails to one address, oldest first."""
        return [mail for mail in self.mails if mail.recipient == address]

    def link(self, address: str) -> str:
        """The path of the first link in the latest email to an address."""
        found = re.search(r"^(?:https?://[^/]+)?(/\S+)$", self.to(address)[-1].text, re.MULTILINE)
        assert found
        return found[1]
