"""The pieces of a page: one request when it is opened. Later, each piece that changes is requested by itself."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from app.accounts.dependencies import get_principal
from app.accounts.page_pieces import PageViewer
from app.pieces.composer import PieceComposerDep
from app.pieces.gate import keep_answer
from app.web.access import Access
from app.web.cookies import CookiesDep
from app.web.dependencies import DatabaseDep
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import parts_response, render_part

router = APIRouter(prefix=LANGUAGE_PREFIX, tags=[Access.learner])


@router.get("/pieces", name="page_pieces")
async def page_pieces(
    request: Request,
    lang: str,
    composer: PieceComposerDep,
    cookies: CookiesDep,
    db: DatabaseDep,
    course: Annotated[str, Query(max_length=80)] = "",
    lesson: Annotated[str, Query(max_length=80)] = "",
) -> Response:
    principal = await get_principal(request, composer.principal_query)
    viewer = PageViewer(
        learner_id=principal.learner_id,
        account=principal.account,
        course=course,
        lesson=lesson,
        page_url=request.headers.get("hx-current-url", ""),
        cookies=cookies,
        render=partial(render_part, request),
    )
    if (kept := composer.find(viewer, principal.facts)) is None:
        return parts_response(request, [await composer.compose(db, viewer, principal.facts)])
    response = parts_response(request, [kept])
    if principal.auth_session is not None and not cookies.changed:
        keep_answer(request.scope, response, principal.auth_session)
    return response
