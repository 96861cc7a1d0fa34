"""Bare kernels leased to Jupyter clients on this machine, which talk to them directly.

A lease is a sandbox with one kernel in it. It takes a slot on the node like a session and has the same isolation and
the same limits, but the supervisor is not between client and kernel: there are no runs, no events, and no limits on the
time or output of a run. There is no idle limit either: a client holds its lease by reading ``exit``. When nobody has
read for a few seconds, the lease ends, and so does everything in its sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import structlog

from runners.config.settings import Limits, RunnerSettings
from runners.devices.allocation import DeviceAllocation, UsableDevices
from runners.devices.device_pool import DevicePool, NoDeviceAvailable
from runners.jupyter.private_folder import remove_stale_folders
from runners.kernels.zygote_client import ZygoteClient, ZygoteUnavailable
from runners.sandbox.handle import CHANNEL_COUNT, Sandbox, SandboxGone
from runners.sandbox.usage import UsageWatcher
from runners.wire.protocol import KerasVersion, KernelExit, KernelLease, LeaseRequest, LimitName

log = structlog.get_logger()

UNHELD_LEASE_S = 8.0
"""How long a lease outlives its reader. A client that restarts a kernel is away for a moment."""
_LOOK_EVERY_S = 0.5
_KEEP_ALIVE_S = 2.0


class LeaseNotFound(Exception):
    """There is no such lease (any more)."""


class LeaseLimitReached(Exception):
    """Every seat on the node is taken; ``most`` is how many there are."""

    def __init__(self, most: int) -> None:
        super().__init__(f"all {most} seats on this node are taken; shut down a kernel or session, or wait")
        self.most = most


class LeasesForbidden(Exception):
    """A lease has no limit on time, CPU or idleness, so untrusted users get none."""

    def __init__(self) -> None:
        super().__init__("untrusted users can reach this runner, so it leases no kernels, which have no time limit")


class LeaseSandboxFailed(Exception):
    """No sandbox could be created; ``str()`` says why."""


class LeaseMismatch(Exception):
    """The request does not fit the sandbox, whose Keras version and real devices cannot change."""


@dataclass
class _Lease:
    sandbox: Sandbox
    spec: LeaseRequest
    allocation: DeviceAllocation | None
    exited: asyncio.Future[int]
    reached: LimitName | None = None
    """The limit because of which the supervisor has ended the kernel."""
    memory_kills: int = 0
    """Processes in the sandbox that the operating system had killed for memory before the kernel started."""
    readers: int = 0
    alone_since: float = field(default_factory=time.monotonic)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self, spec: LeaseRequest) -> None:
        """Fork a kernel, after ending the previous one."""
        key = spec.key.encode()
        self.reached, self.memory_kills = None, self.sandbox.group.facts().oom_kills
        self.exited = self.sandbox.start_kernel(spec.topology, spec.keras, key, keyboard=True)

    def exit_with(self, status: int) -> KernelExit:
        """How the kernel ended."""
        killed = status == -signal.SIGKILL and self.sandbox.group.facts().oom_kills > self.memory_kills
        return KernelExit(status=status, reached="memory" if killed else self.reached)

    def told(self, name: str) -> KernelLease:
        """The lease as its client reads it."""
        shell, iopub, stdin, control, heartbeat = range(1, CHANNEL_COUNT + 1)
        ports = (shell, iopub, stdin, control, heartbeat)
        return KernelLease(id=name, ip=str(self.sandbox.folder / "k"), ports=ports)


class LeaseManager:
    """The kernels on loan from one node. Used from its event loop.

    Args:
        zygote: gives the zygote for a Keras version.
        has_room: whether one more seat may be taken.
        left: called after a seat became free.
        settings: the number of seats, the limits of each sandbox, and whether untrusted users can reach the runner.
        devices: the node's real devices.
    """

    def __init__(
        self,
        zygote: Callable[[KerasVersion, DeviceAllocation | None], ZygoteClient],
        has_room: Callable[[], bool],
        left: Callable[[], None],
        settings: RunnerSettings,
        devices: DevicePool | None = None,
    ) -> None:
        self._zygote = zygote
        self._devices = devices or DevicePool("simulate", 1, UsableDevices())
        self._has_room = has_room
        self._most = settings.max_sessions
        self._left = left
        self._limits = settings.limits
        self._untrusted_users = settings.untrusted_users
        self._leases: dict[str, _Lease] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._being_made = 0
        self._closed = False

    def __len__(self) -> int:
        """The number of seats taken."""
        return len(self._leases) + self._being_made

    def mark_users_untrusted(self) -> None:
        """Lease no more kernels, and end those that are leased."""
        self._untrusted_users = True
        for name in self._leases:
            log.warning("kernel ended: untrusted users can reach this runner", kernel=name)
            self._end_soon(name)

    async def take(self, spec: LeaseRequest) -> KernelLease:
        """Lease a new kernel, which is starting when this returns.

        Raises:
            LeasesForbidden: untrusted users can reach the node.
            LeaseLimitReached: the node is full.
            LeaseSandboxFailed: no sandbox could be created.
        """
        if self._untrusted_users:
            raise LeasesForbidden
        if not self._has_room():
            raise LeaseLimitReached(self._most)
        name = secrets.token_hex(8)
        self._being_made += 1
        try:
            sandbox, allocation = await self._sandbox(spec)
            if self._closed or self._untrusted_users:
                await self._destroy(sandbox, allocation)
                raise LeaseSandboxFailed("the supervisor is ending") if self._closed else LeasesForbidden
            lease = _Lease(sandbox, spec, allocation, asyncio.get_running_loop().create_future())
            self._leases[name] = lease
        finally:
            self._being_made -= 1
            if name not in self._leases:
                self._left()
        try:
            lease.start(spec)
        except SandboxGone as e:
            await self.end(name)
            raise LeaseSandboxFailed(f"the sandbox ended before its kernel started: {e}") from e
        lease.tasks = [
            asyncio.create_task(self._end_when_alone(name, lease), name=f"lease-{name}"),
            asyncio.create_task(_watch_memory(lease, self._limits), name=f"lease-memory-{name}"),
        ]
        return lease.told(name)

    async def restart(self, name: str, spec: LeaseRequest) -> KernelLease:
        """Start a fresh kernel in the same sandbox, after ending everything that ran there.

        Raises:
            LeaseNotFound: there is no such lease, or its sandbox has ended.
            LeaseMismatch: the request needs another sandbox.
        """
        lease = self._find(name)
        was = lease.spec
        if spec.keras != was.keras:
            raise LeaseMismatch(f"this kernel has Keras {was.keras}; ask for a new one to have Keras {spec.keras}")
        if lease.allocation and spec.topology != was.topology:
            raise LeaseMismatch(f"this kernel has real devices; ask for a new one to have {spec.topology}")
        try:
            lease.start(spec)
        except SandboxGone as e:
            await self.end(name)
            raise LeaseNotFound(f"the sandbox of kernel {name} has ended") from e
        return lease.told(name)

    def signal(self, name: str, signum: int) -> None:
        """Signal the kernel's process; ignored if it has ended. Raises LeaseNotFound."""
        with contextlib.suppress(SandboxGone):
            self._find(name).sandbox.send_signal(signum)

    def reading(self, name: str) -> AsyncIterator[KernelExit | None]:
        """Hold the lease: yield None every few seconds, then the kernel's exit. Raises LeaseNotFound at once."""
        return self._read(self._find(name))

    async def end(self, name: str) -> None:
        """End the kernel and everything in its sandbox. Raises LeaseNotFound."""
        lease = self._find(name)
        del self._leases[name]
        for task in lease.tasks:
            task.cancel()
        try:
            await self._destroy(lease.sandbox, lease.allocation)
        finally:
            self._left()

    async def close(self) -> None:
        """End every lease, and refuse new ones."""
        self._closed = True
        for name in self._leases:
            self._end_soon(name)
        await asyncio.gather(*self._ending)
        remove_stale_folders()

    def _end_soon(self, name: str) -> None:
        task = asyncio.create_task(self._end_if_there(name), name=f"lease-end-{name}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end_if_there(self, name: str) -> None:
        with contextlib.suppress(LeaseNotFound):
            await self.end(name)
        remove_stale_folders()

    def _find(self, name: str) -> _Lease:
        try:
            return self._leases[name]
        except KeyError:
            raise LeaseNotFound(f"no kernel {name}") from None

    async def _sandbox(self, spec: LeaseRequest) -> tuple[Sandbox, DeviceAllocation | None]:
        try:
            allocation = self._devices.acquire(spec.topology)
        except NoDeviceAvailable as e:
            raise LeaseSandboxFailed(str(e)) from e
        try:
            zygote = self._zygote(spec.keras, allocation)
            while not zygote.ready and not zygote.trouble:  # noqa: ASYNC110 - one or the other comes within seconds
                await asyncio.sleep(0.05)
            return await zygote.spawn(allocation), allocation
        except BaseException as e:
            if allocation:
                self._devices.release(allocation)
            if isinstance(e, ZygoteUnavailable):
                raise LeaseSandboxFailed(str(e)) from e
            raise

    async def _destroy(self, sandbox: Sandbox, allocation: DeviceAllocation | None) -> None:
        try:
            await sandbox.destroy()
        finally:
            if allocation:
                self._devices.release(allocation)

    async def _read(self, lease: _Lease) -> AsyncIterator[KernelExit | None]:
        lease.readers += 1
        exited = lease.exited
        try:
            while not exited.done():
                yield None  # first: a client that has read this holds the lease
                await asyncio.wait({exited}, timeout=_KEEP_ALIVE_S)
            yield lease.exit_with(exited.result())
        finally:
            lease.readers -= 1
            lease.alone_since = time.monotonic()

    async def _end_when_alone(self, name: str, lease: _Lease) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if not lease.readers and time.monotonic() - lease.alone_since > UNHELD_LEASE_S:
                break
        log.info("kernel ended: nobody holds its lease", kernel=name)
        self._end_soon(name)


async def _watch_memory(lease: _Lease, limits: Limits) -> None:
    """Kill a kernel that takes too much memory, if no cgroup does. CPU time has no limit: a lease has no runs."""
    while True:
        async with UsageWatcher(lease.sandbox, limits) as usage:
            usage.begin_run()
            await usage.exceeded.wait()
            if usage.met in ("memory", "sockets"):
                lease.reached = usage.met
            if usage.met == "sockets":
                log.warning("kernel ended: its sandbox exceeded its limit of sockets", sockets=limits.sockets)
            if usage.met == "memory":
                log.warning("kernel ended: its sandbox exceeded its memory limit", megabytes=limits.memory_mb)
                with contextlib.suppress(SandboxGone):
                    lease.sandbox.send_signal(signal.SIGKILL)
        await asyncio.sleep(_LOOK_EVERY_S)
