"""How the kernel handles the other processes of its cluster: those that read nothing, and those that never start."""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from runners.guest.cluster.shared_state import ProcessActivity, ProcessStatus, SharedState
from runners.guest.cluster.task_context import TaskContext
from runners.guest.reporting import publisher
from runners.guest.runtime import peers
from runners.guest.runtime.peers import Peers
from runners.wire.reports import NOTICE
from runners.wire.topology import Topology

_PATIENCE_S = 20.0


class Kernel:
    """The kernel of two workers, the other of which is this test."""

    def __init__(self) -> None:
        topology = Topology.parse("workers:2")
        self.shared_state = SharedState(2)
        for number in (0, 1):
            self.shared_state.set_status(number, ProcessStatus.running)
        self.commands, self._commands_in = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._news, kernels_news = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.heard = threading.Condition()
        self.others = Peers(
            TaskContext(topology, 0, (20_001, 20_002), self.shared_state, self._commands_in, "0badcafe"),
            kernels_news,
            lambda *_: None,
        )
        self.commands.settimeout(_PATIENCE_S)
        self._link: socket.socket | None = None
        self._ends: list[int] = []

    def join(self, *, cut_off: bool = False, started: bool = False) -> socket.socket:
        """Start worker 1, as PID 1 does; returns its end of the link.

        Args:
            cut_off: the kernel can take only one descriptor.
            started: it is already in the shared state.
        """
        if not started:
            self.shared_state.begin(1, self.shared_state.starts(1) + 1)
            self.shared_state.set_status(1, ProcessStatus.running)
        link, kernels_link = socket.socketpair()
        pipes = [os.pipe() for _ in range(2)]
        fds = [kernels_link.fileno(), *(out for out, _ in pipes)]
        word = {"joined": 1, "start": self.shared_state.starts(1)}
        socket.send_fds(self._news, [json.dumps(word).encode()], fds[:1] if cut_off else fds)
        kernels_link.close()
        for out, end in pipes:
            os.close(out)
            self._ends.append(end)
        link.settimeout(_PATIENCE_S)
        if self._link:
            self._link.close()
        self._link = link
        return link

    def leave(self) -> None:
        """End worker 1, and PID 1."""
        if self._link:
            self.shared_state.set_status(1, ProcessStatus.ended)
            self._link.close()
            self.wait_for("member-ended")
        for end in self._ends:
            os.close(end)
        for each in (self.commands, self._commands_in, self._news):
            each.close()

    def take_report(self, _kind: str, content: dict[str, Any], _lane: str | None) -> None:
        """The kernel's messages to the page."""
        notice = content["data"][NOTICE]
        with self.heard:
            self.said.append((notice["code"], notice["values"]))
            self.heard.notify_all()

    def wait_for(self, code: str, patience_s: float = _PATIENCE_S) -> dict[str, Any]:
        """The values of a notice, once it is sent."""
        with self.heard:
            assert self.heard.wait_for(lambda: code in dict(self.said), patience_s)
            return dict(self.said)[code]


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    """A new cluster for each test."""
    kernel = Kernel()
    publisher.set_sink(kernel.take_report)
    yield kernel
    kernel.leave()
    publisher.set_sink(None)


@pytest.fixture
def many_files() -> Iterator[None]:
    """Open so many files that further ones have numbers that ``select`` rejects."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, hard), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_030)]
    yield
    for fd in opened:
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def main() -> Iterator[ThreadPoolExecutor]:
    """Run in place of the kernel's main thread."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


def result(future: Future[Any]) -> Any:
    """The result, if it arrives in time."""
    return future.result(_PATIENCE_S)


def test_a_long_cell_waits_for_no_worker_that_reads_nothing_and_arrives_whole(
    kernel: Kernel, main: ThreadPoolExecutor
) -> None:
    link = kernel.join()
    code = "x = 1  # " + "y" * 3_000_000
    result(main.submit(kernel.others.begin, code, True))
    read = b""
    while not read.endswith(b"\n"):
        read += link.recv(1 << 20)
    assert json.loads(read) == {"run": 1, "code": code, "store_history": True}

    result(main.submit(kernel.others.begin, "2", True))
    assert json.loads(link.recv(1 << 20))["code"] == "2"
    link.sendall(b'{"done": 2, "error": null}\n')
    assert result(main.submit(kernel.others.finish)) == ([], False)


def test_a_worker_that_starts_without_descriptors_left_is_dropped_and_the_next_joins(
    kernel: Kernel, main: ThreadPoolExecutor
) -> None:
    link = kernel.join(cut_off=True)
    assert link.recv(1) == b""

    link = kernel.join()
    kernel.others.begin("1", True)
    assert json.loads(link.recv(1 << 20))["run"] == 1
    link.sendall(b'{"done": 1, "error": null}\n')
    assert result(main.submit(kernel.others.finish)) == ([], False)


def test_a_kernel_with_more_than_1024_open_files_still_hears_of_the_others(
    kernel: Kernel, main: ThreadPoolExecutor, many_files: None
) -> None:
    link = kernel.join()
    kernel.others.begin("1", True)
    assert json.loads(link.recv(1 << 20))["run"] == 1
    link.sendall(b'{"done": 1, "error": null}\n')
    assert result(main.submit(kernel.others.finish)) == ([], False)

    kernel.shared_state.set_status(1, ProcessStatus.ended)
    link.close()
    assert kernel.wait_for("member-ended")["task"] == "worker 1"


def test_one_that_takes_the_place_of_another_hears_of_the_next_cell_at_once(
    kernel: Kernel, main: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_ENDED_S", _PATIENCE_S)
    kernel.join()
    second = kernel.join()
    second.settimeout(_PATIENCE_S / 2)
    kernel.wait_for("member-ended", _PATIENCE_S / 2)
    kernel.said.clear()  # the second one's end will be said, too
    kernel.others.begin("1", True)
    assert json.loads(second.recv(1 << 20))["run"] == 1
    second.sendall(b'{"done": 1, "error": null}\n')
    assert result(main.submit(kernel.others.finish)) == ([], False)


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed first", "noticed late"])
def test_the_successor_of_an_ended_process_is_not_killed_and_runs_the_next_cell(
    kernel: Kernel, main: ThreadPoolExecutor, noticed: bool
) -> None:
    first = kernel.join()
    kernel.others.begin("1", True)
    assert json.loads(first.recv(1 << 20))["run"] == 1
    first.sendall(b'{"done": 1, "error": null}\n')
    assert result(main.submit(kernel.others.finish)) == ([], False)

    kernel.shared_state.set_status(1, ProcessStatus.ended)
    kernel.shared_state.begin(1, kernel.shared_state.starts(1) + 1)
    if noticed:
        first.close()
        kernel.wait_for("member-ended")
    kernel.others.begin("2", True)
    if not noticed:
        first.close()
        kernel.wait_for("member-ended")
    second = kernel.join(started=True)
    assert json.loads(second.recv(1 << 20))["run"] == 2
    second.sendall(b'{"done": 2, "error": null}\n')

    assert result(main.submit(kernel.others.finish)) == ([], False)
    assert not select.select([kernel.commands], [], [], 0)[0], "it was told to kill a process"
    kernel.said.clear()  # the end of the second one is announced, too


def test_a_process_that_does_not_start_a_cell_is_named_and_killed_and_the_cell_ends(
    kernel: Kernel, main: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_BEGINS_S", 0.1)
    kernel.others.begin("1", True)

    failures, interrupted = result(main.submit(kernel.others.finish))

    assert [(f.task.lane, f.name, f.value) for f in failures] == [
        ("worker 1", "WorkerEnded", "it had not started the cell")
    ]
    assert not interrupted
    assert kernel.said == [("never-began", {"task": "worker 1", "seconds": 0.1})]
    assert json.loads(kernel.commands.recv(512))["action"] == "kill"


def test_who_is_paused_or_at_work_is_waited_for(
    kernel: Kernel, main: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_BEGINS_S", 0.3)
    monkeypatch.setattr(peers, "_NAMED_S", 0.6)
    link = kernel.join()
    kernel.shared_state.set_status(1, ProcessStatus.paused)
    kernel.others.begin("1", True)
    finished = main.submit(kernel.others.finish)
    assert kernel.wait_for("waiting-for-paused")["other"] == "worker 1"
    kernel.shared_state.set_work(1, ProcessActivity.cell)
    kernel.shared_state.set_status(1, ProcessStatus.running)
    assert not select.select([kernel.commands], [], [], 0.6)[0]
    link.sendall(b'{"done": 1, "error": ["ValueError", "why"]}\n')
    failures, _ = result(finished)
    assert [(f.name, f.value) for f in failures] == [("ValueError", "why")]
