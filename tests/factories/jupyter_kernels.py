"""Lockstep's kernels for Jupyter, and what they leave on a machine."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
