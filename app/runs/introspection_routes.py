"""Completion and documentation over HTTP: JSON for the editor."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from app.accounts.dependencies import OptionalLearnerId
from app.runs.dispatcher import RunDispatcherDep
from app.runs.introspection import introspect
from app.runs.lesson_lookup import LessonLookupDep
from app.runs.machines import choose_machine, lesson_machines
from app.runs.service import check_code
from app.web.access import Access
from app.web.json_request import JsonRequest
from app.web.security_headers import NO_STORE
from runners.wire.protocol import MAX_CODE_BYTES, IntrospectionRequest

router = APIRouter(tags=[Access.learner])


class QuestionIn(JsonRequest):
    """A question about code of a lesson, to the session on one of its machines. ``cursor`` counts characters."""

    lesson: str
    topology: str
    keras: int
    kind: Literal["complete", "inspect"]
    code: str
    cursor: Annotated[int, Field(ge=0, le=MAX_CODE_BYTES)]


@router.post("/introspection", name="introspect_code")
async def introspect_code(
    asked: QuestionIn, learner: OptionalLearnerId, lookup: LessonLookupDep, dispatcher: RunDispatcherDep
) -> Response:
    lesson = await lookup.lesson(asked.lesson)
    machine = choose_machine(lesson_machines(lesson), asked.topology, asked.keras)
    if learner is not None:
        dispatcher.questions.admit(learner, time.monotonic())
    check_code(asked.code)  # its errors say more than those of the protocol
    request = IntrospectionRequest(kind=asked.kind, code=asked.code, cursor=asked.cursor)
    found = await introspect(dispatcher.runner, learner, lesson, machine, request)
    return Response(found.model_dump_json(), media_type="application/json", headers=NO_STORE)
