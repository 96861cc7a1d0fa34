"""When a pool of kernels reports its machine as broken, and how it handles ready kernels that have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from runners.config.settings import Limits
from runners.kernels import kernel_pool
from runners.kernels.kernel_pool import Kernel, KernelPool
from runners.kernels.zygote_client import ZygoteUnavailable
from runners.sandbox.handle import Sandbox, SandboxGone


class NoMachine:
    """A zygote that refuses."""

    limits = Limits()

    async def spawn(self, allocation: object = None) -> Sandbox:
        """Refuse."""
        raise ZygoteUnavailable("no room")


async def test_several_kernels_in_a_row_that_cannot_be_made_break_the_node_one_does_not() -> None:
    pool = KernelPool(0, lambda _: NoMachine(), ("cpu", 3))

    troubles = []
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(ZygoteUnavailable):
                await pool.take("cpu", 3)
            troubles.append(pool.trouble)

    assert troubles == [None, None, "no room"]
    assert [(line["event"], line["error"]) for line in logs] == [("kernel cannot be made", "no room")]  # once


class ShortLived(Kernel):
    """A kernel whose sandbox ends with its zygote before it responds, except after the first few."""

    made = 0
    short_lived = 1

    @classmethod
    async def _create(cls, *_: object) -> Kernel:
        cls.made += 1
        if cls.made <= cls.short_lived:
            raise SandboxGone("the sandbox ended before its kernel answered")
        return cls.__new__(cls)


async def test_a_sandbox_that_ends_with_its_zygote_is_made_once_more_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ShortLived, "made", 0)
    machine: Any = NoMachine()
    assert isinstance(await ShortLived.create(machine, "cpu", 3), ShortLived)
    assert ShortLived.made == 2

    monkeypatch.setattr(ShortLived, "made", 0)
    monkeypatch.setattr(ShortLived, "short_lived", 2)
    with pytest.raises(SandboxGone):
        await ShortLived.create(machine, "cpu", 3)


class Waiting:
    """A kernel that takes time to close, unless it may close at once."""

    def __init__(self, *, may_close: bool = False) -> None:
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.may_close = asyncio.Event()
        self.closed = self.rehearsed = False
        if may_close:
            self.may_close.set()

    def rehearse(self) -> None:
        """Note that it was asked to."""
        self.rehearsed = True

    async def close(self) -> None:
        """Close when allowed."""
        await self.may_close.wait()
        self.closed = True


Before = Callable[[str], Awaitable[None]]
"""Awaited with the topology before a kernel is made."""


async def at_once(_: str) -> None:
    """Nothing to wait for."""


def pool_of(
    monkeypatch: pytest.MonkeyPatch, size: int, before: Before = at_once, *, may_close: bool = True
) -> tuple[KernelPool, list[Waiting]]:
    """A pool without pauses, and the kernels that it has created."""
    made: list[Waiting] = []

    async def create(_zygote: object, topology: str, *_: object) -> Waiting:
        await before(topology)
        made.append(Waiting(may_close=may_close))
        return made[-1]

    monkeypatch.setattr(Kernel, "create", create)
    monkeypatch.setattr(kernel_pool, "_PAUSE_S", 0.0)
    return KernelPool(size, lambda _: NoMachine(), ("cpu", 3)), made


async def comes(true: Callable[[], object]) -> None:
    """Wait until the condition holds: the pool has no event for it."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_a_kernel_that_ended_while_it_waited_is_not_counted_and_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool, made = pool_of(monkeypatch, 1, may_close=False)
    pool.keep()
    await comes(lambda: len(pool))

    made[0].exited.set_result(-9)
    made[0].may_close.set()
    assert len(pool) == 0

    pool.sweep()
    await comes(lambda: len(pool))
    assert made[0].closed
    made[1].may_close.set()
    await pool.close()
    assert made[1].closed


async def test_a_kernel_rehearses_before_anybody_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, made = pool_of(monkeypatch, 1)
    pool.keep()
    await comes(lambda: len(pool))
    assert made[0].rehearsed
    await pool.close()


async def test_who_is_cancelled_leaves_no_kernel_half_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, made = pool_of(monkeypatch, 1, may_close=False)
    pool.keep()
    await comes(lambda: len(pool))
    made[0].exited.set_result(-9)

    taking = asyncio.create_task(pool.take("cpu", 3))
    await asyncio.sleep(0)
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0.05)
    assert not closing.done()

    for kernel in made:
        kernel.may_close.set()
    await asyncio.wait_for(closing, 10)
    assert made[0].closed


async def test_an_unwanted_cluster_that_cannot_be_made_does_not_stop_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    being_made, may_fail = asyncio.Event(), asyncio.Event()

    async def fail_the_second_time(topology: str) -> None:
        if topology == "workers:2" and made:
            being_made.set()
            await may_fail.wait()
            raise ZygoteUnavailable("no room")

    pool, made = pool_of(monkeypatch, 1, fail_the_second_time)
    monkeypatch.setattr(kernel_pool, "_TRY_AGAIN_S", 0.0)
    await pool.take("workers:2", 3)
    pool.keep()
    async with asyncio.timeout(10):
        await being_made.wait()
        monkeypatch.setattr(kernel_pool, "_CLUSTER_S", 0.0)
        pool.sweep()
        may_fail.set()
    await comes(lambda: len(pool))
    await pool.close()


async def test_of_a_cluster_one_is_kept_ready_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, made = pool_of(monkeypatch, 2)
    pool.keep()
    await pool.take("workers:2", 3)
    await comes(lambda: len(pool) >= 3)
    await asyncio.sleep(0.05)
    assert len(pool) == 3, "two CPUs and one cluster"

    monkeypatch.setattr(kernel_pool, "_CLUSTER_S", 0.0)
    pool.sweep()
    assert len(pool) == 2
    await pool.close()
    assert [kernel.closed for kernel in made].count(True) == 3


async def test_requests_for_one_machine_after_another_do_not_enlarge_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    may_make = asyncio.Semaphore(0)

    async def be_let(_: str) -> None:
        await may_make.acquire()

    pool, made = pool_of(monkeypatch, 2, be_let)

    def has(most: int) -> bool:
        return len(made) >= most

    pool.keep()
    for number in range(1, 9):
        wanted = len(made) + 2  # one for the request, and one of the two to keep ready
        for _ in range(2):
            may_make.release()
        await pool.take(f"gpu:{number}", 3)
        await comes(partial(has, wanted))
        await asyncio.sleep(0.001)

    assert len(pool) <= 3 * 2
    await pool.close()
