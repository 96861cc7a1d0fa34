"""Coverage-guided fuzz of all that the supervisor reads from a kernel: bytes, frames, messages, events.

``test_wire_fuzzer.py`` runs it for half a minute. For longer:

    python tests/long/fuzz/fuzz_wire.py -max_total_time=600 -max_len=4096

It stops at the first input that raises anything but a typed error, holds more than the limits allow, reads otherwise
when it comes in other pieces, or makes an event that does not validate. ``test_zmtp.py``, ``test_envelope.py`` and
``test_messages.py`` hold the same rules against inputs that hypothesis makes up.
"""

from __future__ import annotations

import json
import sys

import atheris

with atheris.instrument_imports(include=["runners", "json"]):
    from runners.kernels import messages
    from runners.kernels.envelope import MalformedMessage, MessageCodec
    from runners.kernels.zmtp import ZmtpError, ZmtpLimits, ZmtpPeer, encode
    from runners.wire.protocol import EVENT_ADAPTER

KEY = b"key"
LIMITS = ZmtpLimits(message_bytes=2048, frames=16, command_bytes=128, commands=50)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x04XPUB"
HELLO = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32) + bytes([4, len(READY)]) + READY


def read(data: bytes, step: int) -> tuple[list[list[bytes]], type[ZmtpError] | None]:
    """The messages in ``data``, fed ``step`` bytes at a time, and the error that ended them, if any."""
    peer, found = ZmtpPeer("SUB", LIMITS), []
    try:
        for start in range(0, len(data), step):
            peer.feed(data[start : start + step])
            while (message := peer.take()) is not None:
                found.append(message)
            assert peer.held <= LIMITS.message_bytes + step + 1000
            peer.to_send()
    except ZmtpError as e:
        return found, type(e)
    return found, None


def understand(frames: list[bytes]) -> None:
    """Parse the frames as a Jupyter message and make an event from it."""
    try:
        message = MessageCodec(KEY).open(frames)
    except MalformedMessage:
        return
    messages.reply_error(message, "r")
    messages.is_idle(message, "r")
    fields = messages.to_event_fields(message)
    if fields is not None and fields[0] != "unshown":
        kind, values = fields
        EVENT_ADAPTER.validate_json(
            EVENT_ADAPTER.validate_python({"kind": kind, "seq": 1, "at_ms": 0, **values}).model_dump_json()
        )


def signed(kind: str, content: bytes) -> list[bytes]:
    """A message with a valid signature and any content."""
    parts = [json.dumps({"msg_id": "1", "msg_type": kind}).encode(), b'{"msg_id": "r"}', b"{}", content]
    return [b"<IDS|MSG>", MessageCodec(KEY)._sign(parts), *parts]


KINDS = ("stream", "display_data", "update_display_data", "execute_result", "error", "clear_output", "status")


def one_input(data: bytes) -> None:
    """Use the first byte to choose what the others are: a connection from its first byte on or later, or a content."""
    if not data:
        return
    choice, rest = data[0], data[1:]
    if choice >= 2 * len(KINDS):
        whole = (HELLO if choice % 2 else b"") + rest
        found = read(whole, len(whole) or 1)
        assert found == read(whole, 1 + choice % 7)
        for frames in found[0]:
            understand(frames)
        return
    frames = signed(KINDS[choice % len(KINDS)], rest)
    assert read(HELLO + encode(frames), 7)[0] in ([frames], [])
    understand(frames)


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
