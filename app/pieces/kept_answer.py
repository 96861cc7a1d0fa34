"""A response that can be sent again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.routing import BaseRoute
from starlette.types import Send


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A response as it was sent, with its headers."""

    headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    account_id: str
    route: BaseRoute

    @property
    def size(self) -> int:
        """Bytes in memory, at most."""
        return 1000 + len(self.body)

    async def send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(self.headers)})
        await send({"type": "http.response.body", "body": self.body})
