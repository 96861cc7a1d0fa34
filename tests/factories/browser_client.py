"""A visitor's browser on our own pages, without a socket."""

from __future__ import annotations

from typing import Any

import httpx
from fastapi import FastAPI

from tests.factories.course import LESSON

ORIGIN = "http://test"


def browser_client(app: FastAPI, address: str = "127.0.0.1") -> httpx.AsyncClient:
    """A client that sends the same headers as a browser, from an IP address."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 123))
    return httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers={"sec-fetch-site": "same-origin"})


async def press_run(
    client: httpx.AsyncClient, code: str = "print(1)", cell: str = "hello", **machine: object
) -> dict[str, Any]:
    """Run a cell of the small course, on its own machine or on another that it offers, and return the run."""
    response = await client.post("/runs", json={"lesson": LESSON, "cell": cell, "code": code, **machine})
    assert response.status_code == 202, response.text
    run: dict[str, Any] = response.json()
    return run
