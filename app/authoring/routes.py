"""The stream of changes to lesson files, for the pages that instructors have open."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.accounts.dependencies import RequiredInstructor
from app.accounts.disabled_accounts import DisabledAccountsDep
from app.authoring.changes import LessonChangesDep
from app.errors import HttpStatusError
from app.web.access import Access
from app.web.sse import event_stream

router = APIRouter(tags=[Access.instructor])


@router.get("/lesson-changes", name="lesson_changes")
async def stream_changes(
    request: Request, account: RequiredInstructor, changes: LessonChangesDep, disabled: DisabledAccountsDep
) -> Response:
    if "text/event-stream" not in request.headers.get("accept", ""):
        raise HttpStatusError(406)  # an EventSource always accepts this type; other clients would wait for an end
    return event_stream(changes.events(account.id), disabled.watch(account.learner_id))
