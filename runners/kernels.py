"""A kernel that is ready to work: sandbox, kernel manager and client in one, and a pool of such kernels."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import OrderedDict, deque
from typing import Any

import structlog
import zmq
import zmq.asyncio
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from runners.protocol import Keras
from runners.provisioner import ZygoteProvisioner
from runners.sandbox.host import Sandbox, SandboxGone
from runners.settings import Limits, MiB
from runners.zygotes import NoZygote, Zygote

log = structlog.get_logger()

_ENVELOPE = MiB
"""What a message may have beside the output in it, in bytes."""
_REPLIES_HELD, _OUTPUTS_HELD = 2, 32
"""Messages that may wait in the supervisor's memory; what comes after them waits in the session's own."""
MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError, zmq.ZMQError)
"""What reading a message that is none raises."""
_READY_S = 60.0
_GREET_AGAIN_S = 0.1
_PAUSE_S = 0.5
_KEYS = 3
_SPEC = {
    "argv": [],
    "display_name": "Lockstep",
    "language": "python",
    "interrupt_mode": "signal",
    "metadata": {"kernel_provisioner": {"provisioner_name": "lockstep-zygote"}},
}


class Manager(AsyncKernelManager):  # type: ignore[misc]
    """A kernel manager that leaves the channels' files alone (they outlive a restart and go with the sandbox), keeps
    the session's key out of files, and asks nothing of the kernel: what is to be done, the sandbox's PID 1 does."""

    def cleanup_ipc_files(self) -> None:
        """See the class."""

    def write_connection_file(self, **_: Any) -> None:
        """See the class."""

    def _connect_control_socket(self) -> None:
        """See the class."""


class KernelNotReady(Exception):
    """A kernel was started and did not answer."""


class Kernel:
    """A kernel in a sandbox of its own. ``await Kernel.create(…)`` makes one that already answers.

    Attributes:
        cut_off: set when a channel broke: the kernel ended, closed it, or sent a message larger than any output may
            be. It does not come back but by ``restart``.
    """

    def __init__(self, sandbox: Sandbox, topology: str, keras: Keras, limits: Limits) -> None:
        self.sandbox = sandbox
        self.topology = topology
        self.keras = keras
        context = zmq.asyncio.Context()
        context.setsockopt(zmq.MAXMSGSIZE, int(limits.output_mb * MiB) + _ENVELOPE)
        context.setsockopt(zmq.LINGER, 0)
        self._manager = Manager(context=context, transport="ipc")
        self._manager._kernel_spec = KernelSpec(**_SPEC)
        self._client: AsyncKernelClient | None = None
        self._context = context
        self.cut_off = asyncio.Event()
        self._watchers: list[asyncio.Future[Any]] = []

    @classmethod
    async def create(cls, zygote: Zygote, topology: str, keras: Keras) -> Kernel:
        """Fork a sandbox and a kernel in it.

        Raises:
            NoZygote: the machine or the zygote refused.
            KernelNotReady: it started and stayed silent.
        """
        kernel = cls(await zygote.spawn(), topology, keras, zygote.limits)
        try:
            await kernel._manager.start_kernel(sandbox=kernel.sandbox, topology=topology, keras=keras)
            await kernel._connect()
        except BaseException:
            await kernel.close()
            raise
        return kernel

    @property
    def exited(self) -> asyncio.Future[int]:
        """The exit status of the kernel process, once there is one."""
        provisioner = self._manager.provisioner
        assert isinstance(provisioner, ZygoteProvisioner)
        assert provisioner.exited is not None
        return provisioner.exited

    @property
    def client(self) -> AsyncKernelClient:
        """The Jupyter client of the kernel now running."""
        assert self._client is not None
        return self._client

    def execute(self, code: str) -> str:
        """Send the code; returns the message's id."""
        return str(self.client.execute(code, allow_stdin=False, stop_on_error=True))

    def probe(self) -> str:
        """Ask something harmless; returns the message's id."""
        return str(self.client.kernel_info())

    async def output(self) -> dict[str, Any]:
        """The next message of the kernel's output channel, as it came: trust nothing in it."""
        return dict(await self.client.get_iopub_msg())

    async def reply(self) -> dict[str, Any]:
        """The next message of the shell channel: the answer to a request. Trust nothing in it."""
        return dict(await self.client.get_shell_msg())

    def interrupt(self) -> None:
        """SIGINT: a KeyboardInterrupt in the learner's code."""
        self.sandbox.send_signal(signal.SIGINT)

    async def restart(self) -> None:
        """Kill all that runs in the sandbox and fork a fresh kernel there."""
        self._disconnect()
        await self._manager.restart_kernel(now=True)
        await self._connect()

    async def close(self) -> None:
        """End the sandbox and everything in it."""
        self._disconnect()
        await self.sandbox.destroy()
        self._manager.cleanup_connection_file()
        self._context.destroy(linger=0)

    async def _connect(self) -> None:
        client = self._manager.client(context=self._context)
        self._context.setsockopt(zmq.RCVHWM, _REPLIES_HELD)
        client.start_channels(iopub=False, stdin=False, hb=False, control=False)
        self._context.setsockopt(zmq.RCVHWM, _OUTPUTS_HELD)
        client.start_channels(shell=False, stdin=False, hb=False, control=False)
        self._client = client
        self._watch(client)
        try:
            await asyncio.wait_for(self._greet(client), _READY_S)
        except TimeoutError as e:
            raise KernelNotReady("the kernel did not answer") from e

    async def _greet(self, client: AsyncKernelClient) -> None:
        """Wait until both channels answer: the reply, and its echo on the output channel."""
        answers = asyncio.gather(client.get_shell_msg(), client.get_iopub_msg())
        try:
            while not answers.done():
                client.kernel_info()
                awaited: set[asyncio.Future[Any]] = {answers, self.exited}
                await asyncio.wait(awaited, timeout=_GREET_AGAIN_S, return_when="FIRST_COMPLETED")
                if self.exited.done():
                    raise KernelNotReady(f"the kernel ended with status {self.exited.result()} before it answered")
            await answers
        finally:
            answers.cancel()
            await asyncio.gather(answers, return_exceptions=True)

    def _watch(self, client: AsyncKernelClient) -> None:
        self.cut_off.clear()
        for channel in (client.shell_channel, client.iopub_channel):
            monitor = channel.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            watcher = asyncio.ensure_future(monitor.recv_multipart())
            watcher.add_done_callback(self._cut)
            self._watchers.append(watcher)

    def _cut(self, watcher: asyncio.Future[Any]) -> None:
        if not watcher.cancelled():
            self.cut_off.set()

    def _disconnect(self) -> None:
        for watcher in self._watchers:
            watcher.cancel()
        self._watchers.clear()
        if self._client is not None:
            for channel in (self._client.shell_channel, self._client.iopub_channel):
                channel.socket.disable_monitor()
            self._client.stop_channels()
            self._client = None


class Pool:
    """Kernels that wait, ready, for the topologies that were asked for last."""

    def __init__(self, size: int, zygote: Any, first: tuple[str, Keras]) -> None:
        self._size = size
        self._zygote = zygote
        self._ready: OrderedDict[tuple[str, Keras], deque[Kernel]] = OrderedDict({first: deque()})
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._filler: asyncio.Task[None] | None = None

    def keep(self) -> None:
        """Begin to fill."""
        if self._size and self._filler is None:
            self._filler = asyncio.create_task(self._fill(), name="pool")

    def __len__(self) -> int:
        return sum(map(len, self._ready.values()))

    async def take(self, topology: str, keras: Keras) -> Kernel:
        """A ready kernel, or a new one where none waits. Raises as ``Kernel.create`` does."""
        waiting = self._ready.setdefault((topology, keras), deque())
        self._ready.move_to_end((topology, keras))
        self._wanted.set()
        while waiting:
            kernel = waiting.popleft()
            if not kernel.exited.done():
                return kernel
            await kernel.close()
        return await Kernel.create(self._zygote(keras), topology, keras)

    async def close(self) -> None:
        """End the filler and every waiting kernel."""
        if self._filler:
            self._filler.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._filler
        for waiting in self._ready.values():
            while waiting:
                await waiting.popleft().close()

    async def _fill(self) -> None:
        """One kernel at a time with a pause between: those who run have the machine first."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while key := self._short():
                topology, keras = key
                await asyncio.sleep(_PAUSE_S)
                try:
                    kernel = await Kernel.create(self._zygote(keras), topology, keras)
                except (NoZygote, KernelNotReady, SandboxGone, OSError) as e:
                    log.warning("pool cannot be filled", topology=topology, error=str(e))
                    await asyncio.sleep(5)
                    continue
                self._ready.setdefault(key, deque()).append(kernel)
            await self._forget_old_keys()

    def _short(self) -> tuple[str, Keras] | None:
        for key in reversed(list(self._ready)[-_KEYS:]):
            if len(self._ready[key]) < self._size:
                return key
        return None

    async def _forget_old_keys(self) -> None:
        while len(self._ready) > _KEYS:
            _, waiting = self._ready.popitem(last=False)
            for kernel in waiting:
                await kernel.close()
