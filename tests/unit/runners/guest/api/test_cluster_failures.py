"""When ``lockstep.kill``, ``pause`` and ``slow`` return: PID 1 has carried them out by then."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Iterator

import pytest

from runners.guest.api import cluster_failures
from runners.guest.cluster import task_context
from runners.guest.pid1.cluster_manager import ClusterManager
from runners.wire.topology import Topology


def start_nothing(_run: Callable[[], None], _report_to: int) -> int:
    """A fork for clusters whose processes never start."""
    raise OSError


@pytest.fixture
def cluster() -> Iterator[ClusterManager]:
    """Two workers that have not started; this process acts as worker 0."""
    cluster = ClusterManager(Topology.parse("workers:2"), start_nothing, lambda members: None)
    task_context.set_context(cluster.place(0))
    yield cluster
    task_context.set_context(None)
    cluster.kernels_news.close()
    cluster.close()


@pytest.fixture
def slow_pid1(cluster: ClusterManager, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """PID 1, slow to read the next command: a program that did not wait would be past its first steps."""

    def read() -> None:
        assert select.select([cluster.commands], [], [], 10)[0]
        threading.Event().wait(0.05)
        cluster.read_commands()

    monkeypatch.setattr(cluster_failures, "_DONE_S", 60.0)  # this machine may be busy
    thread = threading.Thread(target=read)
    thread.start()
    yield
    thread.join()


@pytest.mark.usefixtures("slow_pid1")
@pytest.mark.parametrize("inject", [cluster_failures.kill, cluster_failures.pause, cluster_failures.slow])
def test_a_failure_is_pending_when_the_call_returns(
    inject: Callable[[str, int], None], cluster: ClusterManager
) -> None:
    inject("worker 1", 1)

    assert cluster.place(1).shared_state.failure_at(1) == 1


def test_a_call_returns_if_nobody_carries_it_out(cluster: ClusterManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_failures, "_DONE_S", 0.01)

    cluster_failures.kill("worker 1", 1)

    assert cluster.place(1).shared_state.failure_at(1) == -1


@pytest.mark.parametrize("sender", ["", "0", "-1", "9", "[]", '"0"', "1e300", "null"])
def test_a_forged_sender_changes_no_count(sender: str, cluster: ClusterManager) -> None:
    place = cluster.place(1)
    place.commands.send(f'{{"task": "worker 1", "action": "cancel", "sender": {sender or "true"}}}'.encode())

    cluster.read_commands()

    counts = [place.shared_state.commands_handled(task) for task in range(2)]
    assert sum(counts) == (sender in ("", "0"))
