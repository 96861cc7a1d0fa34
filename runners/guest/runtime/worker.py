"""A further process of a cluster: runs each cell as the learner's kernel does, and sends the kernel the output.

Printed text goes through two pipes, everything else as lines of JSON through a socket, the link:

    kernel -> here   {"run": N, "code": …, "store_history": …}
    here -> kernel   {"kind": …, "content": {…}, "lane": …}    a message of Jupyter's output channel
                     {"done": N, "error": null | [name, value]}

The kernel reads the pipes and the link in the order in which they were written to, because a line is sent only once
the pipes are empty.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import io
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.error import StdinNotImplementedError
from IPython.core.shellapp import InteractiveShellApp
from jupyter_client.jsonutil import json_clean, json_default
from jupyter_client.session import Session

from runners.guest.cluster import endpoints
from runners.guest.cluster.task_context import TaskContext
from runners.guest.reporting import lanes, publisher
from runners.guest.runtime import device_setup, instrumentation, interrupts, kernel_app
from runners.guest.runtime.pipes import unread_bytes
from runners.guest.runtime.stall_detector import StallDetector

_TOLD_S = 1.0
"""How long printed text may take to reach the kernel before the next line is sent anyway."""
_LOOK_S = 0.0005
_PIECES_S = 0.02
"""How long printed text waits for the rest of its line."""


def serve(own: TaskContext, link: socket.socket, out: int, err: int) -> NoReturn:
    """Run as the process of ``own``'s task until the kernel is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _print_to(out, err)
    gc.enable()
    kernel_app.reseed_random()
    kernel_app.join_cluster(own)
    device_setup.set_up_devices(own.topology)
    instrumentation.install(own.topology)
    commands = link.makefile("rb")
    if endpoints.serves(own.topology, own.task):
        server = _serve_tensorflow(own)
        while commands.readline():
            pass
        del server
        os._exit(0)
    program = _Program(own, _Link(link))
    for line in commands:
        program.run(json.loads(line))
    os._exit(0)


class _Link:
    """Sends lines to the kernel, from any thread, each after what was printed before it."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._lock = threading.Lock()

    def send(self, word: dict[str, Any]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        line = json.dumps(json_clean(word), default=json_default).encode() + b"\n"
        with self._lock:
            end = time.monotonic() + _TOLD_S
            while (unread_bytes(1) or unread_bytes(2)) and time.monotonic() < end:
                time.sleep(_LOOK_S)
            self._link.sendall(line)


class _LinkSession(Session):  # type: ignore[misc]
    """Acts as IPython's connection to its clients."""

    def send_through(self, link: _Link) -> None:
        self._to = link

    def send(
        self, stream: Any, msg_or_type: Any, content: Any = None, *_: Any, metadata: Any = None, **__: Any
    ) -> None:
        """Send a message, given as a whole or by its type and content."""
        kind = msg_or_type
        if isinstance(msg_or_type, dict):
            kind, content = msg_or_type["msg_type"], msg_or_type["content"]
        self._to.send({"kind": kind, "content": content})


class _Program:
    """An IPython shell that runs the cells."""

    def __init__(self, own: TaskContext, link: _Link) -> None:
        self._watch = StallDetector(own)
        self._link = link
        self._shell = kernel_app.WarmShell.instance()
        self._shell.init_environment()
        self._shell.home_dir = self._shell.starting_dir = str(Path.cwd())
        session = _LinkSession()
        session.send_through(link)
        for part in (self._shell.displayhook, self._shell.display_pub):
            part.session, part.pub_socket = session, None
        builtins.input = _no_keyboard
        sys.path[:] = [p for p in sys.path if p and Path(p).exists()]
        InteractiveShellApp().init_path()  # modules in the learner's folder can be imported, as in the kernel
        sys.argv = [""]
        publisher.set_sink(self._report)

    def run(self, cell: dict[str, Any]) -> None:
        """Run one cell, and report how it ended."""
        error: BaseException | None = None
        try:
            interrupts.accept()
            with self._watch.cell():
                result = self._shell.run_cell(cell["code"], store_history=bool(cell["store_history"]))
            error = result.error_before_exec or result.error_in_exec
        except KeyboardInterrupt as e:  # between the cell's end and the next line
            error = e
        finally:
            interrupts.ignore()
        said = None if error is None else [type(error).__name__, str(error)]
        self._link.send({"done": cell["run"], "error": said})

    def _report(self, kind: str, content: dict[str, Any], lane: str | None) -> None:
        self._link.send({"kind": kind, "content": content, "lane": lane})


def _serve_tensorflow(own: TaskContext) -> Any:
    """Start TensorFlow's own server for a worker or a parameter server, as in its guides."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    config = tf.compat.v1.ConfigProto()
    config.inter_op_parallelism_threads = max(os.cpu_count() or 1, own.topology.workers + 1)
    return tf.distribute.Server(
        resolver.cluster_spec(), own.task.job, own.task.index, protocol="grpc", config=config, start=True
    )


def _print_to(out: int, err: int) -> None:
    """Redirect descriptors 1 and 2, and Python's streams, into the pipes."""
    for fd, name in ((out, "stdout"), (err, "stderr")):
        number = 1 if name == "stdout" else 2
        os.dup2(fd, number)
        os.close(fd)
        stream = _WorkerStream(number)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


class _WorkerStream(io.TextIOBase):
    """Standard output or error of a worker: writes whole lines at once, and partial lines a moment later."""

    encoding = "utf-8"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.RLock()
        self._held: list[str] = []
        self._hurry = threading.Event()
        threading.Thread(target=self._write_soon, daemon=True, name=f"printed-{descriptor}").start()

    def fileno(self) -> int:
        """The descriptor, for child processes that write to it directly."""
        return self._descriptor

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Write text, tagged with its replica."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self._lock:
            self._held.append(lanes.tag_text(text))
        if "\n" in text:
            self.flush()
        else:
            self._hurry.set()
        return len(text)

    def flush(self) -> None:
        """Write all pending text."""
        with self._lock:
            data = "".join(self._held).encode("utf-8", "backslashreplace")
            self._held.clear()
            while data:
                data = data[os.write(self._descriptor, data) :]

    def _write_soon(self) -> None:
        while self._hurry.wait():
            self._hurry.clear()
            time.sleep(_PIECES_S)
            with contextlib.suppress(OSError):
                self.flush()


def _no_keyboard(prompt: object = "") -> str:
    raise StdinNotImplementedError(kernel_app.STDIN_UNAVAILABLE)
