"""Sends output from the kernel: in order, whatever its bytes, and completely before the run or the kernel ends."""

from __future__ import annotations

import codecs
import json
import os
import select
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

from ipykernel.iostream import IOPubThread, OutStream
from jupyter_client.jsonutil import json_clean, json_default
from jupyter_client.session import json_packer

from runners.guest.reporting import lanes
from runners.guest.reporting.metric_reporter import metric_reporter
from runners.guest.runtime import interrupts
from runners.guest.runtime.pipes import unread_bytes
from runners.wire.journal import OutputStream

_PATIENCE_S = 1.0
_FLUSHES = 64
"""The most flushes that wait to be sent."""
_TOGETHER_S = 0.01
"""Text that is flushed sooner than this after the last text waits for the rest of the time, and leaves as one message
with what is flushed meanwhile: a message costs its sender and its readers far more than the text in it. A hundred
messages a second, however long a program prints, stay within the sandbox's share of the supervisor's time."""
_LOOK_S = 0.001
"""How often it is looked whether something else is to be sent meanwhile."""

Piece = tuple[dict[str, Any], str]
"""Text, and the header of the request that it belongs to."""


@dataclass(slots=True)
class _Flush:
    """Text that was flushed and is not sent yet; later flushes join it until another message is scheduled."""

    position: int
    """Where its text ends in the journal."""
    pieces: list[Piece]
    final: bool
    """Whether half a tag at its end is text."""


class WarmStream(OutStream):  # type: ignore[misc]
    """Standard output or error of a kernel.

    Output of C++ code (``tf.print``) and child processes arrives through a pipe and a thread. ``write`` and ``flush``
    wait for it, so that it arrives in order, before the run ends, and in the right run.

    All text is written to the journal first, and each message says how far its text reaches there. ``flush`` can
    therefore leave the sending to its thread: a program that ends right after it loses nothing. Text of many flushes in
    a row leaves together, in order with all other messages.
    """

    streams: ClassVar[dict[str, OutputStream]] = {}
    """The streams by name; set before the first one is created."""
    waits: ClassVar[bool] = False
    """Whether ``flush`` waits until everything is sent: for clients without the journal that may be asked for input."""

    def _setup_stream_redirects(self, name: str) -> None:
        self._journal = self.streams[name].journal
        self._journal.nonce = lanes.nonce()
        self._unscheduled = False
        self._taken = 0
        self._taking = threading.Condition()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._splitter = lanes.splitter()
        self._at_once = _AtOnce(self.pub_thread)
        self._flushed: deque[_Flush] = deque()
        self._sent_at = 0.0
        os.register_at_fork(before=self._pass_on, after_in_child=self._forget)
        self._fid = self.streams[name].read_end
        descriptor = self._original_stdstream_fd = getattr(sys, name).fileno()
        self._original_stdstream_copy = os.dup(descriptor)
        os.dup2(self.streams[name].write_end, descriptor)
        self._exc = None
        self.watch_fd_thread = threading.Thread(target=self._watch_pipe_fd, daemon=True)
        self.watch_fd_thread.start()

    def flush(self) -> None:
        """Send everything written so far, through Python or the descriptor, before anything that is sent later.

        This waits only if the program flushes faster than its text can be sent, or if its client requires it.
        """
        self._pass_on()
        interrupts.raise_deferred()

    def _pass_on(self) -> None:
        if self.closed:  # Python flushes once more at exit
            return
        self._drain()
        self._send_soon(final=True)
        if self.waits or len(self._flushed) > _FLUSHES:
            self._wait()

    def finish(self) -> None:
        """Flush, and wait until everything is sent. An interrupt comes later: this is no code of the learner."""
        self._flush_pending = False
        if self.closed:
            return
        self._drain()
        self._send_soon(final=True)
        self.pub_thread.schedule(self._send_all)
        self._wait()

    def write(self, string: str) -> int | None:
        """Write text, after anything that the descriptor received earlier."""
        self._drain()
        self._take(lanes.tag_text(string))
        if string.endswith("\n"):  # "print" writes the end of its line by itself
            interrupts.raise_deferred()
        return len(string)

    def _take(self, text: str, taken: int = 0) -> None:
        with self._buffer_lock:
            if self._is_master_process():
                self._journal.append(text.encode("utf-8", "replace"), taken)
            super().write(text)
        if self._unscheduled:
            self._unscheduled = False
            super()._schedule_flush()

    def _schedule_flush(self) -> None:
        """Only note that a flush is due: scheduling may block on a queue whose reader waits for the lock."""
        self._unscheduled = True

    def _send_soon(self, *, final: bool) -> None:
        if not self._joined(final):
            self.pub_thread.schedule(self._send_first)

    def _joined(self, final: bool) -> bool:
        """Gather the text for sending; returns whether it leaves with text that waits, because nothing is between."""
        with self._buffer_lock:
            position, pieces = self._journal.end, list(self._flush_buffers())
            after = self.pub_thread._events
            if self._flushed and (not after or after[-1] == self._send_first):
                last = self._flushed[-1]
                last.position, last.final = position, final
                last.pieces += pieces
                return True
            self._flushed.append(_Flush(position, pieces, final))
            return False

    def _wait(self) -> None:
        if threading.current_thread() is not self.pub_thread.thread:
            sent = threading.Lock()  # unlike an event, it stays consistent if an interrupt aborts the wait
            sent.acquire()
            self.pub_thread.schedule(sent.release)
            sent.acquire(timeout=self.flush_timeout)

    def _send_first(self) -> None:
        self._let_more_join()
        with self._buffer_lock:
            if not self._flushed:
                return
            flushed = self._flushed.popleft()
        if flushed.pieces:
            self._sent_at = time.monotonic()
        self._send_pieces(flushed.position, flushed.pieces, flushed.final)

    def _let_more_join(self) -> None:
        """In the thread of the sockets, wait a moment if text was sent just now, until something else is to be sent."""
        if self.waits or threading.current_thread() is not self.pub_thread.thread:
            return
        if not (self._flushed and self._flushed[0].pieces):
            return
        until = self._sent_at + _TOGETHER_S
        while time.monotonic() < until and not self.pub_thread._events:
            time.sleep(_LOOK_S)

    def _send_all(self) -> None:
        """Send everything, including text whose scheduling was interrupted."""
        while self._flushed:
            self._send_first()

    def _flush(self) -> None:
        """Flush when the timer fires: after earlier flushes of any stream."""
        self._flush_pending = self._subprocess_flush_pending = False
        self._send_soon(final=False)

    def _send_pieces(self, position: int, pieces: list[Piece], final: bool) -> None:
        """Send each lane's text as a message, up to ``position`` in the journal. Unless ``final``, half a tag waits."""
        split = [
            (parent, lanes.lane(replica), text)
            for parent, group in groupby(pieces, key=itemgetter(0))
            for replica, text in self._splitter.feed("".join(map(itemgetter(1), group)), final)
        ]
        for left, (parent, lane, text) in enumerate(split, 1 - len(split)):
            own: dict[str, Any] = {"lane": lane} if lane else {}
            if not left and self._is_master_process():
                own["position"] = position - self._splitter.held
            self._send(parent, text, own)
            metric_reporter().printed(text, self.name, lane)

    def _forget(self) -> None:
        """In a forked child, drop the text of other threads and their lock: the parent sends it."""
        self._buffer_lock = threading.RLock()
        self._flushed.clear()
        self._buffers.clear()

    def _send(self, parent: dict[str, Any], text: str, own: dict[str, Any]) -> None:
        self.session.pid = os.getpid()  # a child's text goes through its parent's thread
        metadata = {"lockstep": own} if own else None
        message = self.session.msg("stream", {"name": self.name, "text": text}, parent=parent, metadata=metadata)
        for hook in self._hooks:
            message = hook(message)
            if message is None:
                return
        self.session.send(self._at_once, message, ident=self.topic)

    def _drain(self) -> None:
        if self._fid is None or not self._is_master_process() or threading.current_thread() == self.watch_fd_thread:
            return
        with self._taking:
            goal = self._taken + unread_bytes(self._fid)
            self._taking.wait_for(lambda: self._taken >= goal, _PATIENCE_S)

    def _watch_pipe_fd(self) -> None:
        poll = select.poll()
        poll.register(self._fid, select.POLLIN)
        while self._should_watch:
            poll.poll()
            with self._taking:
                data = self._journal.stage(self._fid)
                if not data:
                    return
                self._take(self._decoder.decode(data), len(data))
                self._taken += len(data)
                self._taking.notify_all()


interrupts.defer_during(WarmStream._drain, WarmStream._take, WarmStream._send_soon, IOPubThread.schedule)


class _AtOnce:
    """Lets a ``Session`` send directly in the thread of the sockets, before messages that others have scheduled."""

    def __init__(self, thread: IOPubThread) -> None:
        self.send_multipart = thread._really_send


def encode_message(message: Any) -> bytes:
    """Encode a message as Jupyter's JSON. Invalid Unicode is escaped, so that the message is not lost."""
    try:
        packed: bytes = json_packer(message)
    except UnicodeEncodeError:
        return json.dumps(json_clean(message), default=json_default).encode()
    return packed
