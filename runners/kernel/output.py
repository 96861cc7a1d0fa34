"""How output leaves the kernel: in order, complete before the run ends or the kernel does, and whatever bytes it is
made of."""

from __future__ import annotations

import codecs
import json
import os
import select
import sys
import threading
from typing import Any, ClassVar

from ipykernel.iostream import OutStream
from jupyter_client.jsonutil import json_clean, json_default
from jupyter_client.session import json_packer

from runners.journal import Stream
from runners.kernel import lanes
from runners.kernel.meter import meter
from runners.kernel.pipes import unread

_PATIENCE_S = 1.0


class WarmStream(OutStream):  # type: ignore[misc]
    """Standard output or error of a kernel.

    What C++ code (``tf.print``) and child processes write to the descriptor comes through a pipe and a thread.
    ``write`` and ``flush`` wait for it here, so that it arrives in order, before the run ends, and in its own run.

    All text is in the journal before it is anywhere else, and each message says how far its text reaches there.
    """

    streams: ClassVar[dict[str, Stream]] = {}
    """By name; set before the first one is made."""

    def _setup_stream_redirects(self, name: str) -> None:
        self._journal = self.streams[name].journal
        self._journal.nonce = lanes.nonce()
        self._position = 0
        self._taken = 0
        self._taking = threading.Condition()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._splitter = lanes.splitter()
        self._asked = False
        self._fid = self.streams[name].read_end
        descriptor = self._original_stdstream_fd = getattr(sys, name).fileno()
        self._original_stdstream_copy = os.dup(descriptor)
        os.dup2(self.streams[name].write_end, descriptor)
        self._exc = None
        self.watch_fd_thread = threading.Thread(target=self._watch_pipe_fd, daemon=True)
        self.watch_fd_thread.start()

    def flush(self) -> None:
        """Send all that was written so far, through Python or the descriptor."""
        self._drain()
        self._asked = True
        super().flush()

    def write(self, string: str) -> int | None:
        """Take text after what the descriptor got before it."""
        self._drain()
        self._take(lanes.marked(string))
        return len(string)

    def _take(self, text: str, taken: int = 0) -> None:
        with self._buffer_lock:
            if self._is_master_process():
                self._journal.append(text.encode("utf-8", "replace"), taken)
            super().write(text)

    def _flush(self) -> None:
        """Send what was gathered, each lane's as a message of its own."""
        self._flush_pending = self._subprocess_flush_pending = False
        final, self._asked = self._asked, False
        pieces = [
            (parent, lanes.lane(replica), text)
            for parent, data in self._flush_buffers()
            for replica, text in self._splitter.feed(data, final)
        ]
        for left, (parent, lane, text) in enumerate(pieces, 1 - len(pieces)):
            own: dict[str, Any] = {"lane": lane} if lane else {}
            if not left and self._is_master_process():
                own["position"] = self._position - self._splitter.held
            self._send(parent, text, own)
            meter().printed(text, self.name, lane)

    def _rotate_buffers(self) -> Any:
        with self._buffer_lock:
            self._position = self._journal.end
            return super()._rotate_buffers()

    def _send(self, parent: dict[str, Any], text: str, own: dict[str, Any]) -> None:
        self.session.pid = os.getpid()  # a child's text goes through its parent's thread
        metadata = {"lockstep": own} if own else None
        message = self.session.msg("stream", {"name": self.name, "text": text}, parent=parent, metadata=metadata)
        for hook in self._hooks:
            message = hook(message)
            if message is None:
                return
        self.session.send(self.pub_thread, message, ident=self.topic)

    def _drain(self) -> None:
        if self._fid is None or not self._is_master_process() or threading.current_thread() == self.watch_fd_thread:
            return
        with self._taking:
            goal = self._taken + unread(self._fid)
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


def pack(message: Any) -> bytes:
    """Jupyter's JSON; text that is not valid Unicode is escaped instead of lost with the whole message."""
    try:
        packed: bytes = json_packer(message)
    except UnicodeEncodeError:
        return json.dumps(json_clean(message), default=json_default).encode()
    return packed
