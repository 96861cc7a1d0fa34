"""Events become the outputs that Jupyter would store."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from app import i18n
from app.exports.outputs import notebook_outputs
from runners.wire.protocol import EVENT_ADAPTER, Event


def _events(*bodies: dict[str, Any]) -> list[Event]:
    return [EVENT_ADAPTER.validate_python({"seq": i, "at_ms": i} | body) for i, body in enumerate(bodies, 1)]


def _text(text: str, stream: str = "stdout") -> dict[str, Any]:
    return {"kind": "text", "stream": stream, "text": text}


def _display(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "display", "data": {"text/plain": text}} | more


def _outputs(*bodies: dict[str, Any]) -> list[dict[str, Any]]:
    outputs = notebook_outputs(_events({"kind": "started"}, *bodies), 3)
    nbformat.validate(new_notebook(cells=[new_code_cell("x", outputs=outputs, id="a")]), relax_add_props=False)
    return outputs


def test_pieces_of_a_stream_are_one_output_and_streams_stay_apart() -> None:
    outputs = _outputs(_text("1"), _text("0%\r"), _text("20%\n"), _text("warning\n", "stderr"), _text("end\n"))

    assert [(output["name"], output["text"]) for output in outputs] == [
        ("stdout", "20%\n"),
        ("stderr", "warning\n"),
        ("stdout", "end\n"),
    ]


def test_a_value_is_a_result_and_a_display_is_not() -> None:
    shown, result = _outputs(_display("a picture"), _display("42", result=True))

    assert (shown["output_type"], shown["data"]) == ("display_data", {"text/plain": "a picture"})
    assert (result["output_type"], result["execution_count"]) == ("execute_result", 3)


def test_an_update_takes_the_place_of_what_it_updates() -> None:
    outputs = _outputs(_display("1", display_id="a"), _text("x"), _display("2", display_id="a", update=True))

    assert outputs[0]["data"] == {"text/plain": "2"}
    assert len(outputs) == 2


def test_an_update_of_nothing_is_nothing() -> None:
    assert _outputs(_display("2", display_id="gone", update=True)) == []


def test_displays_that_an_update_has_reached_share_its_content() -> None:
    first, second, later = _outputs(
        _display("1", display_id="a"),
        _display("2", display_id="a"),
        _display("new", display_id="a", update=True),
        _display("3", display_id="a"),
    )

    assert first["data"] == {"text/plain": "new"}
    assert first["data"] is second["data"]
    assert later["data"] == {"text/plain": "3"}


def test_text_after_a_cleared_display_goes_on_where_text_ended() -> None:
    outputs = _outputs(
        _text("cell\n"),
        _display("gone", lane="worker 0", display_id="a"),
        _text("gone\n", "stderr") | {"lane": "worker 0"},
        {"kind": "clear", "lane": "worker 0"},
        _display("nothing to update", lane="worker 0", display_id="a", update=True),
        _text("goes on\n"),
    )

    assert [output["text"] for output in outputs] == ["cell\ngoes on\n"]


def test_clearing_clears_at_once_or_with_the_next_output() -> None:
    assert _outputs(_text("a"), {"kind": "clear"}) == []
    assert [o["text"] for o in _outputs(_text("a"), {"kind": "clear", "wait": True})] == ["a"]
    assert [o["text"] for o in _outputs(_text("a"), {"kind": "clear", "wait": True}, _text("b"))] == ["b"]


def test_an_error_keeps_its_whole_traceback() -> None:
    frames = [{"text": "\x1b[31mframe\x1b[0m", "own": True}, {"text": "ValueError: no", "own": True}]
    (error,) = _outputs({"kind": "error", "name": "ValueError", "value": "no", "frames": frames})

    assert (error["ename"], error["evalue"]) == ("ValueError", "no")
    assert error["traceback"] == ["\x1b[31mframe\x1b[0m", "ValueError: no"]


def test_messages_of_lockstep_are_distinguished_from_the_code() -> None:
    outputs = _outputs(
        _text("x\n"),
        {"kind": "notice", "code": "stand_in", "text": "Stand-in data."},
        {"kind": "finished", "outcome": "timeout"},
    )

    assert outputs[1] == {
        "output_type": "stream",
        "name": "stderr",
        "text": "Lockstep: Stand-in data.\nLockstep: Stopped: it ran longer than allowed.\n",
    }


@pytest.mark.parametrize("outcome", ["ok", "error"])
def test_an_ordinary_end_says_nothing(outcome: str) -> None:
    assert _outputs({"kind": "finished", "outcome": outcome}) == []


def test_hostile_html_is_kept_as_data_and_nothing_claims_trust() -> None:
    html = "<script>alert(1)</script>"
    data = {"text/html": html, "text/plain": "x", "image/png": 5, "application/json": {"a": [1]}, "text/x": ["a"]}
    (output,) = _outputs(_display("", data=data, metadata={"trusted": True, "image/png": {"width": 5}}))

    assert output["data"] == {"text/html": html, "text/plain": "x", "application/json": {"a": [1]}}
    assert output["metadata"] == {"image/png": {"width": 5}}


def test_lanes_come_in_whole_lines_with_their_names() -> None:
    outputs = _outputs(
        _text("begin: "),
        _text("ste", "stdout") | {"lane": "worker 0"},
        _text("step 1\n") | {"lane": "worker 1"},
        _text("p 1\n") | {"lane": "worker 0"},
        _text("end\n"),
        _text("never ended") | {"lane": "worker 1"},
    )

    assert [output["text"] for output in outputs] == [
        "begin: \n[worker 1] step 1\n[worker 0] step 1\nend\n[worker 1] never ended\n"
    ]


def test_a_lane_clears_only_what_it_wrote() -> None:
    outputs = _outputs(
        _text("cell\n"),
        _text("old\n") | {"lane": "worker 0"},
        _text("stays\n") | {"lane": "worker 1"},
        _display("gone", lane="worker 0"),
        _text("half") | {"lane": "worker 0"},
        {"kind": "clear", "lane": "worker 0"},
        _text("new\n") | {"lane": "worker 0"},
    )

    assert [output["text"] for output in outputs] == ["cell\n[worker 1] stays\n[worker 0] new\n"]


def test_an_error_of_a_worker_says_whose_it_is() -> None:
    error = {"kind": "error", "name": "ValueError", "value": "x", "frames": [], "lane": "worker 1"}

    assert [(o["ename"], o["evalue"]) for o in _outputs(error)] == [("[worker 1] ValueError", "x")]


def _metric(step: int, per: str = "step", **values: float | str) -> dict[str, Any]:
    return {"kind": "metric", "step": step, "per": per, "values": values}


def test_a_trainings_numbers_come_last_as_a_table_of_its_epochs() -> None:
    epochs = [_metric(1, "epoch", loss=2.25, val_loss=2.5), _metric(2, "epoch", loss="nan")]
    outputs = _outputs(_metric(1, loss=3.0), *epochs, _text("done\n"))

    assert outputs[0]["text"] == "done\n"
    assert outputs[1]["data"] == {"text/plain": "epoch  loss  val_loss\n    1  2.25       2.5\n    2   nan"}


def test_many_steps_are_evenly_spread_and_lanes_are_named() -> None:
    (table,) = _outputs(*(_metric(i, loss=i / 100) | {"lane": "worker 1"} for i in range(1, 101)))

    lines = table["data"]["text/plain"].split("\n")
    assert lines[0].split() == ["step", "lane", "loss"]
    assert (lines[1].split(), lines[-2].split()) == (["1", "worker", "1", "0.01"], ["100", "worker", "1", "1"])
    assert lines[-1] == "(20 of 100 rows, evenly spaced)"


def test_progress_leaves_nothing() -> None:
    assert _outputs({"kind": "progress", "label": "fit", "done": 1, "total": 2}) == []


@pytest.mark.parametrize(
    ("language", "days", "words"),
    [("en", 90, "after 90 days to"), ("en", 1, "after 1 day to"), ("ko", 90, "90일 뒤에"), ("zh", 90, "在 90 天后")],
)
def test_output_that_was_deleted_is_said_in_the_language_of_the_lesson(language: str, days: int, words: str) -> None:
    notice = {"kind": "notice", "code": "output-expired", "values": {"days": days}, "text": "in English"}
    with i18n.use_language(language):
        (output,) = _outputs(notice)

    assert output["text"].startswith("Lockstep: ")
    assert words in output["text"]
