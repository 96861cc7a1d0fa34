"""The supervisor's side of a zygote: start it in the outer sandbox, ask for sandboxes, replace it when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import re
import secrets
import signal
import socket
import subprocess
from pathlib import Path

import structlog

from runners.config.settings import ACCEPTANCE, RunnerSettings
from runners.devices.allocation import DeviceAllocation, UsableDevices
from runners.diagnostics.inspection import inspect_sandbox
from runners.diagnostics.isolation_checks import UNSAFE_MESSAGE, check_isolation, find_gaps, why_unsafe
from runners.sandbox import zygote_command
from runners.sandbox.cgroups import CgroupManager, NullCgroup
from runners.sandbox.handle import Sandbox, SandboxGone, bind_channels
from runners.sandbox.layout import DATASETS
from runners.sandbox.policy import session_policy
from runners.sandbox.seccomp import NO_NAMELESS_FILES, compile_deny_rules, compile_filters
from runners.sandbox.user_pool import NoUserAvailable, UserPool
from runners.wire import journal
from runners.wire.protocol import LibraryPatch, Safeguard

log = structlog.get_logger()

_LARGEST_ANSWER = 1 << 18
_BACKOFF_S = (0.2, 1.0, 5.0, 15.0)
_START_S = 240.0
"""How long a zygote may take to import TensorFlow before it counts as hung."""
_SPAWN_S = 30.0
_NEXT_ZYGOTE_S = 45.0
"""How long a sandbox may wait for a zygote that is being replaced; the first one may take the whole start time."""
_OOM_SCORE = "400"
"""The OOM score adjustment of a sandbox's PID 1; lower than its kernels', which are killed first."""
_NICE = 10
"""The niceness of a session whose share of the CPU no cgroup limits, so that the supervisor goes first."""
_MOST_REFUSALS = 3
"""Consecutive failed sandboxes before the zygote is replaced."""
_FULL_MACHINE = re.compile(rf"\[Errno ({errno.EAGAIN}|{errno.ENOMEM})\]")
"""In a zygote's error message: the machine has no processes or memory left."""
_MOST_FAILURES = 2
"""Consecutive zygotes that failed to start before requests stop waiting for the next one."""
_MOST_ARENAS = "4"
"""Arenas of malloc in each kernel; with one per TensorFlow thread, a fit uses 10 MB more and is no faster."""
_PACKAGE_PARENT = str(Path(__file__).resolve().parents[2])


class ZygoteUnavailable(Exception):
    """A sandbox cannot be created now. ``str()`` says why."""


class ZygoteEnded(ZygoteUnavailable):
    """The zygote ended before it answered. The next one is already starting."""


class IsolationIncomplete(ZygoteUnavailable):
    """No sandbox is created because untrusted users can reach this runner and an isolation layer is missing."""


class ZygoteClient:
    """One zygote for one Keras version, restarted whenever it ends. A cold one is for kernels with a TPU."""

    def __init__(
        self,
        settings: RunnerSettings,
        keras: int,
        folder: Path,
        groups: CgroupManager,
        users: UserPool,
        hardware: UsableDevices = UsableDevices(),  # noqa: B008 - it never changes
        *,
        cold: bool = False,
    ) -> None:
        self.limits = settings.limits
        self._settings = settings
        self._keras = keras
        self._folder = folder
        self._groups = groups
        self._users = users
        self._hardware = hardware
        self._cold = cold
        self._leases: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self._ready = asyncio.Event()
        self._link: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._unwanted: set[asyncio.Task[None]] = set()
        self._datasets: str | None = None
        self._usual_policy = ""
        """The policy of sandboxes without real devices, as the latest zygote was started: making it takes a
        millisecond."""
        self.outer_sandbox = "none"
        self.trouble: str | None = None
        self.safeguards: list[Safeguard] = []
        """The safeguards around the first sandbox of the latest zygote; empty until there has been one."""
        self.patches: list[LibraryPatch] = []
        """The patches as the latest zygote found them; empty until there has been one, and for a cold one."""
        self._refusals = 0
        self._failures = 0
        self._was_ready = False

    @property
    def ready(self) -> bool:
        """Whether a sandbox can be created at once."""
        return self._ready.is_set()

    @property
    def refuses(self) -> str:
        """Why sandboxes are refused although they could be created, for the operator; empty if they are not."""
        return why_unsafe(self.safeguards, self._settings)

    def mark_users_untrusted(self) -> None:
        """Note that untrusted users can reach this runner: from now on, a missing isolation layer means refusal."""
        self._settings = self._settings.model_copy(update={"untrusted_users": True})
        self._log_refusal()

    def keep(self) -> None:
        """Start it, and restart it whenever it ends."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name=f"zygote-keras{self._keras}")

    async def close(self) -> None:
        """End it permanently; its sandboxes live on."""
        if self._keeper:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        await asyncio.gather(*self._unwanted, return_exceptions=True)
        self._stop()

    async def spawn(self, allocation: DeviceAllocation | None = None) -> Sandbox:
        """Fork a sandbox, in its cgroup before it runs anything, with the real devices ``allocation``, if any.

        Canceling this leaves nothing behind: the zygote answers requests in order, so the sandbox is awaited anyway,
        and destroyed.

        If the zygote dies meanwhile, the sandbox comes from the next one.

        Raises:
            ZygoteUnavailable: no zygote started in time, or a step failed on this machine.
            IsolationIncomplete: an essential isolation layer is missing.
        """
        try:
            async with asyncio.timeout(_NEXT_ZYGOTE_S if self._was_ready else _START_S):
                while True:
                    if self.trouble and self._failures >= _MOST_FAILURES:
                        raise ZygoteUnavailable(self.trouble)
                    await self._ready.wait()
                    if self.refuses:
                        raise IsolationIncomplete(UNSAFE_MESSAGE)
                    with contextlib.suppress(ZygoteEnded):
                        return await self._make_even_if_unwanted(allocation)
        except TimeoutError:
            raise ZygoteUnavailable(self.trouble or "no zygote was ready in time") from None

    async def _make_even_if_unwanted(self, allocation: DeviceAllocation | None) -> Sandbox:
        making = asyncio.create_task(self._make(allocation), name="sandbox")
        try:
            return await asyncio.shield(making)
        except OSError as e:
            raise ZygoteUnavailable(f"a step failed on this machine: {e}") from e
        except asyncio.CancelledError:
            unwanted = asyncio.create_task(_destroy(making), name="unwanted-sandbox")
            self._unwanted.add(unwanted)
            unwanted.add_done_callback(self._unwanted.discard)
            raise

    async def _make(self, allocation: DeviceAllocation | None = None) -> Sandbox:
        name = secrets.token_hex(6)
        folder = self._folder / name
        folder.mkdir(mode=0o700)
        channels, printed = bind_channels(folder), journal.create()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                handed = [theirs.fileno(), printed, *(channel.fileno() for channel in channels)]
                user, pid, landlock, pidfd = await self._ask(allocation, handed)
        except BaseException:
            ours.close()
            os.close(printed)
            for path in (*folder.iterdir(),):
                path.unlink()
            folder.rmdir()
            raise
        finally:
            for channel in channels:
                channel.close()
        sandbox = Sandbox(name, folder, pid, pidfd, ours, NullCgroup(), landlock=landlock, printed=printed)
        sandbox.watch()
        lease = asyncio.create_task(self._lease(user, sandbox), name="user")
        self._leases.add(lease)
        lease.add_done_callback(self._leases.discard)
        try:
            sandbox.group = self._groups.create(name, self.limits)
            sandbox.group.add(pid)
            _end_before_the_host(pid)
            if not self._groups.version:
                _give_way(pid)
        except OSError as e:
            await sandbox.destroy()
            raise ZygoteUnavailable(f"the sandbox could not be put in its cgroup: {e}") from e
        return sandbox

    async def _lease(self, user: int | None, sandbox: Sandbox) -> None:
        """Keep the user from other sandboxes until the last process of this one is gone."""
        await sandbox.gone.wait()
        self._users.release(user)

    async def _ask(
        self, allocation: DeviceAllocation | None, descriptors: list[int]
    ) -> tuple[int | None, int, int, int]:
        """Request a sandbox. Returns its user, its PID 1, the Landlock version in force there, and a pidfd of PID 1."""
        try:
            user = self._users.acquire()
        except NoUserAvailable as e:
            raise ZygoteUnavailable(str(e)) from e
        try:
            policy = self._policy(allocation) if allocation else self._usual_policy
            return user, *await self._ask_for(user, policy, descriptors)
        except BaseException:
            self._users.release(user)
            raise

    async def _ask_for(self, user: int | None, policy: str, descriptors: list[int]) -> tuple[int, int, int]:
        async with self._lock:
            if not self.ready and asyncio.current_task() is not self._keeper:
                raise ZygoteEnded("the zygote was replaced, and the isolation of the new one has not been checked yet")
            data, fds = await self._exchange(user, policy, descriptors)
        answer = json.loads(data)
        if "error" in answer or not fds:
            for fd in fds:
                os.close(fd)
            self._count_refusal(str(answer.get("error")))
            raise ZygoteUnavailable(f"no sandbox could be created: {answer.get('error')}")
        self._refusals = 0
        return int(answer["pid"]), int(answer["landlock"]), fds[0]

    async def _exchange(self, user: int | None, policy: str, descriptors: list[int]) -> tuple[bytes, list[int]]:
        """Send one request and read its answer; the caller holds the lock."""
        link = self._link
        if link is None:
            raise ZygoteEnded("the zygote is being replaced")
        request = json.dumps({"policy": policy, "user": user}).encode()
        try:
            socket.send_fds(link, [request], descriptors)
            data, fds = await asyncio.wait_for(self._receive(link), _SPAWN_S)
            if not data:
                raise ConnectionResetError("it closed its end of the socket")
        except TimeoutError as e:
            self._stop(link)
            raise ZygoteUnavailable("the zygote does not answer") from e
        except OSError as e:
            self._stop(link)
            raise ZygoteEnded(f"the zygote ended: {e}") from e
        finally:
            if link is not self._link:
                link.close()  # whoever stopped the zygote left this to us
        return data, fds

    def _count_refusal(self, why: str) -> None:
        """Count a failure to create a sandbox. A zygote may have a stale view of the machine, so a new one may succeed.

        If the machine itself has no processes or memory left, a new one would not help.
        """
        if _FULL_MACHINE.search(why):
            return
        self._refusals += 1
        if self._refusals >= _MOST_REFUSALS:
            log.warning("zygote cannot create sandboxes; replacing it", keras=self._keras)
            self._refusals = 0
            self._stop()

    async def _receive(self, link: socket.socket) -> tuple[bytes, list[int]]:
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(link.fileno(), readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(link.fileno())
        data, fds, _, _ = socket.recv_fds(link, _LARGEST_ANSWER, 1)
        return data, fds

    async def _keep(self) -> None:
        while True:
            try:
                await self._start()
                await self._inspect()
                self._failures = 0
                self.trouble = None
                self._was_ready = True
                self._ready.set()
                assert self._process
                status = await _ended(self._process)
                log.warning("zygote ended", keras=self._keras, status=status)
            except Exception as e:  # whatever it was: without this task, nothing would restart the zygote
                self.trouble = str(e) or repr(e)
                expected = isinstance(e, (OSError, RuntimeError, ZygoteUnavailable, SandboxGone))
                log.error("zygote did not start", keras=self._keras, error=self.trouble, exc_info=not expected)
                self._failures += 1
            self._stop()
            await asyncio.sleep(_BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)])

    async def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        self._link = ours
        with theirs:
            self._process = self._launch(theirs)
        try:
            async with asyncio.timeout(_START_S):
                data, _ = await self._receive(ours)
        except TimeoutError:
            raise RuntimeError(f"the zygote was not ready within {_START_S:g} s") from None
        if not data:
            status = await asyncio.wait_for(_ended(self._process), 5)
            raise RuntimeError(f"the zygote ended with status {status} before it was ready; see the log above")
        self.patches = [LibraryPatch.model_validate(patch) for patch in json.loads(data).get("patches", [])]
        for patch in self.patches:
            if patch.problem:
                log.error("a patch no longer fits its library", keras=self._keras, problem=patch.problem)

    def _launch(self, link: socket.socket) -> subprocess.Popen[bytes]:
        arguments = ["--socket", str(link.fileno()), "--keras", str(self._keras)]
        if self._hardware:
            arguments.append("--hardware")
        if self._cold:
            arguments.append("--cold")
        command, self.outer_sandbox = zygote_command.zygote_command(
            self._settings, arguments, self._hardware.nodes, self._hardware.facts
        )
        datasets = zygote_command.datasets_folder(self._settings)
        self._datasets = DATASETS if datasets and self.outer_sandbox == "bubblewrap" else datasets
        self._usual_policy = self._policy(None)
        environment = {"PYTHONPATH": _PACKAGE_PARENT, "MALLOC_ARENA_MAX": _MOST_ARENAS}
        environment |= {k: os.environ[k] for k in ("PATH", "LANG", "LD_LIBRARY_PATH") if k in os.environ}
        return subprocess.Popen(command, pass_fds=[link.fileno()], env=environment, cwd="/", stdin=subprocess.DEVNULL)

    def _policy(self, allocation: DeviceAllocation | None) -> str:
        unlimited = not self._groups.version and allocation is None
        first = (compile_deny_rules(NO_NAMELESS_FILES),) if unlimited else ()  # the last filter allows no further one
        return session_policy(self.limits, self._datasets, (*first, *compile_filters()), allocation).to_json()

    async def _inspect(self) -> None:
        """Create one sandbox with a kernel, inspect it from outside, and check which isolation layers are in force.

        Raises:
            ZygoteUnavailable, SandboxGone, InspectionFailed: no sandbox with a kernel can be created.
        """
        sandbox = await self._make()
        try:
            sandbox.start_kernel("cpu", self._keras, secrets.token_hex(16).encode())
            sight = await inspect_sandbox(sandbox.pid, sandbox.landlock)
        finally:
            await sandbox.destroy()
        before, self.safeguards = find_gaps(self.safeguards), check_isolation(sight, self._settings, self.outer_sandbox)
        for safeguard in [safeguard for safeguard in find_gaps(self.safeguards) if safeguard not in before]:
            log.warning(f"safeguard missing: {safeguard.name}", found=safeguard.detail, means=safeguard.means)
        self._log_refusal()

    def _log_refusal(self) -> None:
        if self.refuses:
            log.error("learners' code is refused", why=self.refuses, otherwise=f'LOCKSTEP_UNSAFE_RUNNER="{ACCEPTANCE}"')

    def _stop(self, asked: socket.socket | None = None) -> None:
        """End it; with ``asked``, only the one behind that socket, because its successor may already exist."""
        if asked is not None and asked is not self._link:
            return
        self._ready.clear()
        if self._link:
            if self._lock.locked():  # a request waits for an answer; it notices that none will come, and closes it
                with contextlib.suppress(OSError):
                    self._link.shutdown(socket.SHUT_RDWR)
            else:
                self._link.close()
            self._link = None
        if self._process and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
            self._process.wait()


async def _destroy(making: asyncio.Task[Sandbox]) -> None:
    with contextlib.suppress(ZygoteUnavailable, OSError):
        await (await making).destroy()


def _end_before_the_host(pid: int) -> None:
    """Make the kernel kill sessions first if memory runs out. If root sets it, code inside cannot undo it."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(_OOM_SCORE)


def _give_way(pid: int) -> None:
    """Let the supervisor and the web application have the CPU first; code inside cannot undo it."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, max(_NICE, os.getpriority(os.PRIO_PROCESS, pid)))


async def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a child without a thread: a waiting thread would delay the end of this process."""
    pidfd = os.pidfd_open(process.pid)
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(pidfd, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)
    return process.wait()
