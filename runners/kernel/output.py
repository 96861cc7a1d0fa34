"""How output leaves the kernel: in order, complete before the run ends, and whatever bytes it is made of."""

from __future__ import annotations

import codecs
import json
import os
import select
import threading
from typing import Any

from ipykernel.iostream import OutStream
from jupyter_client.jsonutil import json_clean, json_default
from jupyter_client.session import json_packer

from runners.kernel import lanes
from runners.kernel.meter import meter
from runners.kernel.pipes import unread

_PIPE_BYTES = 65_536
_PATIENCE_S = 1.0


class WarmStream(OutStream):  # type: ignore[misc]
    """Standard output or error of a kernel.

    What C++ code (``tf.print``) and child processes write to the descriptor comes through a pipe and a thread.
    ``write`` and ``flush`` wait for it here, so that it arrives in order, before the run ends, and in its own run.
    """

    def _setup_stream_redirects(self, name: str) -> None:
        self._taken = 0
        self._taking = threading.Condition()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._splitter = lanes.splitter()
        self._asked = False
        super()._setup_stream_redirects(name)

    def flush(self) -> None:
        """Send all that was written so far, through Python or the descriptor."""
        self._drain()
        self._asked = True
        super().flush()

    def write(self, string: str) -> int | None:
        """Take text after what the descriptor got before it."""
        self._drain()
        super().write(lanes.marked(string))
        return len(string)

    def _flush(self) -> None:
        """Send what was gathered, each lane's as a message of its own."""
        self._flush_pending = self._subprocess_flush_pending = False
        final, self._asked = self._asked, False
        for parent, data in self._flush_buffers():
            for replica, text in self._splitter.feed(data, final):
                self._send(parent, text, lane := lanes.lane(replica))
                meter().printed(text, self.name, lane)

    def _send(self, parent: dict[str, Any], text: str, lane: str | None) -> None:
        self.session.pid = os.getpid()  # a child's text goes through its parent's thread
        metadata = {"lockstep": {"lane": lane}} if lane else None
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
                data = os.read(self._fid, _PIPE_BYTES)
                if not data:
                    return
                self.write(self._decoder.decode(data))
                self._taken += len(data)
                self._taking.notify_all()


def pack(message: Any) -> bytes:
    """Jupyter's JSON; text that is not valid Unicode is escaped instead of lost with the whole message."""
    try:
        packed: bytes = json_packer(message)
    except UnicodeEncodeError:
        return json.dumps(json_clean(message), default=json_default).encode()
    return packed
