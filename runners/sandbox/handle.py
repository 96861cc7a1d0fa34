"""One sandbox as the supervisor holds it: its PID 1, its control socket, its cgroup and the kernel's sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from runners.sandbox.cgroups import SessionCgroup
from runners.sandbox.layout import WRITABLE_FOLDERS
from runners.wire.protocol import ClusterMember, InjectedFailure

log = structlog.get_logger()

CHANNEL_COUNT = 5
"""Shell, iopub, stdin, control and heartbeat."""
_LARGEST_WORD = 1 << 16
_ANSWER_S = 10.0
"""How long PID 1 may take to answer: it runs no learners' code, so only a busy machine delays it."""
_REMOVE_TRIES = 40
_CONFIRM_S = 2.0
"""How long PID 1 may take to kill everything in its sandbox and report it."""
_DIE_S = 10.0
"""How long the kernel may take to end every process of a sandbox."""


class SandboxGone(Exception):
    """The sandbox's PID 1 has ended."""


@dataclass
class Sandbox:
    """A live sandbox. Made by ``zygote_client``, owned by one kernel.

    ``folder`` holds the listening sockets ``k-1`` … ``k-5``; only the supervisor sees it.
    """

    name: str
    folder: Path
    pid: int
    pidfd: int
    control: socket.socket
    group: SessionCgroup
    landlock: int = 0
    """The Landlock version in force in PID 1; 0 for none."""
    folders: tuple[int, ...] = ()
    """Descriptors of the sandbox's own folders, which PID 1 hands over before it starts a kernel."""
    members: tuple[ClusterMember, ...] = ()
    """The processes of its cluster, if any, as PID 1 last reported them."""
    trace: str = ""
    """How the kernel crashed, if it did: untrusted lines from inside."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    printed: int = -1
    """The memory for the output of its kernels, see ``runners.wire.journal``."""
    _exit: asyncio.Future[int] | None = None
    _kernels: int = 0
    """The number of kernels started so far, so that the end of one is not mistaken for that of the next."""
    _asked: int = 0
    _answers: dict[int, asyncio.Future[str]] = field(default_factory=dict)
    """Of interrupts and injected failures that PID 1 has not confirmed yet, by number."""

    def watch(self) -> None:
        """Start listening to PID 1's messages, and for its end."""
        loop = asyncio.get_running_loop()
        self.control.setblocking(False)
        loop.add_reader(self.control.fileno(), self._hear)
        loop.add_reader(self.pidfd, self._ended)

    def start_kernel(self, topology: str, keras: int, key: bytes, keyboard: bool = False) -> asyncio.Future[int]:
        """Fork a kernel, after ending the previous one.

        Args:
            topology: the machine that it sees.
            keras: the version of its zygote.
            key: signs its messages.
            keyboard: whether ``input()`` may ask its client.

        Returns:
            A future with its exit status, negative for a signal.
        """
        self._resolve(-signal.SIGKILL)
        self._exit = asyncio.get_running_loop().create_future()
        self._kernels += 1
        self.trace = ""
        start = {
            "topology": topology,
            "keras": keras,
            "key": key.decode(),
            "keyboard": keyboard,
            "kernel": self._kernels,
        }
        self._say({"op": "start"} | start)
        return self._exit

    def send_signal(self, signum: int) -> None:
        """Signal the kernel's process; SIGKILL kills everything in the sandbox. ``kill`` also waits for the end."""
        self._say({"op": "kill"} if signum == signal.SIGKILL else {"op": "signal", "signum": int(signum)})

    def interrupt(self) -> asyncio.Future[str]:
        """Send SIGINT to the kernel's process.

        Returns:
            A future, done once PID 1 has sent the signal or no longer exists. What the kernel is asked after that is
            not interrupted.

        Raises:
            SandboxGone: PID 1 no longer exists.
        """
        return self._ask({"op": "signal", "signum": int(signal.SIGINT)})

    async def inject_failure(self, failure: InjectedFailure) -> str:
        """Let PID 1 inject a failure into a process of the cluster; then ``members`` are up to date.

        Returns:
            The result, see ``runners.guest.pid1.cluster_manager.ClusterManager.do``.

        Raises:
            SandboxGone: PID 1 no longer exists, or does not respond in time.
        """
        answer = self._ask({"op": "failure"} | failure.model_dump())
        await asyncio.wait({answer}, timeout=_ANSWER_S)
        if not answer.done() or not answer.result():
            raise SandboxGone("PID 1 does not respond")
        return answer.result()

    async def kill(self) -> None:
        """Kill everything that runs in the sandbox, and the sandbox itself if its PID 1 fails to do so.

        Returns when it is completely gone.
        """
        if self._exit is None or self._exit.done():
            return
        with contextlib.suppress(SandboxGone):
            self.send_signal(signal.SIGKILL)
            await asyncio.wait({self._exit}, timeout=_CONFIRM_S)
        if not self._exit.done():
            log.warning("sandbox does not end its kernel; ending the sandbox", sandbox=self.name)
            await self._end()

    def file_bytes(self) -> int:
        """Bytes in the sandbox's own folders, which are in memory. Raises SandboxGone."""
        return sum((space.f_blocks - space.f_bfree) * space.f_frsize for space in self._spaces())

    def free_space(self) -> tuple[tuple[int, int], ...]:
        """The free space in each of them, in bytes and in inodes. Raises SandboxGone."""
        return tuple((space.f_bfree * space.f_frsize, space.f_ffree) for space in self._spaces())

    def _spaces(self) -> list[os.statvfs_result]:
        if not self.folders:
            raise SandboxGone("its folders are not known")
        return [os.fstatvfs(folder) for folder in self.folders]

    def end_at_once(self) -> None:
        """Kill PID 1, and with it every process in its PID namespace; ``gone`` is set when they have ended."""
        if not self.gone.is_set():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    async def destroy(self) -> None:
        """Kill everything inside and leave nothing behind. Safe to call twice."""
        if self.control.fileno() >= 0:
            await self._end()
            self._let_go()
        for _ in range(_REMOVE_TRIES):  # the last process of a killed group takes a moment to go
            if self.group.remove():
                break
            await asyncio.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _end(self) -> None:
        """End it at once; also kill the cgroup, in case a process escaped."""
        self.end_at_once()
        self.group.kill()
        try:
            async with asyncio.timeout(_DIE_S):
                await self.gone.wait()
        except TimeoutError:
            log.error("sandbox does not die", sandbox=self.name, pid=self.pid)
        self._resolve(-signal.SIGKILL)

    def _let_go(self) -> None:
        if self.control.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self.control.fileno())
        self.control.close()
        if self.printed >= 0:
            os.close(self.printed)
        folders, self.folders = self.folders, ()
        for folder in folders:
            os.close(folder)
        if self.gone.is_set():
            os.close(self.pidfd)

    def _ask(self, command: dict[str, Any]) -> asyncio.Future[str]:
        """Say something that PID 1 answers."""
        self._asked += 1
        self._say(command | {"id": self._asked})
        answer = self._answers[self._asked] = asyncio.get_running_loop().create_future()
        return answer

    def _say(self, command: dict[str, Any]) -> None:
        try:
            self.control.send(json.dumps(command).encode())
        except OSError as e:
            raise SandboxGone(str(e)) from e

    def _hear(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self.control, _LARGEST_WORD, len(WRITABLE_FOLDERS))
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        self.folders += tuple(fds)
        if not data:
            asyncio.get_running_loop().remove_reader(self.control.fileno())
            return
        match json.loads(data):
            case {"exited": int(status), "kernel": self._kernels, **more}:
                self.trace = str(more.get("trace", ""))
                self._resolve(status)
            case {"members": list(members)}:
                self.members = tuple(ClusterMember.model_validate(member) for member in members)
            case {"answered": int(number), "result": str(result)}:
                if (answer := self._answers.pop(number, None)) and not answer.done():
                    answer.set_result(result)
            case {"failed": str(complaint)}:
                log.error("kernel did not start", sandbox=self.name, error=complaint)

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self.pidfd)
        self.gone.set()
        self._resolve(-signal.SIGKILL)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result("")
        self._answers.clear()
        if self.control.fileno() < 0:  # it ended only after everybody had stopped waiting
            os.close(self.pidfd)

    def _resolve(self, status: int) -> None:
        if self._exit is not None and not self._exit.done():
            self._exit.set_result(status)


def bind_channels(folder: Path) -> list[socket.socket]:
    """Bind the kernel's channels as ``folder/k-1`` … ``folder/k-5``."""
    sockets = []
    for number in range(1, CHANNEL_COUNT + 1):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.bind(str(folder / f"k-{number}"))
        s.listen(16)
        s.setblocking(False)
        sockets.append(s)
    return sockets
