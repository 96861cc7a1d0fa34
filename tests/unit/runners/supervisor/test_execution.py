"""How a run is brought to its end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runners.config.settings import Limits
from runners.kernels.kernel_pool import Kernel
from runners.supervisor import execution as module
from runners.supervisor.execution import Execution
from runners.supervisor.run_log import RunLog


class InterruptedKernel:
    """A kernel whose interrupts are sent when the test says so."""

    def __init__(self) -> None:
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.sent: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.killed = asyncio.Event()
        self.sandbox = SimpleNamespace(kill=self._kill)

    def interrupt(self) -> asyncio.Future[str]:
        return self.sent

    async def _kill(self) -> None:
        self.killed.set()


def execution(kernel: InterruptedKernel) -> Execution:
    """A run in this kernel."""
    request: Any = SimpleNamespace(code="", timeout_s=None)
    own = Execution(cast(RunLog, SimpleNamespace(request=request, sent=0)), Limits())
    own._kernel = cast(Kernel, kernel)
    return own


async def test_a_run_that_ends_before_its_interrupt_was_sent_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", (60.0, 60.0))
    kernel = InterruptedKernel()
    output = asyncio.create_task(asyncio.sleep(0))
    await output
    ending = asyncio.create_task(execution(kernel)._bring_to_an_end(output))
    await asyncio.wait({ending}, timeout=0.5)
    assert not ending.done()

    kernel.sent.set_result("done")
    await asyncio.wait_for(ending, 60)
    assert not kernel.killed.is_set()


async def test_a_run_whose_interrupt_is_never_sent_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", (0.01, 0.01))
    kernel = InterruptedKernel()
    output = asyncio.create_task(asyncio.sleep(0))
    await asyncio.wait_for(execution(kernel)._bring_to_an_end(output), 60)
    assert kernel.killed.is_set()
