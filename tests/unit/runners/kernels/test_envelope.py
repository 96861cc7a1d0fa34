"""Jupyter's messages as frames: compared with jupyter_client's, and malformed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupyter_client.session import Session

from runners.kernels import messages
from runners.kernels.envelope import MalformedMessage, MessageCodec, TooManyValues
from runners.wire.protocol import EVENT_ADAPTER

KEY = b"the key of this kernel"
_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)
_PART = _JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=30)
_OBJECT = st.dictionaries(st.sampled_from(["msg_id", "msg_type", "text", "name", "data"]), _JSON)
_HEADER = st.fixed_dictionaries({"msg_id": _TEXT, "msg_type": st.sampled_from(["stream", "display_data", "error"])})
_WRITTEN = (_HEADER | _OBJECT).map(lambda value: json.dumps(value).encode())


def signed(*parts: bytes, key: bytes = KEY) -> list[bytes]:
    """Frames with a valid signature, whatever the parts are."""
    return [b"<IDS|MSG>", MessageCodec(key)._sign(parts), *parts]


def with_content(content: bytes) -> list[bytes]:
    return signed(b'{"msg_id": "1", "msg_type": "stream"}', b"{}", b"{}", content)


def test_jupyter_reads_what_we_seal() -> None:
    session = Session(key=KEY)
    name, frames = MessageCodec(KEY).seal("execute_request", {"code": "print('é')"})

    message = session.deserialize(session.feed_identities(frames)[1])

    assert (message["msg_id"], message["msg_type"]) == (name, "execute_request")
    assert message["content"] == {"code": "print('é')"}


def test_each_message_has_its_own_parent_whatever_the_last_one_had() -> None:
    codec, header = MessageCodec(KEY), b'{"msg_id": "1", "msg_type": "stream"}'
    parents = [
        b'{"msg_id": "a"}',
        b'{"msg_id": "a"}',
        b'{"msg_id": "b"}',
        json.dumps({"msg_id": "c" * 3000}).encode(),
        b"{}",
    ]

    read = [codec.open(signed(header, parent, b"{}", b"{}"))["parent_header"] for parent in parents]

    assert read == [json.loads(parent) for parent in parents]
    for _ in range(2):
        with pytest.raises(MalformedMessage):
            codec.open(signed(header, b"[]", b"{}", b"{}"))


def test_we_read_what_jupyter_sends() -> None:
    session = Session(key=KEY)
    parent = session.msg("execute_request")
    sent = session.msg("stream", content={"name": "stdout", "text": "é"}, parent=parent)

    message = MessageCodec(KEY).open(session.serialize(sent, ident=[b"topic"]))

    assert (message["msg_id"], message["msg_type"]) == (sent["msg_id"], "stream")
    assert message["parent_header"]["msg_id"] == parent["header"]["msg_id"]
    assert message["content"] == {"name": "stdout", "text": "é"}


def test_each_request_has_an_id_of_its_own() -> None:
    envelopes = MessageCodec(KEY)

    assert len({envelopes.seal("kernel_info_request", {})[0] for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([], id="no frames"),
        pytest.param([b"<IDS|MSG>"], id="only a delimiter"),
        pytest.param(with_content(b"{}")[1:], id="no delimiter"),
        pytest.param(with_content(b"{}")[:-1], id="no content"),
        pytest.param([b"<IDS|MSG>", b"", *with_content(b"{}")[2:]], id="no signature"),
        pytest.param([b"<IDS|MSG>", b"\xff", *with_content(b"{}")[2:]], id="a signature that is no text"),
        pytest.param(signed(b'{"msg_id": "1", "msg_type": "x"}', b"{}", b"{}", b"{}", key=b"old"), id="an earlier key"),
        pytest.param([*with_content(b"{}")[:-1], b'{"text": "forged"}'], id="another content than was signed"),
        pytest.param(with_content(b"[]"), id="a list for content"),
        pytest.param(with_content(b"\xff{}"), id="not UTF-8"),
        pytest.param(with_content(b'{"x": NaN}'), id="not a number"),
        pytest.param(with_content(b'{"x": ' + b"9" * 10_000 + b"}"), id="a number of ten thousand digits"),
        pytest.param(with_content(b'{"x": ' + b"[" * 101 + b"]" * 101 + b"}"), id="too deep"),
        pytest.param(with_content(b'{"x": ' + b"[" * 1_000_000), id="much too deep"),
        pytest.param(with_content(b'{"x": [' + b"{}," * 16_000 + b"0]}"), id="too many objects"),
        pytest.param(with_content(b'{"x": [' + b"0," * 300_000 + b"0]}"), id="too many numbers"),
        pytest.param(with_content(b'{"x": [[' + b'"",' * 300_000 + b'""]]}'), id="too many strings"),
        pytest.param(with_content(b'{"x": ' + b'"\\' * 500_000 + b"}"), id="strings without end"),
        pytest.param(signed(b'{"msg_id": 1, "msg_type": "x"}', b"{}", b"{}", b"{}"), id="a number for an id"),
        pytest.param(signed(b"{}", b"{}", b"{}", b"{}"), id="an empty header"),
        pytest.param(signed(b'{"msg_id": "1", "msg_type": "x"}', b"null", b"{}", b"{}"), id="no parent's header"),
    ],
)
def test_what_is_no_message_of_this_kernel_is_malformed(frames: list[bytes]) -> None:
    with pytest.raises(MalformedMessage):
        MessageCodec(KEY).open(frames)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[{," * 1_000_000, id="a text of brackets"),
        pytest.param('\\"[' * 500_000, id="a text of quotes and brackets"),
        pytest.param("\\\\[" * 500_000, id="a text of backslashes"),
    ],
)
def test_a_long_text_is_read_whatever_it_is_made_of(text: str) -> None:
    message = MessageCodec(KEY).open(with_content(json.dumps({"text": text}).encode()))

    assert message["content"] == {"text": text}


def extra(frames: list[bytes]) -> int:
    """What the values of a message count in addition to its bytes."""
    envelopes = MessageCodec(KEY)
    envelopes.open(frames)
    return envelopes.extra_bytes


@pytest.mark.parametrize("half", [b"{},", b"[],", b'{"a": 1},', b'"",', b"[]" + b"]" * 100])
def test_too_many_values_are_refused_before_any_is_read(half: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = with_content(b'{"x": [' + half * 140_000 + b"0]}")
    monkeypatch.setattr("runners.kernels.envelope.json.loads", lambda *_, **__: pytest.fail("it was read"))

    with pytest.raises(TooManyValues) as refused:
        MessageCodec(KEY).open(frames)
    assert refused.value.size > 4 << 20


def test_each_object_and_list_counts_256_bytes_and_each_value_32() -> None:
    frames = with_content(json.dumps({"x": [{}] * 5000}).encode())

    assert extra(frames) == 256 * 5002 + 32 * 4999


@pytest.mark.parametrize("text", ["[{," * 100_000, '\\"[' * 100_000, "1, 2, 3\n" * 100_000])
def test_what_a_program_prints_is_no_value_whatever_it_looks_like(text: str) -> None:
    frames = with_content(json.dumps({"text": text}).encode())

    assert extra(frames) == 256  # the object that the text is in


def test_the_values_of_a_small_message_are_not_counted_nor_are_buffers_behind_it() -> None:
    small = with_content(json.dumps({"data": {"a": [{}] * 90}}).encode())

    assert extra(small) == 0
    assert extra([*small, b"[" * 5000]) == 0


@given(_JSON)
def test_every_json_that_is_not_too_large_is_read(value: Any) -> None:
    text = json.dumps({"x": value})
    if "NaN" in text or "Infinity" in text:
        return

    assert json.dumps(MessageCodec(KEY).open(with_content(text.encode()))["content"]) == text


@settings(max_examples=500, deadline=None)
@given(st.lists(st.binary(max_size=10), max_size=2), st.lists(_WRITTEN | _PART, max_size=7), st.booleans())
def test_any_frames_are_an_event_that_validates_or_none_or_malformed(
    before: list[bytes], parts: list[bytes], well_signed: bool
) -> None:
    frames = [*before, *(signed(*parts[:4]) if well_signed else parts), *parts[4:]]
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
