"""Messages of a kernel, which may contain anything."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.kernels import messages
from runners.kernels.messages import MIME_TYPES
from runners.wire.protocol import EVENT_ADAPTER

_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates and NUL included
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | _TEXT | st.sampled_from(sorted(MIME_TYPES))
_JUNK = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4), max_leaves=12
)
_MIMES = st.sampled_from([*sorted(MIME_TYPES), "application/javascript", "x"])
_CONTENT = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["stdout", "stderr", "stdin"]) | _JUNK,
        "text": _TEXT | _JUNK,
        "data": st.dictionaries(_MIMES, _JUNK, max_size=4) | _JUNK,
        "transient": st.fixed_dictionaries({"display_id": _JUNK}) | _JUNK,
        "ename": _TEXT | _JUNK,
        "evalue": _TEXT | _JUNK,
        "traceback": st.lists(_TEXT | _JUNK, max_size=100) | _JUNK,
        "wait": _JUNK,
        "execution_state": st.just("idle") | _JUNK,
        "status": st.just("error") | _JUNK,
    },
)
_KINDS = ["stream", "display_data", "update_display_data", "execute_result", "error", "clear_output", "status", "x"]
_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "msg_type": st.sampled_from(_KINDS) | _JUNK,
        "content": _CONTENT | _JUNK,
        "parent_header": st.just({"msg_id": "r"}) | _JUNK,
    },
)


@settings(max_examples=400, deadline=None)
@given(_MESSAGES)
def test_whatever_a_message_holds_it_makes_a_valid_event_or_none(message: dict[str, Any]) -> None:
    messages.is_idle(message, "r")
    messages.reply_error(message, "r")
    fields = messages.to_event_fields(message)

    if fields is not None and fields[0] == "unshown":
        assert all(re.fullmatch(r"[a-zA-Z0-9.+/_?-]{0,60}", mime) for mime in fields[1]["types"])
    elif fields is not None:
        kind, values = fields
        event = EVENT_ADAPTER.validate_python({"kind": kind, "seq": 1, "at_ms": 0, **values})
        written = event.model_dump_json()
        assert "\\u0000" not in written
        assert EVENT_ADAPTER.validate_json(written).model_dump_json() == written


def test_text_loses_nul_and_lone_surrogates_and_nothing_else() -> None:
    assert messages.sanitize_text("a\0b\ud800c\x1b[31m\rüñ🎲") == "a␀b?c\x1b[31m\rüñ🎲"


def _error(traceback: list[str], value: str = "no") -> dict[str, Any]:
    fields = messages.to_event_fields(
        {"msg_type": "error", "content": {"ename": "E", "evalue": value, "traceback": traceback}}
    )
    assert fields is not None
    return fields[1]


def test_a_huge_traceback_is_folded_in_the_middle() -> None:
    values = _error([f"File /tmp/x.py:{n}" for n in range(10_000)] + ["E: no"], "x" * 1_000_000)

    frames = values["frames"]
    assert len(frames) == 61
    assert "9,9" not in frames[0].text
    assert "frames left out" in frames[30].text
    assert frames[-1].text == "E: no"
    assert len(values["value"]) < 21_000
    assert "characters left out" in values["value"]


def test_a_huge_frame_keeps_its_beginning_and_its_end() -> None:
    (frame,) = _error(["<" + "x" * 1_000_000 + ">"])["frames"]
    assert len(frame.text) < 21_000
    assert (frame.text[0], frame.text[-1]) == ("<", ">")


def test_the_learners_frames_and_the_error_are_distinguished_from_the_libraries() -> None:
    traceback = [
        "\x1b[31m---------------------------------------------------------------------------\x1b[39m",
        "\x1b[31mValueError\x1b[39m                Traceback (most recent call last)",
        "\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[1]\x1b[39m\x1b[32m, line 1\x1b[39m\n----> 1 f()",
        "File \x1b[32m/usr/lib/python3/dist-packages/keras/src/x.py:122\x1b[39m, in f()",
        "File /home/learner/mine.py:3, in g()",
        "\x1b[31mValueError\x1b[39m: no",
    ]
    assert [f.own for f in _error(traceback)["frames"]] == [True, True, False, True, True]


@pytest.mark.parametrize("mime", ["application/javascript", "application/vnd.jupyter.widget-view+json", "text/x-evil"])
def test_scripts_and_widgets_are_not_passed_on(mime: str) -> None:
    content = {"data": {mime: "alert(1)"}}
    assert messages.to_event_fields({"msg_type": "display_data", "content": content}) == (
        "unshown",
        {"types": [mime], "size": 8},
    )
    content["data"]["text/plain"] = "x"
    fields = messages.to_event_fields({"msg_type": "display_data", "content": content})
    assert fields is not None
    assert list(fields[1]["data"]) == ["text/plain"]


def test_only_the_idle_of_this_request_ends_it() -> None:
    def status(state: str, parent: str) -> dict[str, Any]:
        return {"msg_type": "status", "content": {"execution_state": state}, "parent_header": {"msg_id": parent}}

    assert messages.is_idle(status("idle", "r"), "r")
    assert not messages.is_idle(status("busy", "r"), "r")
    assert not messages.is_idle(status("idle", "other"), "r")


def test_an_answer_tells_the_error_that_was_not_shown() -> None:
    def answer(**content: Any) -> dict[str, Any]:
        return {"content": content, "parent_header": {"msg_id": "r"}}

    assert messages.reply_error(answer(status="ok"), "r") == (True, None)
    assert messages.reply_error(answer(status="error", ename="E", evalue="no"), "r") == (True, ("E", "no"))
    assert messages.reply_error(answer(status="error"), "r") == (True, ("Error", ""))
    assert messages.reply_error(answer(status="error"), "other") == (False, None)


def test_a_library_of_a_checkout_below_tmp_is_not_the_learners() -> None:
    library = "File /tmp/clone/.venv/lib/python3.11/site-packages/keras/src/losses.py:7, in call(self)\n      7 raise"
    frames = _error([library, "File /tmp/mine.py:1, in f()", "ValueError: no"])["frames"]
    assert [frame.own for frame in frames] == [False, True, True]


def test_what_nobody_may_see_is_named_in_few_and_harmless_words() -> None:
    data = {f"<script>{n}</script>": "x" for n in range(100)} | {"x/" + "y" * 1000: "x", 3: "x"}
    kind, fields = messages.to_event_fields({"msg_type": "display_data", "content": {"data": data}}) or ("", {})
    assert kind == "unshown"
    assert fields["types"] == [f"?script?{n}?/script?" for n in range(5)]


def test_a_display_without_anything_is_dropped() -> None:
    for data in ({}, {"text/plain": 5}, {3: "x"}):
        assert messages.to_event_fields({"msg_type": "display_data", "content": {"data": data}}) is None


def test_a_display_keeps_the_types_that_pages_show_and_loses_nul() -> None:
    data = {"text/x-evil": "<b>", "text/plain": "b", "application/json": {"a": ["\0"]}}
    fields = messages.to_event_fields({"msg_type": "display_data", "content": {"data": data}})
    assert fields is not None
    assert fields[1]["data"] == {"text/plain": "b", "application/json": {"a": ["␀"]}}


@pytest.mark.parametrize(
    ("line", "own", "raised"),
    [
        ("\x1b[92m----> \x1b[39m\x1b[92m1\x1b[39m \x1b[38;5;81mraise\x1b[39m MemoryError\n", True, True),
        ("      1 def f():\n----> 2     raise MemoryError('x') from e\n      3 f()", True, True),
        ("---> 12 x = 1; raise MemoryError", True, True),
        ("----> 1 x = bytearray(10**12)", True, False),
        ("      1 raise_it = 1\n----> 2 raise_it(3)", True, False),
        ("----> 1 raised()", True, False),
        ("--> 232 raise core._status_to_exception(e) from None", False, False),
    ],
)
def test_a_raise_in_learner_code_is_distinguished_from_a_failed_call(line: str, own: bool, raised: bool) -> None:
    place = "Cell In[1], line 1" if own else "File /usr/lib/python3/dist-packages/tensorflow/ops.py:122, in f()"
    frames = _error([f"{place}\n{line}", "MemoryError: "])["frames"]
    assert messages.ends_in_own_raise(frames) is raised


def test_a_traceback_without_frames_raises_nothing() -> None:
    assert not messages.ends_in_own_raise([])
    assert not messages.ends_in_own_raise(_error(["MemoryError: "])["frames"])
