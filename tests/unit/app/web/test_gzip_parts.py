"""Responses that are put together from compressed parts: any program for gzip reads them."""

from __future__ import annotations

import gzip
import zlib

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from app.web.gzip_parts import Frame, KeptPart, gzip_parts, html_response

PARTS = st.lists(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda body: KeptPart(body * 20))))


@given(parts=PARTS)
def test_the_parts_are_one_gzip_stream(parts: list[bytes | KeptPart]) -> None:
    whole = b"".join(part.body if isinstance(part, KeptPart) else part for part in parts)
    stream = zlib.decompressobj(31)

    assert stream.decompress(gzip_parts(parts)) == whole
    assert stream.eof
    assert not stream.unused_data  # browsers read one member only
    assert gzip.decompress(gzip_parts(parts)) == whole


def test_a_kept_part_is_compressed_once() -> None:
    part = KeptPart(b"words " * 1000)

    assert part.deflated is part.deflated
    assert len(gzip_parts([b"head", part])) < 200


def test_a_browser_that_takes_no_gzip_gets_the_parts_as_they_are() -> None:
    asked = Headers({"accept-encoding": "identity"})
    response = html_response([b"<p>", KeptPart(b"words"), b"</p>"], asked, {"cache-control": "no-store"})

    assert response.body == b"<p>words</p>"
    assert "content-encoding" not in response.headers


def test_a_frame_is_filled_anew_for_each_response() -> None:
    frame = Frame((KeptPart(b"<i>"), "name", KeptPart(b"</i>")))

    assert gzip.decompress(gzip_parts(frame.filled(name=b"Ada"))) == b"<i>Ada</i>"
    assert gzip.decompress(gzip_parts(frame.filled(name=KeptPart(b"Bob")))) == b"<i>Bob</i>"
