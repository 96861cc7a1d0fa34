"""A jupyter_client kernel provisioner: a kernel from the zygote instead of a new Python process.

Registered as ``lockstep-zygote``, and named by the kernelspecs that ``lockstep kernelspec install`` writes. It runs in
the Jupyter process and leases a kernel from a supervisor (``runners.supervisor.leases``), which creates and owns the
sandbox. The client then talks to the kernel directly, through links to the supervisor's sockets in a private folder of
this process: their names stay the same when the kernel is restarted, even by another supervisor.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import signal
import sys
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import KernelProvisionerBase
from pydantic import ValidationError
from traitlets import Int, Unicode

from runners.jupyter.lease_client import Lease, LeaseRefused
from runners.jupyter.supervisor_process import SupervisorRecipe, ensure_supervisor, log_tail, private_folder
from runners.wire.protocol import KernelExit, LeaseRequest, LimitName

_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
_LOOK_EVERY_S = 0.05
REACHED: dict[LimitName, str] = {
    "memory": (
        "its sandbox reached its memory limit. Use a smaller batch or model, less data or fewer devices, or raise "
        "LOCKSTEP_LIMITS__MEMORY_MB for the runner."
    ),
    "sockets": "its sandbox reached its limit of sockets.",
}
"""Why a kernel has ended, by the limit that its sandbox reached."""


class ZygoteProvisioner(KernelProvisionerBase):  # type: ignore[misc]
    """One leased kernel. ``jupyter_client.KernelManager`` calls every method."""

    topology = Unicode("gpu:4", config=True, help="The machine the kernel sees: cpu, or gpu:1 … gpu:8.")
    keras = Int(3, config=True, help="2 or 3.")
    socket = Unicode("", config=True, help="The socket of a supervisor that may be running.")
    python = Unicode(sys.executable, config=True, help="Starts a supervisor where none is running.")
    data_dir = Unicode("data", config=True, help="Where that supervisor finds data sets.")

    _lease: Lease | None = None
    _end: Future[KernelExit] | None = None
    """The end of the kernel last launched, until it has been waited for."""

    @cached_property
    def _folder(self) -> Path:
        return private_folder() / secrets.token_hex(4)

    @property
    def has_process(self) -> bool:
        """True from ``launch_kernel`` until the kernel's end has been waited for."""
        return self._end is not None

    async def poll(self) -> int | None:
        """Return None while the kernel lives, then its exit status."""
        if self._end is None:
            return 0
        return self._end.result().status if self._end.done() else None

    async def wait(self) -> int | None:
        """Wait for the kernel to end."""
        if self._end is None:
            return 0
        while not self._end.done():  # noqa: ASYNC110 - a thread's future, and the loop may be another each time
            await asyncio.sleep(_LOOK_EVERY_S)
        status, self._end = self._end.result().status, None
        return status

    async def send_signal(self, signum: int) -> None:
        """Signal the kernel's process; PID 1 of its sandbox delivers it."""
        if self._lease and self.has_process:
            with suppress(LeaseRefused):
                await asyncio.to_thread(self._lease.signal, signum)

    async def kill(self, restart: bool = False) -> None:
        """Kill the kernel and everything it started."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """Do the same as ``kill``: a kernel has nothing to save."""
        await self.send_signal(signal.SIGKILL)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Prepare the launch. There is no command; by default, the connection file is in the folder of the links."""
        if not self.parent.connection_file:
            self.parent.connection_file = str(self._folder / "connection.json")
        arguments: dict[str, Any] = await super().pre_launch(cmd=[], **kwargs)
        return arguments

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Lease a kernel, or start a fresh one in the sandbox that is already leased.

        Raises:
            SupervisorUnavailable: no supervisor is running, and none could be started.
            LeaseRefused: the supervisor refused.
        """
        await asyncio.to_thread(self._launch)
        ports = {f"{channel}_port": number for number, channel in enumerate(_CHANNELS, 1)}
        self.connection_info = {
            "transport": "ipc",
            "ip": str(self._folder / "c"),
            **ports,
            "key": self.parent.session.key,
            "signature_scheme": "hmac-sha256",
        }
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        """End the lease, unless a fresh kernel is to follow in the same sandbox."""
        if restart:
            return
        if self._lease:
            with suppress(LeaseRefused):
                await asyncio.to_thread(self._lease.close)
        self._lease = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _launch(self) -> None:
        """Launch the kernel; blocks, so it runs in a thread, because the first supervisor takes seconds to start."""
        try:
            spec = LeaseRequest(topology=self.topology, keras=self.keras, key=self.parent.session.key.decode())
        except ValidationError as e:
            wrong = e.errors(include_url=False, include_input=False)[0]
            raise LeaseRefused(f"Lockstep does not have this kernel: {wrong['loc'][0]}: {wrong['msg']}") from e
        if self._lease:
            try:
                self._lease.restart(spec)
            except LeaseRefused:  # it ended with its supervisor, or nobody held it for too long
                self._lease = None
        if self._lease is None:
            self._lease = self._take(spec)
        self._link(self._lease.files)
        self._end = self._lease.hold(self._explain)

    def _explain(self, end: KernelExit) -> None:
        """Log why the kernel ended: Jupyter itself says only that it died."""
        if end.reached in REACHED:
            self.log.error("Lockstep ended the kernel: %s", REACHED[end.reached])

    def _take(self, spec: LeaseRequest) -> Lease:
        recipe = SupervisorRecipe(
            Path(self.socket) if self.socket else None, Path(self.python), Path(self.data_dir).absolute()
        )
        socket = ensure_supervisor(recipe, self.log.info)
        try:
            lease = Lease.take(socket, spec)
        except LeaseRefused as e:
            words = log_tail(socket)
            raise LeaseRefused(
                f"Lockstep did not provide a kernel: {e}." + (f"\nIts log ends:\n{words}" if words else "")
            ) from e
        if not all(map(_is_ours_to_see, lease.files)):
            lease.close()
            raise LeaseRefused(f"The runner at {socket} keeps its sockets in a folder that this process cannot see.")
        told = "Lockstep: %s, Keras %s, from the supervisor at %s; the notebook's folder is not visible to the kernel"
        self.log.info(told, spec.topology, spec.keras, socket)
        return lease

    def _link(self, files: list[Path]) -> None:
        """Create the links. Jupyter removes ``ipc`` sockets before a restart, so this happens each time."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for number, file in enumerate(files, 1):
            link = self._folder / f"c-{number}"
            link.unlink(missing_ok=True)
            link.symlink_to(file)


def _is_ours_to_see(file: Path) -> bool:
    try:
        return file.is_socket()
    except PermissionError:
        return False
