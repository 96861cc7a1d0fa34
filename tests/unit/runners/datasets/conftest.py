"""A tiny Fashion-MNIST with real files, and a web server on the loopback that can misbehave."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from runners.datasets.catalog import Arrays, ArraySpec, DataFile, DataSet
from runners.datasets.standins import generate
from tests.factories.tensorflow_forks import Forges

TRAIN, TEST = 40, 20


@dataclass(frozen=True)
class Tiny:
    """A data set of sixty images with the name of a real one, and the bytes of its files."""

    data_set: DataSet
    contents: dict[str, bytes]
    arrays: Arrays

    def put(self, folder: Path) -> Path:
        """Write the files into ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.contents.items():
            (folder / name).write_bytes(content)
        return folder


def _idx(array: np.ndarray) -> bytes:
    shape = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes((0, 0, 8, array.ndim)) + shape + bytes(array.tobytes())


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    shapes = {"x_train": (TRAIN, 28, 28), "y_train": (TRAIN,), "x_test": (TEST, 28, 28), "y_test": (TEST,)}
    blank = DataSet(
        name="fashion_mnist",
        title="Fashion-MNIST",
        homepage="http://127.0.0.1/",
        licence="none",
        format="idx.gz",
        stand_in="made-up patterns",
        classes=tuple("0123456789"),
        arrays={name: ArraySpec(file=f"{name}.gz", dtype="uint8", shape=shape) for name, shape in shapes.items()},
        files={},
    )
    arrays = {name: 255 - array if name.startswith("x") else array for name, array in generate(blank).items()}
    contents = {f"{name}.gz": gzip.compress(_idx(array), mtime=0) for name, array in arrays.items()}
    files = {
        name: DataFile(
            name=name,
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            md5=hashlib.md5(content).hexdigest(),
            urls=(f"http://127.0.0.1:9/{name}",),
        )
        for name, content in contents.items()
    }
    return Tiny(blank.model_copy(update={"files": files}), contents, arrays)


def make_later(path: Path) -> None:
    """Change the time of a file that was just written: before Linux 6.13, it may be that of 4 ms ago."""
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1_000_000_000))


@dataclass
class Answer:
    """How the server responds to one request."""

    status: int = 200
    body: bytes | None = None
    cut_after: int | None = None
    """Close the connection after so many bytes of the body."""
    declare_length: bool = True


@dataclass
class Server:
    """A mirror that serves ``files`` by name, after following the script."""

    files: dict[str, bytes]
    url: str = ""
    script: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """The path of every request."""
    before: Callable[[str], None] = lambda path: None

    def answer(self, path: str) -> Answer:
        name = path.rpartition("/")[2]
        planned = self.script.get(name)
        if planned:
            return planned.pop(0)
        return Answer(body=self.files[name]) if name in self.files else Answer(status=404, body=b"not here")


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that hangs up is part of the tests."""


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            server.asked.append(self.path)
            server.before(self.path)
            plan = server.answer(self.path)
            name = self.path.rpartition("/")[2]
            body, status = plan.body if plan.body is not None else server.files[name], plan.status
            self.send_response(status)
            if plan.declare_length:
                self.send_header("content-length", str(len(body)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(body if plan.cut_after is None else body[: plan.cut_after])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    return Handler


SCRIPT = """
import io, json, os, socket, sys, contextlib
import numpy as np
from pathlib import Path
import tensorflow as tf
from runners.guest.tf_patches.keras_datasets import install

def refuse(*_, **__):
    raise AssertionError("the network was tried")

socket.socket.connect = socket.getaddrinfo = refuse
threads = len(os.listdir("/proc/self/task"))
cache = Path({cache!r})
install(cache)
told = {{"threads": len(os.listdir("/proc/self/task")) - threads}}

def output(call):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = call()
    return printed.getvalue(), result

def form(result):
    return [[[list(array.shape), str(array.dtype)] for array in part] for part in result]
"""


class Learn(Protocol):
    def __call__(self, code: str, cache: Path, keras: int = 3) -> dict[str, Any]: ...


@pytest.fixture
def learner(forges: Forges) -> Learn:
    """Runs code with data sets installed and every connection failing; returns what it stored in ``told``."""

    def learn(code: str, cache: Path, keras: int = 3) -> dict[str, Any]:
        program = SCRIPT.format(cache=str(cache)) + textwrap.dedent(code) + "\nprint(json.dumps(told))"
        ran = forges(keras).run(program, "cpu")
        assert ran.status == 0, ran.output[-4000:]
        told: dict[str, Any] = json.loads(ran.output.splitlines()[-1])
        return told

    return learn


@pytest.fixture
def server(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    mirror = Server(dict(tiny.contents))
    with _Quiet(("127.0.0.1", 0), _handler(mirror)) as http:
        mirror.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield mirror
        http.shutdown()
        thread.join()
