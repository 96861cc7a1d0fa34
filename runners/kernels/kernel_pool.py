"""A ready kernel (sandbox, process and channels), and a pool of such kernels.

Only two of Jupyter's five channels are connected: shell, for requests, and iopub, for output. Nothing here takes more
memory than one message of each, whatever the kernel sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, Literal

import structlog

from runners.config.settings import Limits, MiB
from runners.devices.allocation import DeviceAllocation
from runners.kernels.channel import Channel, open_channel
from runners.kernels.envelope import MalformedMessage, MessageCodec
from runners.kernels.fair_share import FairShare
from runners.kernels.messages import is_idle
from runners.kernels.received_output import ReceivedOutput, StreamText
from runners.kernels.zmtp import MessageTooLarge, ZmtpError, ZmtpLimits
from runners.kernels.zygote_client import IsolationIncomplete, ZygoteClient, ZygoteUnavailable
from runners.sandbox.handle import Sandbox, SandboxGone
from runners.wire.protocol import KerasVersion
from runners.wire.topology import Topology

log = structlog.get_logger()

_ENVELOPE = MiB
"""Bytes that a message may have in addition to its output."""
MALFORMED_ERRORS = (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError)
"""The errors that an invalid message raises."""
_TAKE_S = 20e-6
"""CPU time that a message takes in addition to receiving and parsing it, on a busy machine."""
_READY_S = 60.0
_READY_AFTER_IMPORT_S = 240.0
"""The timeout of a kernel that imports TensorFlow first, as one with a real TPU does."""
_AGAIN_S = 0.01
_PAUSE_S = 0.5
_TRY_AGAIN_S = 2.0
_MOST_FAILURES = 3
"""Consecutive failures before the node reports trouble: on a full machine, the system may kill a single kernel."""
_KEYS = 3
"""The most combinations of topology and Keras version that kernels are kept ready for: the most recently used."""
_CLUSTER_S = 600.0
"""Seconds that one ready cluster is kept after the last request: it costs as many processes as it has members."""
_KEY_BYTES = 32
_EXECUTE = {"silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False, "stop_on_error": True}


class KernelNotReady(Exception):
    """A kernel was started but did not respond."""


class Kernel:
    """A kernel in its own sandbox. ``await Kernel.create(…)`` returns one that already responds.

    Attributes:
        exited: the exit status of the kernel process, once there is one.
        message_bytes: what the last message taken counts, values included, even if it was invalid.
        share: how much of the supervisor's time its messages may still take; parsing them is already charged.
        allocation: the real devices of its sandbox; None if it has none.
        cut_off: set when a channel broke: the kernel ended, closed it, or broke the protocol. Only ``restart`` brings
        it back.
        drained: set once every message that arrived before the output channel broke has been taken.
    """

    exited: asyncio.Future[int]

    def __init__(
        self,
        sandbox: Sandbox,
        topology: str,
        keras: KerasVersion,
        limits: Limits,
        allocation: DeviceAllocation | None = None,
    ) -> None:
        self.sandbox = sandbox
        self.topology = topology
        self.keras = keras
        self.allocation = allocation
        self.when_closed: Callable[[], None] | None = None
        """Called once, when its sandbox is completely gone."""
        self.cut_off = asyncio.Event()
        self.drained = asyncio.Event()
        self._heard = ReceivedOutput()
        self.message_bytes = 0
        self.share = FairShare(time.monotonic())
        self._cause: ZmtpError | None = None
        self._set_aside: tuple[dict[str, Any], int] | None = None
        """A message of the output channel that nobody has seen yet, and its size."""
        self._limits = ZmtpLimits(message_bytes=int(limits.output_mb * MiB) + _ENVELOPE)
        self._iopub, self._shell = self._channels()

    @classmethod
    async def create(
        cls, zygote: ZygoteClient, topology: str, keras: KerasVersion, allocation: DeviceAllocation | None = None
    ) -> Kernel:
        """Fork a sandbox and a kernel in it, with the real devices ``allocation``, if any.

        Raises:
            ZygoteUnavailable: the machine or the zygote refused.
            KernelNotReady: it started but did not respond.
            SandboxGone: its sandbox ended, twice in a row.
        """
        try:
            return await cls._create(zygote, topology, keras, allocation)
        except SandboxGone:  # its zygote has probably ended, too: the next one may do better
            return await cls._create(zygote, topology, keras, allocation)

    @classmethod
    async def _create(
        cls, zygote: ZygoteClient, topology: str, keras: KerasVersion, allocation: DeviceAllocation | None
    ) -> Kernel:
        kernel = cls(await zygote.spawn(allocation), topology, keras, zygote.limits, allocation)
        try:
            await kernel._start()
        except BaseException:
            await kernel.close()
            raise
        return kernel

    @property
    def cold(self) -> bool:
        """Whether each start imports TensorFlow, as with a real TPU."""
        return self.allocation is not None and self.allocation.tpu is not None

    @property
    def sent_too_much(self) -> bool:
        """Whether it was cut off for a message larger than any output may be."""
        return isinstance(self._cause, MessageTooLarge)

    def execute(self, code: str, *, store_history: bool = True) -> str:
        """Send the code; returns the message's id."""
        return self._ask("execute_request", _EXECUTE | {"code": code, "store_history": store_history})

    def rehearse(self) -> None:
        """Execute nothing, so that the first cell finds in memory what every cell needs. Nobody waits for it."""
        self._ask("execute_request", _EXECUTE | {"code": "None", "silent": True, "store_history": False})

    def introspect(self, kind: Literal["complete", "inspect"], code: str, cursor: int) -> str:
        """Ask about code; returns the message's id."""
        more = {"detail_level": 0} if kind == "inspect" else {}
        return self._ask(f"{kind}_request", {"code": code, "cursor_pos": cursor, **more})

    def probe(self) -> str:
        """Ask something harmless; returns the message's id."""
        return self._ask("kernel_info_request", {})

    async def output(self) -> dict[str, Any]:
        """Wait for the next message of the kernel's output channel. Trust nothing in it.

        Once the channel is broken and every earlier message is taken, ``drained`` is set and this waits forever. Raises
        MalformedMessage for an invalid message.
        """
        if self._set_aside:
            (message, self.message_bytes), self._set_aside = self._set_aside, None
        else:
            message = await self._next(self._iopub)
        self._heard.note(message)
        return message

    async def output_of_none(self, request: str) -> None:
        """Read the output channel until the kernel is done with a request that has no output.

        Another message, as from a thread that prints, is set aside for the next ``output``, and nothing more is read.
        """
        while self._set_aside is None:
            with contextlib.suppress(*MALFORMED_ERRORS):
                message = await self._next(self._iopub)
                if is_idle(message, request):
                    return
                if message.get("msg_type") != "status":
                    self._set_aside = message, self.message_bytes

    async def reply(self) -> dict[str, Any]:
        """Wait for the next message of the shell channel, the reply to a request. Otherwise like ``output``."""
        return await self._next(self._shell)

    def unheard(self) -> list[StreamText]:
        """After its end: printed text that no message delivered, in order within each stream."""
        tasks = Topology.parse(self.topology).tasks
        return self._heard.rest(self.sandbox.printed, tasks[0].lane if tasks else None)

    def interrupt(self) -> asyncio.Future[str]:
        """Send SIGINT, which raises KeyboardInterrupt in the learner's code; done once it has been sent.

        Until then, ask nothing else of the kernel: that would be interrupted instead. Raises SandboxGone.
        """
        return self.sandbox.interrupt()

    async def restart(self) -> None:
        """Kill everything in the sandbox and fork a fresh kernel there."""
        self._disconnect()
        await self._start()

    async def close(self) -> None:
        """End the sandbox and everything in it."""
        self._disconnect()
        try:
            await self.sandbox.destroy()
        finally:
            done, self.when_closed = self.when_closed, None
            if done:
                done()

    async def _start(self) -> None:
        key = secrets.token_hex(_KEY_BYTES).encode()
        self._envelopes = MessageCodec(key)
        self._heard = ReceivedOutput()
        self._set_aside = None
        self.exited = self.sandbox.start_kernel(self.topology, self.keras, key)
        try:
            async with asyncio.timeout(_READY_AFTER_IMPORT_S if self.cold else _READY_S):
                while not await self._connected():
                    pass
        except TimeoutError as e:
            raise KernelNotReady("the kernel did not answer") from e

    async def _connected(self) -> bool:
        """Connect and wait until both channels respond.

        The sockets listen before the kernel exists and while it is replaced, so everything is sent at once, and the
        kernel reads it when it starts. If the previous kernel accepted the connection in its last moment, it breaks:
        this waits a moment and returns False. Sockets that the previous kernel has shut down stay shut down, and those
        whose folder is gone stay away: KernelNotReady.
        """
        self._disconnect()
        self.cut_off.clear()
        self.drained.clear()
        self._cause = None
        self._iopub, self._shell = self._channels()
        greeting = asyncio.create_task(self._greet())
        try:
            awaited: set[asyncio.Future[Any]] = {greeting, self.exited}
            await asyncio.wait(awaited, return_when="FIRST_COMPLETED")
            if self.sandbox.gone.is_set():
                raise SandboxGone("the sandbox ended before its kernel answered")
            if self.exited.done():
                raise KernelNotReady(f"the kernel ended with status {self.exited.result()} before it answered")
            greeting.result()
        except (ConnectionRefusedError, FileNotFoundError) as e:
            raise KernelNotReady(f"its sockets no longer listen: {e.strerror}") from e
        except (ZmtpError, OSError):
            await asyncio.sleep(_AGAIN_S)
            return False
        finally:
            greeting.cancel()
            await asyncio.gather(greeting, return_exceptions=True)
        return True

    async def _greet(self) -> None:
        """Wait for a signed message on each channel: the kernel welcomes a subscriber and answers a request."""
        await open_channel(self.sandbox.folder / "k-2", self._iopub)
        await open_channel(self.sandbox.folder / "k-1", self._shell)
        self.probe()
        for channel in (self._shell, self._iopub):
            while True:
                with contextlib.suppress(MalformedMessage):
                    self._envelopes.open(await channel.receive())
                    break

    def _ask(self, kind: str, content: dict[str, Any]) -> str:
        name, frames = self._envelopes.seal(kind, content)
        self._shell.send(frames)
        return name

    async def _next(self, channel: Channel) -> dict[str, Any]:
        try:
            frames = await channel.receive()
        except ZmtpError:
            if channel is self._iopub:
                self.drained.set()
            never: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
            return await never
        begun = time.thread_time()
        try:
            return self._envelopes.open(frames)
        finally:
            self.message_bytes = sum(map(len, frames)) + self._envelopes.extra_bytes
            self.share.spend(_TAKE_S + time.thread_time() - begun)

    def _cut(self, cause: ZmtpError) -> None:
        self._cause = self._cause or cause
        self.cut_off.set()

    def _channels(self) -> tuple[Channel, Channel]:
        limits, cut, share = self._limits, self._cut, self.share
        return Channel("SUB", limits, cut, share), Channel("DEALER", limits, cut, share)

    def _disconnect(self) -> None:
        for channel in (self._shell, self._iopub):
            channel.close()


class KernelPool:
    """Ready kernels for the most recently requested topologies.

    If no kernel is ready, as many are created at a time as the machine has cores, plus one for idle moments: when a
    whole class starts at once, the first learners begin soon, and the last ones wait no longer. The pool is refilled
    when nobody waits for a kernel.

    Attributes:
        trouble: why no kernel can be created; None after a single failure, and again as soon as one succeeds. After a
        failure, the pool tries to create a kernel every few seconds, even if nobody asks for one.
    """

    def __init__(self, size: int, zygote: Any, first: tuple[str, KerasVersion]) -> None:
        self._size = size
        self._zygote = zygote
        self._ready: OrderedDict[tuple[str, KerasVersion], deque[Kernel]] = OrderedDict({first: deque()})
        self._asked_at: dict[tuple[str, KerasVersion], float] = {}
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._filler: asyncio.Task[None] | None = None
        self.trouble: str | None = None
        self._failures = 0
        """The number of consecutive kernels that could not be created."""
        self._last_error = ""
        at_once = len(os.sched_getaffinity(0)) + 1
        self._makers: defaultdict[KerasVersion, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(at_once))
        self._ending: set[asyncio.Task[None]] = set()
        self._asking = 0
        self._nobody_asks = asyncio.Event()
        self._nobody_asks.set()

    def keep(self) -> None:
        """Start filling the pool."""
        if self._filler is None:
            self._filler = asyncio.create_task(self._fill(), name="pool")

    def __len__(self) -> int:
        """The number of ready kernels that are alive."""
        return sum(not kernel.exited.done() for waiting in self._ready.values() for kernel in waiting)

    def sweep(self) -> None:
        """Replace ready kernels that have ended, and drop clusters that nobody asks for."""
        for key, waiting in list(self._ready.items()):
            if Topology.parse(key[0]).cluster and time.monotonic() - self._asked_at.get(key, 0.0) > _CLUSTER_S:
                del self._ready[key]
                self._asked_at.pop(key, None)
                for kernel in waiting:
                    self._let_go(kernel)
        for waiting in self._ready.values():
            for kernel in [kernel for kernel in waiting if kernel.exited.done()]:
                waiting.remove(kernel)
                self._let_go(kernel)
                self._wanted.set()

    async def take(self, topology: str, keras: KerasVersion) -> Kernel:
        """Take a ready kernel, or create one. Raises what ``Kernel.create`` raises."""
        key = topology, keras
        self._ready.setdefault(key, deque())
        self._ready.move_to_end(key)
        self._asked_at[key] = time.monotonic()
        self._wanted.set()
        self._asking += 1
        self._nobody_asks.clear()
        try:
            if kernel := self._ready_one(key):
                return kernel
            async with self._makers[keras]:
                return self._ready_one(key) or await self._make(topology, keras)
        finally:
            self._asking -= 1
            if not self._asking:
                self._nobody_asks.set()

    def _ready_one(self, key: tuple[str, KerasVersion]) -> Kernel | None:
        while waiting := self._ready.get(key):
            kernel = waiting.popleft()
            if not kernel.exited.done():
                return kernel
            self._let_go(kernel)
        return None

    def _let_go(self, kernel: Kernel) -> None:
        """End a kernel even if the caller is cancelled; ``close`` waits for it."""
        ending = asyncio.create_task(kernel.close(), name="unwanted-kernel")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Stop filling, and end every ready kernel."""
        if self._filler:
            self._filler.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._filler
        for waiting in self._ready.values():
            while waiting:
                self._let_go(waiting.popleft())
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _fill(self) -> None:
        """Create one kernel at a time with pauses: waiting learners and running code come first."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while key := self._short() or (self._failures and next(reversed(self._ready), None)):
                await asyncio.sleep(_TRY_AGAIN_S if self._failures else _PAUSE_S)
                await self._nobody_asks.wait()
                try:
                    kernel = await self._make(*key)
                    kernel.rehearse()
                    self._ready.setdefault(key, deque()).append(kernel)
                    self._forget_old_keys()  # here, because a learner who tries many topologies keeps this loop going
                except IsolationIncomplete:
                    await asyncio.sleep(_TRY_AGAIN_S)  # the next zygote may have all its isolation layers
                except (ZygoteUnavailable, KernelNotReady, SandboxGone):
                    if key in self._ready:  # it may have been dropped meanwhile
                        self._ready.move_to_end(key, last=False)  # another topology may work
                except Exception:
                    log.exception("kernel cannot be made", topology=key[0])
                    await asyncio.sleep(_TRY_AGAIN_S)  # a bug must not stop the filling permanently
            self._forget_old_keys()

    async def _make(self, topology: str, keras: KerasVersion) -> Kernel:
        try:
            kernel = await Kernel.create(self._zygote(keras), topology, keras)
        except IsolationIncomplete:  # not a failure of the machine, and reported where the isolation is checked
            raise
        except (ZygoteUnavailable, KernelNotReady, SandboxGone) as e:
            if not self._failures or str(e) != self._last_error:  # it is tried again every two seconds
                log.warning("kernel cannot be made", topology=topology, error=str(e))
            self._failures, self._last_error = self._failures + 1, str(e)
            self.trouble = str(e) if self._failures >= _MOST_FAILURES else None
            self._wanted.set()
            raise
        if self._failures:
            log.info("kernels can be made again", failures=self._failures)
        self._failures, self.trouble = 0, None
        return kernel

    def _short(self) -> tuple[str, KerasVersion] | None:
        for key in reversed(list(self._ready)[-_KEYS:]):
            most = min(self._size, 1) if Topology.parse(key[0]).cluster else self._size
            if len(self._ready[key]) < most:
                return key
        return None

    def _forget_old_keys(self) -> None:
        while len(self._ready) > _KEYS:
            key, waiting = self._ready.popitem(last=False)
            self._asked_at.pop(key, None)
            for kernel in waiting:
                self._let_go(kernel)
