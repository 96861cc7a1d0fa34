"""What the supervisor and the sandboxes of a judgement say to each other. Pure.

A sandbox is asked by a cell of one line, which the supervisor writes, and answers with a display (``reports.ANSWER``).
Anything in a sandbox can forge that display. In the sandbox of a submission it means nothing: an answer is only a
claim of the submission about itself, as is the result of its functions. In the judge's sandbox only the checks run.

The supervisor reads the judge's requests (``JudgeStep``), and carries all other text from one sandbox to another as it
is: it is decoded within the judge's walls only.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runners.wire.protocol import CheckOutcome, WireModel

Short = Annotated[str, Field(max_length=4000)]


class ReportedCheck(WireModel):
    """One check, as the judge reports it: a ``JudgedCheck`` that crossed the wire."""

    name: Annotated[str, Field(max_length=400)]
    outcome: CheckOutcome
    message: Short = ""
    values: dict[str, Short] = Field(default={}, max_length=20)
    got: Short | None = None
    wanted: Short | None = None
    detail: Annotated[str, Field(max_length=20_000)] = ""


class JudgeRequest(WireModel):
    """Something that the judge wants done in another sandbox."""

    sandbox: Literal["submission", "reference", "graph"]
    number: Annotated[int, Field(ge=0, le=100)] = 0
    """Of a submission: 0 for the first sandbox, more for fresh ones."""
    topology: str | None = None
    """Of a reference: the machine; None: the exercise's own."""
    do: str
    """For ``runners.guest.judging.submission.answer``."""
    kill: str | None = None
    """A process of the cluster to kill meanwhile."""
    at_step: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None


class JudgeStep(WireModel):
    """How far the judge has come, and what it waits for."""

    names: Annotated[tuple[str, ...], Field(max_length=200)] = ()
    """In the first step: all checks of the exercise, in their order."""
    results: tuple[ReportedCheck, ...] = ()
    """Since the step before."""
    request: JudgeRequest | None = None
    """None: all is judged."""
    fault: Annotated[str, Field(max_length=20_000)] = ""
    """Why nothing can be judged, as text for instructors."""
