"""Lockstep's kernels for Jupyter, and what they leave on a machine."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager

from runners.jupyter import kernelspec
from tests.factories.real_supervisor import RealSupervisor

ROOT = Path(__file__).parents[2]
REPLICAS = "import tensorflow as tf\nprint(tf.distribute.MirroredStrategy().num_replicas_in_sync)"


def install_kernels(socket: Path | str, *more: str) -> None:
    """Kernels from the supervisor at ``socket``, if one responds there."""
    data = Path(tempfile.gettempdir()) / "no-data"
    kernelspec.main(["install", f"--data-dir={data}", f"--socket={socket}", *more])


async def wait_until(true: Callable[[], Any], within_s: float = 30) -> None:
    """Wait until the condition holds."""
    for _ in range(int(within_s / 0.05)):
        if true():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come about")


def there(path: str) -> bool:
    """Whether the file exists."""
    return Path(path).exists()


def sandboxes(node: RealSupervisor) -> set[Path]:
    """The folders of the node's sandboxes."""
    return {folder for top in node.folders() if top.name.startswith("lockstep-node-") for folder in top.iterdir()}


def settled_sandboxes(node: RealSupervisor) -> set[Path]:
    """The node's sandboxes, once the pool has created those that earlier tests requested."""
    seen: list[set[Path]] = []

    def unchanged() -> bool:
        seen.append(sandboxes(node))
        time.sleep(0.1)
        return len(seen) >= 12 and all(one == seen[-1] for one in seen[-12:])

    node.wait(unchanged)
    return seen[-1]


@asynccontextmanager
async def started(
    name: str = "lockstep-gpu-4", kind: type[AsyncKernelManager] = AsyncKernelManager
) -> AsyncIterator[tuple[Any, AsyncKernelClient]]:
    """A manager whose kernel responds, and its client."""
    manager = kind(kernel_name=name)
    await manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        yield manager, client
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def told(client: AsyncKernelClient, code: str, typed: str | None = None, heard: list[str] | None = None) -> str:
    """The output of ``code``, with errors by name; ``heard`` gets it piece by piece."""
    texts: list[str] = [] if heard is None else heard

    def hear(message: dict[str, Any]) -> None:
        content = message["content"]
        texts.append(content.get("text") or content.get("ename") or "")

    def asked(message: dict[str, Any]) -> None:
        client.input(typed)

    allow = typed is not None
    await client.execute_interactive(
        code, timeout=60, output_hook=hear, allow_stdin=allow, stdin_hook=asked if allow else None
    )
    return "".join(texts)
