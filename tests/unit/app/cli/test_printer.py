"""What a terminal is told of a run's end: how, which limit, what to try."""

from __future__ import annotations

import io

from app.cli.printer import TextPrinter
from runners.protocol import Event, Finished, Limit, Notice, Outcome


def said(*events: Event) -> str:
    err = io.StringIO()
    printer = TextPrinter(io.StringIO(), err)
    for event in events:
        printer.show(event)
    return err.getvalue()


def finished(outcome: Outcome, limit: Limit | None = None) -> Finished:
    return Finished(seq=2, at_ms=1, outcome=outcome, limit=limit)


def test_a_limit_is_named_with_its_value_and_an_advice() -> None:
    limit = Limit(name="output_rate", value=4 * 1024**2, unit="bytes/s")

    assert said(finished(Outcome.output, limit)) == (
        "lockstep: Stopped: it printed more than allowed (output limit 4 MiB per second). "
        "Print less often: once in a hundred steps, for example, and not inside the innermost loop.\n"
    )


def test_an_end_without_a_limit_is_said_alone() -> None:
    assert said(finished(Outcome.interrupted)) == "lockstep: Stopped.\n"
    assert said(finished(Outcome.ok)) == ""


def test_a_session_that_lockstep_could_not_keep_up_is_no_crash_of_python() -> None:
    values: dict[str, str | int | float] = {"reason": "no-sandbox", "why": "no zygote"}
    notice = Notice(seq=1, at_ms=1, code="session-failed", values=values, text="The session could not go on: no zygote")

    assert said(notice, finished(Outcome.crash)) == "lockstep: The session could not go on: no zygote\n"
