"""The other processes of a cluster: the kernel sends them each cell and forwards their output.

A thread does both, so that output flows while the kernel's own program trains. The other processes run the learner's
code, so lines that do not follow the protocol are dropped.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runners.guest.cluster import endpoints
from runners.guest.cluster.shared_state import ProcessActivity, ProcessStatus
from runners.guest.cluster.task_context import TaskContext
from runners.guest.reporting import publisher
from runners.wire.exit_status import is_clean_exit
from runners.wire.replica_tags import TagSplitter, lane_name
from runners.wire.topology import Task

Publish = Callable[[str, dict[str, Any], str | None], None]
"""Sends a message on the output channel: its type, content and lane."""

_CHUNK = 65_536
_LONGEST_LINE = 32 * 1024 * 1024
_GATHER_S = 0.005
"""A short pause after each round of reading, so that small pieces of text are combined."""
_MOST_NEWS = 256
_ENDS = 3
"""The descriptors for a process: its link, its standard output and its standard error."""
_LAST_READS = 64
_SUMMARY = 200
_CELL_FILE = re.compile(r"<ipython-input-\d+-[0-9a-f]+>, (?=line \d)")
"""The name of a cell's code in the text of a syntax error. It tells learners nothing, and differs between processes."""
_ENDED_S = 0.3
"""PID 1 knows within this time how a process ended."""
_MOST_STARTS = 1_000
"""More often, one process is not replaced by another before this one hears of the first."""
_NAMED_S = 3.0
"""Seconds after which a notice names processes that are paused or slow, once the cell has ended everywhere else."""
_BEGINS_S = 20.0
"""How long a process that is neither paused nor slow may take to start a cell, even on a busy machine."""
_AFTER_INTERRUPT_S = 3.0
"""How long the others may take to handle an interrupt; slightly less than the supervisor waits."""
_PASSED_ON = ("display_data", "update_display_data", "execute_result", "error", "clear_output")


@dataclass
class TaskFailure:
    """The failure of a cell in one process: the error's name and text, and when it arrived."""

    task: Task
    name: str
    value: str
    at: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class _PeerProcess:
    """One other process."""

    number: int
    task: Task
    link: socket.socket | None = None
    start: int = 0
    """The number of the process that ``link`` leads to; see ``SharedState.starts``."""
    pipes: dict[int, _Pipe] = field(default_factory=dict)
    buffer: bytearray = field(default_factory=bytearray)
    done: int = 0
    """The number of the last cell it has finished."""
    failure: TaskFailure | None = None
    waiting_cell: bytes = b""
    """A cell that was submitted before the process had started."""
    unsent: bytearray = field(default_factory=bytearray)
    """The unsent rest of a cell: a paused process reads nothing."""
    begun: bool = False
    """Whether it was seen to work on the cell."""
    ended: bool = False


class _Pipe:
    """A pipe for printed text, with the text that is being decoded."""

    def __init__(self, name: str, nonce: str) -> None:
        self.name = name
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.splitter = TagSplitter(nonce)


class Peers:
    """All processes of the cluster but this one.

    Args:
        own: this process's own context.
        news: the socket on which PID 1 sends the descriptors of each process that starts.
        publish: see ``Publish``.
    """

    def __init__(self, own: TaskContext, news: socket.socket, publish: Publish) -> None:
        self._own = own
        self._news = news
        self._publish = publish
        tasks = enumerate(own.topology.tasks)
        self._members = {n: _PeerProcess(n, task) for n, task in tasks if n != own.number}
        self._changed = threading.Condition()
        self._epoll = select.epoll()
        self._epoll.register(news.fileno(), select.EPOLLIN)
        self._by_link: dict[int, _PeerProcess] = {}
        self._by_pipe: dict[int, _PeerProcess] = {}
        self._cell = 0
        threading.Thread(target=self._pass_on, daemon=True, name="cluster").start()

    def begin(self, code: str, store_history: bool) -> None:
        """Send a cell to every process that runs cells."""
        with self._changed:
            self._cell += 1
            line = json.dumps({"run": self._cell, "code": code, "store_history": store_history}).encode() + b"\n"
            for member in self._runners():
                member.failure, member.waiting_cell, member.begun = None, line, False
                if member.ended and self._own.shared_state.status(member.number) != ProcessStatus.ended:
                    member.ended = False  # it is being restarted
                if member.ended:
                    member.failure = TaskFailure(member.task, "WorkerEnded", "it has ended")
                self._hand_over(member)

    def finish(self) -> tuple[list[TaskFailure], bool]:
        """Wait until the others have finished the cell.

        Returns:
            The failures, and whether an interrupt came meanwhile. A process that does not react to an interrupt, or
            does not start the cell, is killed.
        """
        interrupted = False
        deadline: float | None = None
        named: set[int] = set()
        hoped: dict[int, float] = {}
        patient_until = time.monotonic() + _NAMED_S
        while True:
            try:
                with self._changed:
                    left = [member for member in self._runners() if member.done < self._cell and not member.ended]
                    if not left:
                        break
                    if deadline is not None and time.monotonic() > deadline:
                        for member in left:
                            self._own.send_command(member.task.lane, "kill")
                        deadline = time.monotonic() + _AFTER_INTERRUPT_S
                    self._changed.wait(0.1)
                if time.monotonic() > patient_until:
                    self._name_who_is_held(left, named)
                self._give_up_on_who_does_not_begin(left, hoped)
            except KeyboardInterrupt:
                interrupted, deadline = True, deadline or time.monotonic() + _AFTER_INTERRUPT_S
        return [member.failure for member in self._runners() if member.failure], interrupted

    def _name_who_is_held(self, left: list[_PeerProcess], named: set[int]) -> None:
        """Explain once for each paused or slow process that the cell waits for it."""
        for member in left:
            status = self._own.shared_state.status(member.number)
            if status in (ProcessStatus.paused, ProcessStatus.slow) and member.number not in named:
                named.add(member.number)
                task, where = self._own.task.lane, self._own.address_of(member.number)
                code = f"waiting-for-{status.name}"
                publisher.notice(code, lane=task, task=task, other=member.task.lane, address=where)

    def _give_up_on_who_does_not_begin(self, left: list[_PeerProcess], hoped: dict[int, float]) -> None:
        """Kill processes that do not start the cell, and say so; ``hoped`` is the time of the last sign of each."""
        now = time.monotonic()
        for member in left:
            board = self._own.shared_state
            member.begun |= board.work(member.number) != ProcessActivity.nothing
            held = board.status(member.number) in (ProcessStatus.paused, ProcessStatus.slow)
            if member.begun or held:
                hoped[member.number] = now
            elif now - hoped.setdefault(member.number, now) > _BEGINS_S:
                self._give_up_on(member)

    def _give_up_on(self, member: _PeerProcess) -> None:
        with self._changed:
            if member.done == self._cell or member.ended:
                return
            member.failure, member.ended = TaskFailure(member.task, "WorkerEnded", "it had not started the cell"), True
        task = member.task.lane
        publisher.notice("never-began", lane=self._own.task.lane, task=task, seconds=_BEGINS_S)
        self._own.send_command(task, "kill")

    def _runners(self) -> list[_PeerProcess]:
        """The processes that run cells."""
        return [m for m in self._members.values() if not endpoints.serves(self._own.topology, m.task)]

    def _hand_over(self, member: _PeerProcess) -> None:
        """Send a cell if its process exists; the thread sends the part that does not fit into the socket at once."""
        if member.link is None or not member.waiting_cell or self._is_replaced(member):
            return
        member.unsent += member.waiting_cell
        member.waiting_cell = b""
        self._send(member)
        if member.unsent:
            with contextlib.suppress(OSError, ValueError):  # the thread has just closed it
                self._epoll.modify(member.link, select.EPOLLIN | select.EPOLLOUT)

    def _send(self, member: _PeerProcess) -> None:
        """Send as much of a cell as the socket takes now."""
        assert member.link
        try:
            sent = member.link.send(member.unsent, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:  # the reader will notice that it has ended
            sent = len(member.unsent)
        del member.unsent[:sent]

    # --- the thread -----------------------------------------------------------------------------------------

    def _pass_on(self) -> None:
        while True:
            events = self._epoll.poll()
            ready = {fd for fd, event in events if event & ~select.EPOLLOUT}
            writable = {fd for fd, event in events if event & select.EPOLLOUT}
            if self._news.fileno() in ready:
                self._take_news()
            for fd in writable & self._by_link.keys():
                self._send_more(self._by_link[fd])
            for fd in ready & self._by_link.keys():
                self._read_link(self._by_link[fd])
            for fd in ready & self._by_pipe.keys():
                self._read_pipe(self._by_pipe[fd], fd)
            time.sleep(_GATHER_S)

    def _take_news(self) -> None:
        """Receive our ends of the link and the pipes of a process that has started."""
        data, fds, _, _ = socket.recv_fds(self._news, _MOST_NEWS, _ENDS)
        if not data:
            self._epoll.unregister(self._news.fileno())
            return
        if len(fds) < _ENDS:  # out of descriptors: the new process finds its link closed, and ends
            for fd in fds:
                os.close(fd)
            return
        news = json.loads(data)
        member = self._members[news["joined"]]
        self._part_with(member)
        link, out, err = fds
        self._by_link[link] = member
        self._epoll.register(link, select.EPOLLIN)
        with self._changed:
            member.link, member.start, member.ended = socket.socket(fileno=link), news["start"], False
            member.buffer.clear()
            member.unsent.clear()
            member.pipes = {out: _Pipe("stdout", self._own.nonce), err: _Pipe("stderr", self._own.nonce)}
            if not member.waiting_cell:
                member.done = self._cell  # it started in the middle of a cell that others run
            self._hand_over(member)
        for fd in member.pipes:
            self._by_pipe[fd] = member
            self._epoll.register(fd, select.EPOLLIN)

    def _send_more(self, member: _PeerProcess) -> None:
        with self._changed:
            if member.link is None:
                return
            self._send(member)
            if not member.unsent:
                self._epoll.modify(member.link, select.EPOLLIN)

    def _read_link(self, member: _PeerProcess) -> None:
        assert member.link
        try:
            data = member.link.recv(_CHUNK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        member.buffer += data
        if not data or len(member.buffer) > _LONGEST_LINE:
            if data:  # it does not follow the protocol, and would go on
                self._own.send_command(member.task.lane, "kill")
            self._part_with(member)
            return
        *lines, rest = member.buffer.split(b"\n")
        member.buffer = bytearray(rest)
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                self._take(member, json.loads(line))

    def _take(self, member: _PeerProcess, word: Any) -> None:
        match word:
            case {"kind": str(kind), "content": dict(content)} if kind in _PASSED_ON:
                named = word.get("lane")
                self._publish(kind, content, named if isinstance(named, str) else member.task.lane)
            case {"done": int(cell), "error": error} if cell == self._cell:
                for fd in list(member.pipes):
                    self._read_pipe(member, fd, final=True)
                with self._changed:
                    member.done = cell
                    match error:
                        case [str(name), str(value)] if not is_clean_exit(name, value):
                            member.failure = TaskFailure(member.task, name, value)
                    self._changed.notify_all()

    def _read_pipe(self, member: _PeerProcess, fd: int, final: bool = False) -> None:
        pipe = member.pipes.get(fd)
        if pipe is None:
            return
        data = b"" if final and not _readable(fd) else os.read(fd, _CHUNK)
        if not data and not final:
            self._close_pipe(member, fd)
        for replica, text in pipe.splitter.feed(pipe.decoder.decode(data), final=final or not data):
            self._publish("stream", {"name": pipe.name, "text": text}, lane_name(member.task.lane, replica))

    def _close_pipe(self, member: _PeerProcess, fd: int) -> None:
        member.pipes.pop(fd, None)
        self._by_pipe.pop(fd, None)
        self._epoll.unregister(fd)
        os.close(fd)

    def _part_with(self, member: _PeerProcess) -> None:
        """Drop a process that is gone or breaks the protocol. A cell that waits for its successor keeps waiting."""
        link = member.link
        if link is None:
            return
        for fd in list(member.pipes):
            for _ in range(_LAST_READS):  # a child that it has left behind may print forever
                if fd in member.pipes and _readable(fd):
                    self._read_pipe(member, fd)
        for fd in list(member.pipes):
            self._close_pipe(member, fd)
        self._epoll.unregister(link.fileno())
        self._by_link.pop(link.fileno(), None)
        link.close()
        if not self._has_ended(member):
            self._own.send_command(member.task.lane, "kill")  # it has closed its link, and would not get any more cells
            self._has_ended(member)
        why = self._how_it_ended(member)
        publisher.notice("member-ended", lane=member.task.lane, task=member.task.lane, why=why)
        with self._changed:
            status = self._own.shared_state.status(member.number)
            member.link, member.ended = None, status == ProcessStatus.ended or not self._is_replaced(member)
            member.unsent.clear()
            waits = member.waiting_cell and not member.ended
            if member.done < self._cell and not waits and member in self._runners():
                member.failure = TaskFailure(member.task, "WorkerEnded", why)
            self._changed.notify_all()

    def _has_ended(self, member: _PeerProcess) -> bool:
        """Whether PID 1 reports soon that it has ended, or has replaced it."""
        end = time.monotonic() + _ENDED_S
        while not (ended := self._is_over(member)) and time.monotonic() < end:
            time.sleep(0.005)
        return ended

    def _is_over(self, member: _PeerProcess) -> bool:
        return self._own.shared_state.status(member.number) == ProcessStatus.ended or self._is_replaced(member)

    def _is_replaced(self, member: _PeerProcess) -> bool:
        """Whether PID 1 has started a successor, or is just starting it: ``link`` leads to a process that is gone."""
        later = self._own.shared_state.starts(member.number) - member.start
        return 0 < later < _MOST_STARTS  # anything else was written by the program

    def _how_it_ended(self, member: _PeerProcess) -> str:
        status = self._own.shared_state.exit_status(member.number)
        if status >= 0:
            return f"exit status {status}"
        try:
            return signal.Signals(-status).name
        except ValueError:
            return f"signal {-status}"


def _readable(fd: int) -> bool:
    """Whether reading would not block. ``select`` rejects descriptors above 1,023; a learner may open many files."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def summarize_failures(failures: list[TaskFailure]) -> tuple[str, str]:
    """Combine failures into one error, name and text. The first failure usually caused the others."""
    first = min(failures, key=lambda failure: failure.at)
    alike = [failure for failure in failures if (failure.name, _text(failure)) == (first.name, _text(first))]
    where = " and ".join(failure.task.lane for failure in alike)
    others = [f"; in {failure.task.lane}: {failure.name}" for failure in failures if failure not in alike]
    return first.name, f"in {where}: {_short(_text(first))}{''.join(others)}"


def _text(failure: TaskFailure) -> str:
    return _CELL_FILE.sub("", failure.value)


def _short(text: str) -> str:
    """Shorten an error's text to its beginning and its end; its lane has all of it."""
    return text if len(text) <= 2 * _SUMMARY else f"{text[:_SUMMARY]} … {text[-_SUMMARY:]}"
