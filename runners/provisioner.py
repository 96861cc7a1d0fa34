"""A jupyter_client kernel provisioner: a kernel out of the zygote instead of a new Python process.

The supervisor hands in a live sandbox (``start_kernel(sandbox=…, topology=…)``); the provisioner starts, signals and
ends the kernel in it. The sandbox itself belongs to ``runners.kernels``.
"""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import KernelProvisionerBase

from runners.sandbox.host import Sandbox


class ZygoteProvisioner(KernelProvisionerBase):  # type: ignore[misc]
    """One kernel in one sandbox. ``jupyter_client.KernelManager`` calls every method."""

    sandbox: Sandbox | None = None
    topology = "cpu"
    keras = 3
    exited: asyncio.Future[int] | None = None
    """The exit status of the kernel now running, once it has ended."""

    @property
    def has_process(self) -> bool:
        """True from ``launch_kernel`` until the kernel's end was seen."""
        return self.exited is not None and not self.exited.done()

    async def poll(self) -> int | None:
        """None while the kernel lives, else its exit status."""
        if self.exited is None:
            return 0
        return self.exited.result() if self.exited.done() else None

    async def wait(self) -> int | None:
        """Wait for the kernel to end."""
        return await asyncio.shield(self.exited) if self.exited else None

    async def send_signal(self, signum: int) -> None:
        """Signal the kernel's process; PID 1 of its sandbox delivers it."""
        if self.sandbox and self.has_process:
            self.sandbox.send_signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """Kill the kernel and everything it started."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """The same as ``kill``: a kernel has nothing to save."""
        await self.send_signal(signal.SIGKILL)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Take the sandbox and what it shall look like out of ``start_kernel``'s arguments."""
        self.sandbox = kwargs.pop("sandbox")
        self.topology, self.keras = kwargs.pop("topology"), kwargs.pop("keras")
        manager = self.parent
        manager.transport, manager.ip = "ipc", str(self.sandbox.folder / "k")
        manager.shell_port, manager.iopub_port, manager.stdin_port, manager.control_port, manager.hb_port = range(1, 6)
        arguments: dict[str, Any] = await super().pre_launch(cmd=[], **kwargs)
        return arguments

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork the kernel; ``cmd`` is empty, there is nothing to execute."""
        assert self.sandbox
        manager = self.parent
        self.exited = self.sandbox.start_kernel(self.topology, self.keras, manager.session.key)
        self.connection_info = manager.get_connection_info(session=False)
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        """Nothing of the kernel's own is left on the host."""
