"""Reports that a learner's program may have forged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.kernels import messages
from runners.wire import reports
from runners.wire.protocol import EVENT_ADAPTER
from runners.wire.reports import METRIC, NOTICE, PROGRESS

_JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
_CONTENT = st.fixed_dictionaries(
    {},
    optional={
        "step": st.integers() | _JUNK,
        "per": st.sampled_from(["step", "epoch"]) | _JUNK,
        "values": st.dictionaries(st.text(max_size=9), st.floats() | st.just("nan") | _JUNK, max_size=30) | _JUNK,
        "label": st.text() | _JUNK,
        "done": st.integers() | _JUNK,
        "total": st.integers() | _JUNK,
        "unit": st.sampled_from(["step", "epoch", "item"]) | _JUNK,
        "left_s": st.floats() | _JUNK,
        "code": st.just("test") | _JUNK,
    },
)


@pytest.fixture(autouse=True)
def sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A valid notice."""
    monkeypatch.setitem(reports.NOTICES, "test", "{who} waits for {step}.")


def message(data: dict[str, Any], lane: Any = None) -> dict[str, Any]:
    """A display as a kernel sends it."""
    return {"msg_type": "display_data", "content": {"data": data}, "metadata": {"lockstep": {"lane": lane}}}


@given(st.sampled_from([METRIC, PROGRESS, NOTICE]), _CONTENT | _JUNK, _JUNK)
def test_whatever_a_report_holds_it_makes_a_valid_event_or_none(mime: str, content: Any, lane: Any) -> None:
    fields = messages.to_event_fields(message({mime: content}, lane))

    if fields is not None:
        kind, values = fields
        event = EVENT_ADAPTER.validate_python({"kind": kind, "seq": 1, "at_ms": 0, **values})
        written = event.model_dump_json()
        assert EVENT_ADAPTER.validate_json(written) == event
        assert len(written) < 20_000


def test_a_metric_keeps_its_numbers_and_says_what_json_cannot() -> None:
    values = {"loss": float("nan"), "scale": float("inf"), "accuracy": 0.5, "name": "x", "flag": True}

    kind, fields = messages.to_event_fields(message({METRIC: {"step": 3, "values": values}}, "worker 1")) or ("", {})

    assert kind == "metric"
    assert fields == {
        "step": 3,
        "per": "step",
        "values": {"loss": "nan", "scale": "inf", "accuracy": 0.5},
        "lane": "worker 1",
    }


def test_a_metric_names_its_training_on_one_short_line() -> None:
    sent = {"step": 3, "values": {"loss": 1.0}, "training": "two\nlayers" + 99 * "s"}

    _, fields = messages.to_event_fields(message({METRIC: sent})) or ("", {})

    assert fields["training"] == ("two layers" + 99 * "s")[:60]
    assert "training" not in (messages.to_event_fields(message({METRIC: sent | {"training": 7}})) or ("", {}))[1]


def test_a_notice_is_one_of_ours_or_none() -> None:
    ours = messages.to_event_fields(
        message({NOTICE: {"code": "test", "values": {"who": "worker\n1\x1b[31m", "step": 7}}})
    )
    assert ours == (
        "notice",
        {"code": "test", "values": {"who": "worker 1 [31m", "step": 7}, "text": "worker 1 [31m waits for 7."},
    )
    for content in ({"code": "other"}, {"code": "test"}, {"code": "test", "values": {"who": [1], "step": 1}}, 5):
        assert messages.to_event_fields(message({NOTICE: content})) is None


def test_a_notice_has_the_values_of_its_sentence_and_no_others() -> None:
    values = {"x" * 100_000: 1, "step": 7, "who": "w"} | {f"v{number}": "more" for number in range(30)}
    fields = messages.to_event_fields(message({NOTICE: {"code": "test", "values": values}}))
    assert fields is not None
    assert fields[1]["values"] == {"who": "w", "step": 7}


def test_a_sentence_reaches_no_attribute_of_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reports.NOTICES, "test", "{who}")
    fields = messages.to_event_fields(message({NOTICE: {"code": "test", "values": {"who": "{who.__class__}"}}}))
    assert fields is not None
    assert fields[1]["text"] == "{who.__class__}"


@pytest.mark.parametrize("lane", [None, 1, "", "  ", ["worker 1"], {"a": 1}])
def test_what_is_no_lane_is_left_out(lane: Any) -> None:
    assert messages.to_event_fields(message({"text/plain": "x"}, lane)) == (
        "display",
        {"data": {"text/plain": "x"}, "display_id": None, "update": False, "result": False},
    )
