"""What a terminal shows at the end of a run: the outcome, the limit, and what to try."""

from __future__ import annotations

import io
import json
from typing import Literal

import pytest

from app.cli.printer import JsonPrinter, TextPrinter, escape_json_controls
from runners.wire.protocol import (
    EVENT_ADAPTER,
    DisplayEvent,
    ErrorEvent,
    Event,
    FinishedEvent,
    MetricEvent,
    NoticeEvent,
    Outcome,
    ProgressEvent,
    ReachedLimit,
    SessionInfo,
    SessionState,
    StartedEvent,
    TextEvent,
    TracebackFrame,
)


def said(*events: Event) -> str:
    err = io.StringIO()
    printer = TextPrinter(io.StringIO(), err)
    for event in events:
        printer.show(event)
    return err.getvalue()


def finished(outcome: Outcome, limit: ReachedLimit | None = None) -> FinishedEvent:
    return FinishedEvent(seq=2, at_ms=1, outcome=outcome, limit=limit)


def test_a_limit_is_named_with_its_value_and_an_advice() -> None:
    limit = ReachedLimit(name="output_rate", value=4 * 1024**2, unit="bytes/s")

    assert said(finished(Outcome.output, limit)) == (
        "lockstep: Stopped: it printed more than allowed (output limit 4 MiB per second). "
        "Print less often: every hundredth step, for example, and not inside the innermost loop.\n"
    )


def test_an_end_without_a_limit_is_said_alone() -> None:
    assert said(finished(Outcome.interrupted)) == "lockstep: Stopped.\n"
    assert said(finished(Outcome.ok)) == ""


def test_a_notice_that_comes_again_and_again_is_shown_once_and_counted() -> None:
    often = [
        NoticeEvent(seq=n, at_ms=1, code="retracing", lane="worker 0", text="It is traced again.") for n in range(1, 5)
    ]
    other = NoticeEvent(seq=5, at_ms=1, code="retracing", lane="worker 1", text="It is traced again.")

    assert said(*often, other, other, TextEvent(seq=7, at_ms=1, stream="stdout", text="on"), finished(Outcome.ok)) == (
        "[worker 0] lockstep: It is traced again.\n"
        "[worker 0] lockstep: (the same 3 more times)\n"
        "[worker 1] lockstep: It is traced again.\n"
        "[worker 1] lockstep: (the same 1 more time)\n"
    )


def test_a_session_that_lockstep_could_not_keep_up_is_no_crash_of_python() -> None:
    values: dict[str, str | int | float] = {"reason": "no-sandbox", "why": "no zygote"}
    notice = NoticeEvent(
        seq=1, at_ms=1, code="session-failed", values=values, text="The session could not continue: no zygote"
    )

    assert said(notice, finished(Outcome.crash)) == "lockstep: The session could not continue: no zygote\n"


def test_what_only_another_session_has_names_the_option_that_starts_one() -> None:
    def told(code: str) -> str:
        return said(NoticeEvent(seq=1, at_ms=1, code=code, text="No."))

    assert told("keras-2-chosen") == told("only-in-keras-2") == "lockstep: No. Run it with --keras 2.\n"
    assert told("no-tpu") == "lockstep: No. Run it with --topology tpu:8.\n"
    assert told("no-cluster") == "lockstep: No. Run it with --topology ps:2+1.\n"
    assert told("nccl") == "lockstep: No.\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(*events: Event, terminal: bool = False) -> tuple[str, str]:
    out, err = (Terminal() if terminal else io.StringIO() for _ in range(2))
    printer = TextPrinter(out, err)
    for event in events:
        printer.show(event)
    return out.getvalue(), err.getvalue()


def text(words: str, lane: str | None = None, stream: Literal["stdout", "stderr"] = "stdout") -> TextEvent:
    return TextEvent(seq=1, at_ms=1, stream=stream, text=words, lane=lane)


def test_each_line_of_a_worker_has_its_name_and_stays_whole() -> None:
    events = (
        text("ste", "worker 0"),
        text("step 1\n", "worker 1"),
        text("p 1\n", "worker 0"),
        text("last", "worker 1"),
    )

    assert printed(*events, finished(Outcome.ok)) == (
        "[worker 1] step 1\n[worker 0] step 1\n[worker 1] last\n",
        "",
    )


def test_a_workers_line_does_not_interrupt_the_cells_own() -> None:
    assert printed(text("loss: "), text("ready\n", "worker 1"), text("0.5\n"))[0] == "loss: \n[worker 1] ready\n0.5\n"


def test_displays_errors_and_notices_of_a_worker_are_named_too() -> None:
    display = DisplayEvent(seq=1, at_ms=1, data={"text/plain": "a\nb"}, lane="worker 1")
    error = ErrorEvent(
        seq=2, at_ms=1, name="E", value="v", frames=[TracebackFrame(text="E: v\n", own=True)], lane="worker 1"
    )
    notice = NoticeEvent(seq=3, at_ms=1, code="x", text="It waits.", lane="worker 1")

    assert printed(text("begun", "worker 1"), display, error, notice) == (
        "[worker 1] begun\n[worker 1] a\n[worker 1] b\n",
        "[worker 1] E: v\n[worker 1] lockstep: It waits.\n",
    )


def test_on_a_terminal_a_worker_keeps_its_colours_and_moves_no_cursor() -> None:
    out, _ = printed(text("\x1b[31mred\x1b[2A\x1b]0;title\x07\nplain\n", "worker 0"), terminal=True)

    assert out == "[worker 0] \x1b[31mred\x1b[0m\n[worker 0] plain\n"


def test_numbers_and_progress_are_for_programs_alone() -> None:
    events = (
        MetricEvent(seq=1, at_ms=1, step=1, values={"loss": "nan"}),
        ProgressEvent(seq=2, at_ms=1, label="fit", done=1, total=3),
    )
    out, err, lines = io.StringIO(), io.StringIO(), io.StringIO()

    for event in events:
        TextPrinter(out, err).show(event)
        JsonPrinter(lines).show(event)

    assert (out.getvalue(), err.getvalue()) == ("", "")
    assert tuple(map(EVENT_ADAPTER.validate_json, lines.getvalue().splitlines())) == events


def began(machine: SessionInfo) -> tuple[str, dict[str, object]]:
    """How the machine is described to people, and to programs."""
    err, out = io.StringIO(), io.StringIO()
    TextPrinter(io.StringIO(), err).begin(machine)
    printer = JsonPrinter(out)
    printer.begin(machine)
    printer.show(StartedEvent(seq=1, at_ms=0))
    printer.show(finished(Outcome.ok))
    first, second = map(json.loads, out.getvalue().splitlines())
    assert "machine" not in second
    return err.getvalue(), first["machine"]


@pytest.mark.parametrize(
    ("topology", "real", "words"),
    [
        ("cpu", False, ""),
        ("gpu:4", False, "lockstep: 4 GPUs, simulated. Timings say nothing about real devices.\n"),
        (
            "workers:2xgpu:2",
            False,
            "lockstep: 2 workers with 2 GPUs each, simulated. Timings say nothing about real devices.\n",
        ),
        ("gpu:4", True, "lockstep: 4 GPUs, real.\n"),
        ("tpu:8", True, "lockstep: TPU with 8 cores, real.\n"),
    ],
)
def test_what_is_simulated_is_said_before_anything_else(topology: str, real: bool, words: str) -> None:
    machine = SessionInfo(id="s", state=SessionState.busy, topology=topology, keras=2, real=real)

    said, told = began(machine)

    assert said == words
    assert told == {"topology": topology, "keras": 2, "simulated": topology != "cpu" and not real}


def test_json_keeps_letters_of_all_languages_and_escapes_what_a_terminal_obeys() -> None:
    document = json.dumps({"text": "한글 \x9b31m\x7f \u202edenrut\u2069"}, ensure_ascii=False, indent=2)
    shown = escape_json_controls(document)
    assert shown == '{\n  "text": "한글 \\u009b31m\\u007f \\u202edenrut\\u2069"\n}'
    assert json.loads(shown) == json.loads(document)


COLORED = "\x1b[96mCell\x1b[39m\x1b[96m \x1b[39m\x1b[32mIn[1]\x1b[39m\x1b[32m, line 2\x1b[39m, in f(x)\n----> 2 1/x"


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        (COLORED, "train.py, line 2, in f(x)\n----> 2 1/x\n"),
        ("  Cell In[4], line 1\n    x = = 1\n", "  train.py, line 1\n    x = = 1\n"),
        ("Cell In[1] is only mentioned", "Cell In[1] is only mentioned\n"),
        ("File ~/lib/json.py:3, in f()\nCell In[1], line 2", "File ~/lib/json.py:3, in f()\nCell In[1], line 2\n"),
    ],
)
def test_a_traceback_names_the_script_and_its_line(frame: str, shown: str) -> None:
    err = io.StringIO()
    error = ErrorEvent(seq=1, at_ms=1, name="E", value="", frames=[TracebackFrame(text=frame, own=True)])
    TextPrinter(io.StringIO(), err, "train.py").show(error)
    assert err.getvalue() == shown
