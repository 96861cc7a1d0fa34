"""Lockstep's kernels in Jupyter's own managers."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.ioloop import AsyncIOLoopKernelManager
from jupyter_client.manager import AsyncKernelManager, start_new_kernel

from runners.jupyter.lease_client import Lease, LeaseRefused
from runners.wire.protocol import LeaseRequest
from tests.factories.jupyter_kernels import (
    REPLICAS,
    ROOT,
    install_kernels,
    sandboxes,
    started,
    there,
    told,
    wait_until,
)
from tests.factories.real_supervisor import RealSupervisor

pytestmark = pytest.mark.usefixtures("jupyter")


@pytest.fixture(scope="module")
def node() -> Iterator[RealSupervisor]:
    """A node with two seats and no ready kernels: every sandbox belongs to a test."""
    node = RealSupervisor(limits__memory_mb=512, max_sessions=2, warm_kernels=0)
    yield node.start()
    node.remove()


async def test_a_kernel_answers_on_every_channel_and_leaves_nothing(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    before = sandboxes(node)
    async with started() as (manager, client):
        assert await told(client, REPLICAS) == "4\n"
        assert there(manager.connection_file)
        await wait_until(client.hb_channel.is_beating)
        client.control_channel.send(client.session.msg("kernel_info_request"))
        reply = await client.control_channel.get_msg(timeout=20)
        assert reply["msg_type"] == "kernel_info_reply"
        (sandbox,) = sandboxes(node) - before
        links = Path(manager.ip).parent
        assert links.stat().st_mode & 0o077 == 0
        outside = [str(links), str(ROOT / "tests"), manager.connection_file]
        assert await told(client, f"import os; print([p for p in {outside} if os.path.exists(p)])") == "[]\n"
    assert not sandbox.exists()
    assert not links.exists()
    assert not there(manager.connection_file)


async def test_an_interrupt_stops_a_cell_and_keeps_what_was_there(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    async with started("lockstep-cpu") as (manager, client):
        await told(client, "x = 41")
        heard: list[str] = []
        endless = asyncio.create_task(told(client, "print('going', flush=True)\nwhile True: pass", heard=heard))
        await wait_until(lambda: heard)
        await manager.interrupt_kernel()
        assert await asyncio.wait_for(endless, 20) == "going\nKeyboardInterrupt"
        assert await told(client, "print(x + 1)") == "42\n"


@pytest.mark.parametrize("now", [True, False])
async def test_a_restart_is_a_fresh_kernel_at_the_same_place(node: RealSupervisor, now: bool) -> None:
    install_kernels(node.socket)
    async with started("lockstep-cpu") as (manager, client):
        await told(client, "x = 1\nopen('/tmp/kept', 'w').close()")
        before = dict(manager.get_connection_info()), sandboxes(node)
        await manager.restart_kernel(now=now)
        await client.wait_for_ready(timeout=60)
        assert (dict(manager.get_connection_info()), sandboxes(node)) == before
        assert await told(client, "import os; print(os.path.exists('/tmp/kept'), 'x' in globals())") == "True False\n"


async def test_input_asks_the_client_and_refuses_where_nobody_is_there(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    async with started("lockstep-cpu") as (_, client):
        assert await told(client, "print('Hello', input('Who? '))", typed="Ada") == "Hello Ada\n"
        assert await told(client, "import getpass; print(getpass.getpass())", typed="secret") == "secret\n"
        assert await told(client, "input()") == "StdinNotImplementedError"


async def test_a_kernel_that_dies_is_noticed_and_started_again(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    async with started("lockstep-cpu", AsyncIOLoopKernelManager) as (manager, client):
        manager.autorestart = True
        restarted = asyncio.Event()
        manager.start_restarter()
        manager.add_restart_callback(restarted.set, "restart")
        client.execute("import os; os.kill(os.getpid(), 11)")
        await asyncio.wait_for(restarted.wait(), 30)
        async with asyncio.timeout(90):  # it says so before it restarts, and a client gives a dead kernel up
            while not await manager.is_alive():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await client.wait_for_ready(timeout=60)
        assert await told(client, "print(1 + 1)") == "2\n"


async def test_the_exit_status_is_the_kernels_own(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    async with started("lockstep-cpu") as (manager, client):
        client.execute("import os; os._exit(7)")
        assert await asyncio.wait_for(manager.provisioner.wait(), 20) == 7
        assert not await manager.is_alive()


@pytest.mark.long
def test_a_lease_that_nobody_reads_ends_and_one_of_a_manager_without_a_loop_does_not(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    before = sandboxes(node)
    unread = Lease.take(node.socket, LeaseRequest(topology="cpu", key="k" * 32))
    (sandbox,) = sandboxes(node) - before
    manager, client = start_new_kernel(kernel_name="lockstep-cpu")
    try:
        node.wait(lambda: not sandbox.exists())  # nobody turns a loop meanwhile
        heard: list[str] = []
        client.execute_interactive(
            "print(6 * 7)", timeout=60, output_hook=lambda m: heard.append(m["content"].get("text", ""))
        )
        assert "".join(heard) == "42\n"
        assert manager.is_alive()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert not manager.is_alive()
    with pytest.raises(LeaseRefused, match="no kernel"):
        unread.restart(LeaseRequest(topology="cpu", key="k" * 32))


async def test_memory_is_limited_as_in_a_session_and_the_next_kernel_is_well(
    node: RealSupervisor, caplog: pytest.LogCaptureFixture
) -> None:
    install_kernels(node.socket)
    async with started("lockstep-cpu") as (manager, client):
        client.execute("x = b'x' * 700_000_000\nimport time; time.sleep(60)")
        assert await asyncio.wait_for(manager.provisioner.wait(), 40) == -signal.SIGKILL
        assert "Lockstep ended the kernel: its sandbox reached its memory limit." in caplog.text
        await manager.restart_kernel(now=True)
        await client.wait_for_ready(timeout=60)
        assert await told(client, "print(1)") == "1\n"


async def test_kernels_take_places_and_a_full_node_says_so(node: RealSupervisor) -> None:
    install_kernels(node.socket)
    first = await asyncio.to_thread(Lease.take, node.socket, LeaseRequest(topology="cpu", key="k" * 32))
    held = first.hold()
    async with started("lockstep-cpu"):
        assert node.health()["sessions"] == 2
        third = AsyncKernelManager(kernel_name="lockstep-cpu")
        with pytest.raises(LeaseRefused, match="all 2 seats on this node are taken"):
            await third.start_kernel()
    await asyncio.to_thread(first.close)
    await asyncio.to_thread(held.result, 60)
    async with started("lockstep-cpu") as (_, client):
        assert await told(client, "print(1)") == "1\n"


async def test_a_sandbox_keeps_its_keras(node: RealSupervisor) -> None:
    lease = await asyncio.to_thread(Lease.take, node.socket, LeaseRequest(topology="cpu", key="k" * 32))
    with pytest.raises(LeaseRefused, match="this kernel has Keras 3"):
        await asyncio.to_thread(lease.restart, LeaseRequest(topology="cpu", key="k" * 32, keras=2))
    await asyncio.to_thread(lease.close)
