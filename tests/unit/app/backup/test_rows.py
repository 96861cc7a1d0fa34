"""Rows in a backup: what was written is read, and nothing that a database cannot hold is accepted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.backup.archive import DamagedArchive
from app.backup.rows import RowBatch, decode_batch, encode_batch

SCHEMA = {"runs": frozenset({"id", "code"})}


def test_every_kind_of_value_is_read_as_it_was_written() -> None:
    values = [None, True, -(2**63), 2**63 - 1, 0.5, "한글 \U0001f600", b"\0\xff", datetime(2026, 11, 24, tzinfo=UTC)]
    batch = RowBatch("runs", ["id", "code"], [[number, value] for number, value in enumerate(values)])
    assert decode_batch("runs", encode_batch(batch), SCHEMA) == batch


@pytest.mark.parametrize(
    "value",
    [
        str(2**63),
        str(-(2**63) - 1),
        r'"\ud800"',
        r'"a\udfffb"',
        "[1]",
        '{"time": "9999-99-99"}',
        '{"bytes": "?"}',
        "{}",
    ],
)
def test_a_value_that_no_database_holds_is_refused_with_a_sentence(value: str) -> None:
    with pytest.raises(DamagedArchive, match="the rows of the table runs are damaged"):
        decode_batch("runs", f'["id","code"]\n["a",{value}]\n'.encode(), SCHEMA)
