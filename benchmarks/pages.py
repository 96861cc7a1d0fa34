"""How many requests a second one web process answers with a lesson's page, beside a bare FastAPI "hello".

Both are served by uvicorn with the same options and asked over the same kept connections, one after the other, in one
run of this script; each also writes what it logs. The page is the whole HTML, compressed, with every header it has in
production. Prints both and ``ratio: N``, the share of the bare application's pace that the page keeps.

    python benchmarks/pages.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import httpx
import uvloop
from fastapi import FastAPI

PAGE = "/en/courses/distributed-tensorflow/distribution-strategies"
CONNECTIONS = 32
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)

hello = FastAPI()


@hello.get("/")
async def say_hello() -> dict[str, str]:
    """The least that FastAPI can do."""
    return {"message": "hello"}


class Asker(asyncio.Protocol):
    """One connection that asks again as soon as it is answered. Every answer is as long as the first."""

    def __init__(self, path: str) -> None:
        headers = "host: 127.0.0.1\r\naccept: text/html\r\naccept-encoding: gzip\r\naccept-language: en"
        self._request = f"GET {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode()
        self._first = b""
        self._size = self._got = 0
        self.answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._got += len(data)
        if not self._size:
            self._size = self._measure(data)
        if self._got == self._size:
            self._got = 0
            self.answered += 1
            self._transport.write(self._request)

    def _measure(self, data: bytes) -> int:
        self._first += data
        head, found, _ = self._first.partition(b"\r\n\r\n")
        if not found:
            return 0
        assert head.startswith(b"HTTP/1.1 200"), head
        length = _LENGTH.search(head)
        assert length
        return len(head) + 4 + int(length[1])


async def pace(port: int, path: str, seconds: float) -> float:
    """Requests a second, after a second to warm up."""
    loop = asyncio.get_running_loop()
    pairs = [await loop.create_connection(lambda: Asker(path), "127.0.0.1", port) for _ in range(CONNECTIONS)]
    await asyncio.sleep(1)
    before, begun = sum(asker.answered for _, asker in pairs), time.perf_counter()
    await asyncio.sleep(seconds)
    answered, took = sum(asker.answered for _, asker in pairs) - before, time.perf_counter() - begun
    for transport, _ in pairs:
        transport.close()
    assert answered, f"nothing answered at {path}"
    return answered / took


@contextmanager
def serving(*application: str) -> Iterator[int]:
    """Serve an application with one process; yields the port."""
    with tempfile.TemporaryDirectory() as folder:
        port = _free_port()
        options = ["--port", str(port), "--no-access-log", "--log-level", "warning"]
        command = [sys.executable, "-m", "uvicorn", *application, *options]
        with (Path(folder) / "log").open("w") as log:
            server = subprocess.Popen(command, stderr=log, env=os.environ | {"LOCKSTEP_DATA_DIR": folder})
        try:
            with httpx.Client(transport=httpx.HTTPTransport(retries=8)) as client:
                client.get(f"http://127.0.0.1:{port}/healthz")  # tried until it listens
            yield port
        finally:
            server.terminate()
            server.wait(30)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def measure(seconds: float, rounds: int) -> None:
    """Measure both, in turns, and print the table."""
    with (
        serving("app.main:create_app", "--factory") as lockstep,
        serving("pages:hello", "--app-dir", str(Path(__file__).parent)) as bare,
    ):
        pages, hellos = [], []
        for _ in range(rounds):
            pages.append(uvloop.run(pace(lockstep, PAGE, seconds)))
            hellos.append(uvloop.run(pace(bare, "/", seconds)))
    for name, paces in (("a lesson's page", pages), ('a bare FastAPI "hello"', hellos)):
        print(f"{name:24} {statistics.median(paces):8.0f} requests/s   n {rounds} x {seconds:g} s")
    print(f"ratio: {statistics.median(pages) / statistics.median(hellos):.2f}")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    measure(*((2.0, 1) if parser.parse_args().quick else (5.0, 3)))


if __name__ == "__main__":
    main()
