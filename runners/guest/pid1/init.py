"""PID 1 of a sandbox: keeps the warm copy of TensorFlow and forks kernels from it, one at a time.

A restart is therefore a fork, never an import; so is each further process of a cluster (see ``cluster_manager``). Only
in a session with a real TPU does each kernel import TensorFlow itself. PID 1 never does: the imports of this module
are small. PID 1 runs no learner code, and nothing inside can signal it or read its memory. It talks to the supervisor
over its control socket, one JSON object per packet:

    supervisor -> PID 1   {"op": "start", "topology": …, "keras": …, "key": …, "keyboard": …,
                          "kernel": N}    its number, counted from 1
                          {"op": "signal", "signum": N}, with an "id" if it is to be answered    {"op": "kill"}
                          {"op": "failure", "id": N, "task": …, "action": …, "at_step": …}
    PID 1 -> supervisor   {"exited": N, "kernel": N, "trace": …}    the kernel's exit status, negative for a signal;
                                          after a crash, what Python's faulthandler (or learners' code) wrote
                          {"members": [{…}, …]}    of a cluster, as ``protocol.ClusterMember``, whenever one changes
                          {"answered": N, "result": …}   to the command with that id, when it is done: a failure's
                                          result (``ClusterManager.apply``) comes after the updated members
                          {"failed": …}   a kernel did not start, and why
                          {"folders": N}    first of all (``sandbox.setup``), with descriptors of the
                                          sandbox's own folders: nothing is asked about them later

A kernel has ended only once PID 1 has said so: by then every process in the sandbox is gone, and everything that the
kernel printed is in its journal (see ``runners.wire.journal``).

When the control socket closes, PID 1 ends, and with it everything in its PID namespace.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import select
import signal
import socket
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runners.sandbox import linux
from runners.wire import journal
from runners.wire.journal import OutputStream
from runners.wire.topology import Topology

if TYPE_CHECKING:
    from runners.guest.pid1.cluster_manager import ClusterManager

_LARGEST_COMMAND = 1 << 16
_LONGEST_COMPLAINT = 4000
_LONGEST_TRACE = 16_000
_PIPE_BYTES = 1 << 16
_OWN_SCORE, _KERNEL_SCORE = b"400", b"500"
"""OOM score adjustments: kernels are killed before PID 1, and both before the rest of the machine."""


class Init:
    """The loop of PID 1.

    Args:
        control: the socket to the supervisor, which is trusted.
        listeners: bound Unix sockets for the kernel's channels, in the order of ``kernel_app.CHANNELS``.
        printed: the descriptor of the memory of ``runners.wire.journal``; closed here.
        first: called at the start of each kernel.
        score: the open ``oom_score_adj`` of this process, if there is one. Nothing else in the sandbox can set any.
    """

    def __init__(
        self,
        control: socket.socket,
        printed: int,
        listeners: list[int],
        first: Callable[[], None],
        score: int | None = None,
    ) -> None:
        self._control = control
        self._printed = KernelOutput(printed)
        self._listeners = listeners
        self._first = first
        self._score = score
        self._kernel: int | None = None
        self._number = 0
        self._complaint: int | None = None
        self._cluster: ClusterManager | None = None
        """The processes of the cluster, if the machine is one."""
        self._wakeup = socket.socketpair()
        """Readable when a child has ended."""

    def serve(self) -> None:
        """Carry out commands until the supervisor closes the control socket."""
        _forget_the_hosts_output()
        wake, alarm = self._wakeup
        for end in self._wakeup:
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(alarm.fileno(), warn_on_full_buffer=False)
        while True:
            wait_s = self._cluster.tick() if self._cluster else None
            watched = [self._control, wake, *([self._cluster.commands] if self._cluster else [])]
            for end in select.select(watched, [], [], wait_s)[0]:
                if end is self._control:
                    data = self._control.recv(_LARGEST_COMMAND)
                    if not data:
                        return
                    self._obey(json.loads(data))
                elif end is wake:
                    with contextlib.suppress(BlockingIOError):
                        wake.recv(4096)
                elif self._cluster and end is self._cluster.commands:
                    self._cluster.read_commands()
            self._reap()

    def _obey(self, command: dict[str, Any]) -> None:
        match command["op"]:
            case "start":
                self._end_all()
                self._start(command)
            case "signal":
                self._signal(int(command["signum"]))
                if "id" in command:
                    self._tell({"answered": command["id"], "result": "done"})
            case "kill":
                self._end_all()
            case "failure":
                self._tell({"answered": command["id"], "result": self._inject_failure(command)})

    def _signal(self, signum: int) -> None:
        if self._kernel is None:
            return
        if self._cluster and signum == signal.SIGINT:
            self._cluster.interrupt()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._kernel, signum)

    def _inject_failure(self, command: dict[str, Any]) -> str:
        if not self._cluster:
            return "nonsense"
        result = self._cluster.apply(command["task"], command["action"], command["at_step"], late=False)
        self._cluster.report()
        return result

    def _start(self, command: dict[str, Any]) -> None:
        self._complaint, complain = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._printed.begin()
        self._number = int(command["kernel"])
        topology = Topology.parse(command["topology"])
        self._cluster = cluster = self._make_cluster(topology) if topology.cluster else None

        def be_kernel() -> None:
            self._first()
            from runners.guest.runtime import kernel_app

            place = news = None
            if cluster:
                cluster.leave_in_child(kernel=True)
                place, news = cluster.place(0), cluster.kernels_news
            key, keyboard = command["key"].encode(), bool(command["keyboard"])
            printed = self._printed.streams
            kernel = kernel_app.prepare_kernel(
                self._listeners, command["topology"], key, printed, keyboard, place, news
            )
            faulthandler.enable(complain)  # nothing else can report how it crashed
            kernel.start()

        self._kernel = self._fork(be_kernel, complain)
        os.close(complain)
        self._printed.close_write_ends()
        if cluster:
            cluster.begin(self._kernel)

    def _make_cluster(self, topology: Topology) -> ClusterManager:
        from runners.guest.pid1.cluster_manager import ClusterManager

        return ClusterManager(topology, self._fork_member, lambda members: self._tell({"members": members}))

    def _fork_member(self, work: Callable[[], None], complain: int) -> int:
        def without_a_client() -> None:
            for fd in self._listeners:
                os.close(fd)  # they are the kernel's
            self._printed.close_read_ends()
            work()

        return self._fork(without_a_client, complain)

    def _fork(self, work: Callable[[], None], complain: int) -> int:
        """Fork a child that does ``work`` and exits; on failure it writes why to ``complain``. Returns its process
        ID."""
        gate, latch = os.pipe2(os.O_CLOEXEC)
        pid = -1
        self._set_score(_KERNEL_SCORE)  # a child inherits it
        try:
            pid = os.fork()
        finally:
            if pid:
                self._set_score(_OWN_SCORE)
                os.close(latch)
                os.close(gate)
        if pid:
            return pid
        try:
            os.close(latch)
            os.read(gate, 1)  # ends when PID 1 has its own score again, because the child runs learners' code
            os.close(gate)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (*self._wakeup, self._control):
                end.close()  # a child that held one could impersonate PID 1, or hide the end of a kernel
            os.setsid()
            linux.set_dumpable(True)
            if self._score is not None:
                os.close(self._score)
            work()
        except Exception:
            with contextlib.suppress(OSError):
                os.write(complain, traceback.format_exc(limit=-5)[-_LONGEST_COMPLAINT:].encode())
        finally:
            os._exit(1)

    def _set_score(self, score: bytes) -> None:
        if self._score is not None:
            with contextlib.suppress(OSError):  # nobody may go below the score that a container was given
                os.pwrite(self._score, score, 0)

    def _end_all(self) -> None:
        """Kill everything in the sandbox but PID 1, wait until it is gone, and report it if that included a kernel."""
        had_kernel, self._kernel = self._kernel is not None, None
        self._read_last_words()
        self._kill_all()
        if self._cluster:
            self._cluster.close()
            self._cluster = None
        if had_kernel:
            self._tell_exit(-signal.SIGKILL)

    def _kill_all(self) -> None:
        """Kill everything but PID 1, wait until it is gone, and complete the journal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, 0)
                if self._cluster:
                    self._cluster.ended(pid, os.waitstatus_to_exitcode(status))
        self._printed.settle()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if pid == self._kernel:
                    self._kernel = None
                    exited, words = os.waitstatus_to_exitcode(status), self._read_last_words()
                    self._kill_all()  # processes it left behind hold its channels and pipes open
                    if words and exited >= 0:
                        self._tell({"failed": words[-_LONGEST_COMPLAINT:]})
                    self._tell_exit(exited, words if exited < 0 else "")
                if self._cluster:
                    self._cluster.ended(pid, os.waitstatus_to_exitcode(status))

    def _read_last_words(self) -> str:
        """Read what a kernel wrote that did not start or that crashed; learners' code may have written it."""
        if self._complaint is None:
            return ""
        try:
            return printable(os.read(self._complaint, _PIPE_BYTES))
        except OSError:
            return ""
        finally:
            os.close(self._complaint)
            self._complaint = None

    def _tell_exit(self, status: int, trace: str = "") -> None:
        self._tell({"exited": int(status), "kernel": self._number, "trace": trace})

    def _tell(self, word: dict[str, Any]) -> None:
        self._control.send(json.dumps(word).encode())


class KernelOutput:
    """What kernels print, as PID 1 holds it: the journals, and the pipes of standard output and error.

    The read ends stay open here, so that the content of a pipe outlives the kernel.
    """

    def __init__(self, memory: int) -> None:
        self._journals = journal.open_streams(memory)
        os.close(memory)
        self._pipes: dict[str, tuple[int, int]] = {}

    @property
    def streams(self) -> dict[str, OutputStream]:
        """The streams of the kernel that is about to start, by name."""
        return {name: OutputStream(self._journals[name], *ends) for name, ends in self._pipes.items()}

    def begin(self) -> None:
        """Prepare for another kernel."""
        for name, own in self._journals.items():
            own.begin()
            self._pipes[name] = os.pipe()

    def close_write_ends(self) -> None:
        """Close them here: the kernel has them now."""
        for _, write_end in self._pipes.values():
            os.close(write_end)

    def close_read_ends(self) -> None:
        """Close them in a child that is not the kernel."""
        for read_end, _ in self._pipes.values():
            os.close(read_end)

    def settle(self) -> None:
        """Write what is left in the pipes to the journals, after every process has ended."""
        for name, (read_end, _) in self._pipes.items():
            self._journals[name].settle(read_end)
            os.close(read_end)
        self._pipes.clear()


def printable(words: bytes) -> str:
    """Turn ``words`` into lines of printable ASCII that fit in a packet as JSON; cuts the middle of long ones."""
    text = "".join(c if c == "\n" or " " <= c <= "~" else "?" for c in words.decode("ascii", "replace"))
    if len(text) <= _LONGEST_TRACE:
        return text
    return f"{text[: _LONGEST_TRACE // 8]}\n...\n{text[-_LONGEST_TRACE * 7 // 8 :]}"


def _forget_the_hosts_output() -> None:
    """Redirect descriptors 0 to 2, which still lead to the supervisor's log: nothing inside may write there."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    os.close(null)
