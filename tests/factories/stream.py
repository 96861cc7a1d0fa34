"""Reading server-sent events as a browser does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Frame:
    """One event as it was sent."""

    id: int | None
    event: str
    data: dict[str, Any]


def parse(text: str) -> list[Frame]:
    """Every event in a finished stream."""
    return [frame for block in text.split("\n\n") if (frame := _frame(block)) is not None]


@asynccontextmanager
async def opened(client: httpx.AsyncClient, url: str, **options: Any) -> AsyncIterator[AsyncIterator[Frame]]:
    """A live stream."""
    async with client.stream("GET", url, **options) as response:
        assert response.status_code == 200, await response.aread()
        yield _frames(response)


async def _frames(response: httpx.Response) -> AsyncIterator[Frame]:
    block = ""
    async for line in response.aiter_lines():
        if line:
            block += line + "\n"
        elif block:
            if (frame := _frame(block)) is not None:
                yield frame
            block = ""


def _frame(block: str) -> Frame | None:
    fields = dict(line.split(": ", 1) for line in block.strip().splitlines() if not line.startswith(":"))
    if "event" not in fields:
        return None
    number = int(fields["id"]) if "id" in fields else None
    return Frame(number, fields["event"], json.loads(fields["data"]))


def text_of(frames: list[Frame]) -> str:
    """What the frames print."""
    return "".join(frame.data["text"] for frame in frames if frame.event == "text")
