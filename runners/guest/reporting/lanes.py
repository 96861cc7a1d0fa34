"""Attributes text to a lane: a process of the cluster, and a replica in it.

A replica's text is tagged where it is printed, ``tf.print`` while its function is traced and ``print`` in its thread,
and the tags are removed where text leaves the kernel. A tag contains a random number that is new for each session, so
no text contains one by chance. A program that forges one only shows its own text in another lane.
"""

from __future__ import annotations

import threading
from typing import Any

from tensorflow.python.distribute import mirrored_run

from runners.wire import replica_tags

_OUTPUT = ("stream", "display_data", "update_display_data", "execute_result", "error", "clear_output")

_nonce = ""
_task: str | None = None


def set_lane(nonce: str, task: str | None) -> None:
    """Set the session's random number, and the lane of this process (None outside a cluster)."""
    global _nonce, _task
    _nonce, _task = nonce, task


def nonce() -> str:
    """The random number in this session's tags."""
    return _nonce


def lane(replica: int | None) -> str | None:
    """The lane of a replica of this process, or of the process itself."""
    return replica_tags.lane_name(_task, replica)


def splitter() -> replica_tags.TagSplitter:
    """A splitter that takes this session's tags out of a stream of text."""
    return replica_tags.TagSplitter(_nonce)


def current_replica() -> int | None:
    """The replica whose function the calling thread runs or traces; None if this process has only one."""
    thread = threading.current_thread()
    if isinstance(thread, mirrored_run._MirroredReplicaThread) and len(thread.devices) > 1:
        return int(thread.replica_id_in_sync_group)
    return None


def tag_text(text: str) -> str:
    """``text`` with the tags of the replica that prints it, if one does."""
    tags = current_tags() if text else None
    return text if tags is None else f"{tags[0]}{text}{tags[1]}"


def current_tags() -> tuple[str, str] | None:
    """The tags before and after text of the calling thread's replica; None if no replica needs to be named."""
    replica = current_replica()
    if replica is None or not _nonce:
        return None
    return replica_tags.replica_tag(_nonce, replica), replica_tags.replica_tag(_nonce, None)


def tag_messages(session: Any) -> None:
    """Make all output that a Jupyter session sends name this process's lane, unless it names another."""
    send = session.send

    def send_in_lane(stream: Any, msg_or_type: Any, *args: Any, metadata: Any = None, **kwargs: Any) -> Any:
        kind = msg_or_type["msg_type"] if isinstance(msg_or_type, dict) else msg_or_type
        if kind in _OUTPUT and _task:
            if isinstance(msg_or_type, dict):
                msg_or_type["metadata"] = _with_lane(msg_or_type.get("metadata"))
            else:
                metadata = _with_lane(metadata)
        return send(stream, msg_or_type, *args, metadata=metadata, **kwargs)

    session.send = send_in_lane


def _with_lane(metadata: Any) -> dict[str, Any]:
    return {"lockstep": {"lane": _task}} | (metadata or {})
