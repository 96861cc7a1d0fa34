"""Reads server-sent events as a browser does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class ReceivedEvent:
    """One event, as sent."""

    id: int | None
    event: str
    data: dict[str, Any]


def parse_events(text: str) -> list[ReceivedEvent]:
    """Every event in a finished stream."""
    return [frame for block in text.split("\n\n") if (frame := _parse_event(block)) is not None]


@asynccontextmanager
async def live_stream(
    client: httpx.AsyncClient, url: str, **options: Any
) -> AsyncIterator[AsyncIterator[ReceivedEvent]]:
    """A live stream."""
    async with client.stream("GET", url, **options) as response:
        assert response.status_code == 200, await response.aread()
        yield _read_events(response)


async def _read_events(response: httpx.Response) -> AsyncIterator[ReceivedEvent]:
    block = ""
    async for line in response.aiter_lines():
        if line:
            block += line + "\n"
        elif block:
            if (frame := _parse_event(block)) is not None:
                yield frame
            block = ""


def _parse_event(block: str) -> ReceivedEvent | None:
    fields = dict(line.split(": ", 1) for line in block.strip().splitlines() if not line.startswith(":"))
    if "event" not in fields:
        return None
    number = int(fields["id"]) if "id" in fields else None
    return ReceivedEvent(number, fields["event"], json.loads(fields["data"]))


def printed_text(frames: list[ReceivedEvent]) -> str:
    """The printed text in the events."""
    return "".join(frame.data["text"] for frame in frames if frame.event == "text")
