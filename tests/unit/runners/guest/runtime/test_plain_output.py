"""Lanes and notices as a Jupyter client shows them."""

from __future__ import annotations

from typing import Any

import pytest

from runners.guest.runtime.plain_output import LaneLabels, label_lanes, label_output, notices_as_text
from runners.wire.reports import METRIC, NOTICE, NOTICES, PICTURE


def shown(*pieces: tuple[str | None, str]) -> str:
    labels = LaneLabels()
    return "".join(labels.put(text, lane, "a cell") for lane, text in pieces)


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([(None, "loss 1\nloss")], "loss 1\nloss"),
        ([("worker 0", "a\nb\n"), ("worker 1", "c\n")], "worker 0 | a\nworker 0 | b\nworker 1 | c\n"),
        ([("worker 0", "ha"), ("worker 0", "lf\nnext\n")], "worker 0 | half\nworker 0 | next\n"),
        ([("worker 0", "half"), ("worker 1", "c\n")], "worker 0 | half\nworker 1 | c\n"),
        ([("worker 0", "half"), (None, "c\n")], "worker 0 | half\nc\n"),
        ([("worker 0", "a\n\nb\n")], "worker 0 | a\nworker 0 | \nworker 0 | b\n"),
        ([("worker 0", "1/2\r2/2\n")], "worker 0 | 1/2\rworker 0 | 2/2\n"),
        ([("worker 0", "half"), ("worker 0", "")], "worker 0 | half"),
    ],
)
def test_a_line_is_of_one_lane_and_begins_with_its_name(pieces: list[tuple[str | None, str]], text: str) -> None:
    assert shown(*pieces) == text


def test_a_new_cell_begins_a_new_line_by_itself() -> None:
    labels = LaneLabels()
    labels.put("half", "worker 0", "first")

    assert labels.put("c", "worker 1", "second") == "worker 1 | c"


def test_results_and_errors_name_their_lane_and_pictures_stay() -> None:
    result = {"data": {"text/plain": "1\n2"}}
    picture = {"data": {"image/png": "…"}}

    assert label_output("execute_result", result, "worker 1") == {"data": {"text/plain": "worker 1 | 1\nworker 1 | 2"}}
    assert label_output("display_data", picture, "worker 1") == picture
    assert label_output("error", {"ename": "E", "traceback": ["one"]}, "chief")["traceback"] == ["chief |", "one"]


class Session:
    """A Jupyter session, as far as sending is concerned."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Any]] = []

    def send(self, stream: Any, msg_or_type: Any, content: Any = None, **kwargs: Any) -> None:
        """Record it."""
        self.sent.append((msg_or_type, content))


def test_both_ways_of_sending_are_labelled() -> None:
    session = Session()
    label_lanes(session)
    lane = {"lockstep": {"lane": "worker 1"}}
    text = {"name": "stdout", "text": "hello\n"}

    session.send(None, "stream", text, metadata=lane, parent={"header": {"msg_id": "1"}})
    session.send(None, {"msg_type": "stream", "content": text, "metadata": lane, "parent_header": {"msg_id": "1"}})
    session.send(None, "stream", text, metadata=None)
    session.send(None, "status", {"execution_state": "idle"})

    assert session.sent[0] == ("stream", {"name": "stdout", "text": "worker 1 | hello\n"})
    assert session.sent[1][0]["content"]["text"] == "worker 1 | hello\n"
    assert session.sent[2:] == [("stream", text), ("status", {"execution_state": "idle"})]


def test_a_notice_is_text_and_numbers_for_a_chart_are_nothing() -> None:
    told: list[tuple[str, dict[str, Any], str | None]] = []
    publish = notices_as_text(lambda *message: told.append(message))
    picture = {"data": {PICTURE: {}, "text/plain": "words"}}

    publish("display_data", {"data": {NOTICE: {"code": "nccl", "values": {}}}}, "worker 1")
    publish("display_data", {"data": {METRIC: {"step": 1, "per": "step", "values": {"loss": 1.0}}}}, None)
    publish("display_data", {"data": {NOTICE: {"code": "made up", "values": {}}}}, None)
    publish("display_data", picture, None)
    publish("display_data", {"data": {NOTICE: {"code": "legacy-optimizer", "values": {}}}}, None)

    kernel = "Change to a kernel with Keras 2, such as lockstep-gpu-4-keras-2.\n"
    assert told.pop() == ("stream", {"name": "stderr", "text": f"{NOTICES['legacy-optimizer']} {kernel}"}, None)
    assert told == [
        ("stream", {"name": "stderr", "text": NOTICES["nccl"] + "\n"}, "worker 1"),
        ("display_data", picture, None),
    ]
