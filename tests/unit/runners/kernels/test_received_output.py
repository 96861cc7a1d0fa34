"""After a crash: printed text that no message delivered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from runners.kernels.received_output import ReceivedOutput, StreamText
from runners.wire import journal
from runners.wire.journal import KEPT_BYTES
from runners.wire.replica_tags import replica_tag


@pytest.fixture
def memory() -> Iterator[int]:
    """A sandbox's journals."""
    memory = journal.create()
    yield memory
    os.close(memory)


def message(position: Any, stream: Any = "stdout", kind: str = "stream") -> dict[str, Any]:
    """Text as a kernel sends it."""
    return {"msg_type": kind, "content": {"name": stream}, "metadata": {"lockstep": {"position": position}}}


def test_each_stream_has_its_own_rest(memory: int) -> None:
    streams, heard = journal.open_streams(memory), ReceivedOutput()
    streams["stdout"].append(b"heard\n")
    heard.note(message(streams["stdout"].end))
    streams["stdout"].append("not heard ✓\n".encode())
    streams["stderr"].append(b"an error\n")
    assert heard.rest(memory, None) == [
        StreamText("stdout", "not heard ✓\n", None),
        StreamText("stderr", "an error\n", None),
    ]


def test_text_of_replicas_is_in_their_lanes(memory: int) -> None:
    stdout = journal.open_streams(memory)["stdout"]
    stdout.nonce = "0badcafe"
    stdout.append(f"own\n{replica_tag('0badcafe', 1)}one\n{replica_tag('0badcafe', None)}".encode())
    assert ReceivedOutput().rest(memory, "worker 0") == [
        StreamText("stdout", "own\n", "worker 0"),
        StreamText("stdout", "one\n", "worker 0 · replica 1"),
    ]


def test_bytes_that_are_no_longer_there_are_counted(memory: int) -> None:
    journal.open_streams(memory)["stdout"].append(b"x" * (KEPT_BYTES + 1234))
    lost, kept = ReceivedOutput().rest(memory, None)
    assert lost.text == "\n… 1,234 bytes were lost in the crash …\n"
    assert kept.text == "x" * KEPT_BYTES


@pytest.mark.parametrize(
    "forged",
    [
        message(-5),
        message("3"),
        message(True),
        message(3.0),
        message(3, "stdin"),
        message(3, ["stdout"]),
        message(3, kind="error"),
        {"msg_type": "stream", "content": {"name": "stdout"}, "metadata": {"lockstep": 3}},
        {"msg_type": "stream", "content": None, "metadata": {"lockstep": {"position": 3}}},
        {"msg_type": "stream"},
    ],
    ids=str,
)
def test_a_message_that_claims_nonsense_changes_nothing(memory: int, forged: dict[str, Any]) -> None:
    journal.open_streams(memory)["stdout"].append(b"printed")
    heard = ReceivedOutput()
    heard.note(forged)
    assert heard.rest(memory, None) == [StreamText("stdout", "printed", None)]


def test_bytes_and_a_nonce_that_are_no_text_do_no_harm(memory: int) -> None:
    stdout = journal.open_streams(memory)["stdout"]
    stdout.nonce = "(.*)+"
    stdout.append(b"\xff\0\xed\xa0\x80")
    (text,) = ReceivedOutput().rest(memory, None)
    assert text.text.startswith("\ufffd␀")
