"""What all routes of the API share: their prefix, pages of lists, and errors as problem documents (RFC 9457).

The API only reads. It heeds no cookie, so no page of another site can use a browser's, and it answers in English.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse

from app.errors import InvalidInput, LockstepError
from app.i18n import N_
from app.web.access import Access

API_PREFIX = "/api/v1"
"""The prefix of the paths of all routes of the API."""
PROBLEM_TYPE = "application/problem+json"
DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 100
_MAX_CURSOR_LENGTH = 1_000

T = TypeVar("T")
M = TypeVar("M", bound="ApiModel")

Cursor = Annotated[
    str, Query(max_length=_MAX_CURSOR_LENGTH, description="`next_cursor` of the page before; empty for the first page.")
]
ApiLanguage = Annotated[
    Literal["en", "ko", "zh"], Query(description="The language of titles and texts, where they are translated.")
]
PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="How many items a page has at most.")]


class InvalidCursor(InvalidInput):
    message = N_("This cursor is not valid here. Use the next_cursor of the page before, as it is, or none.")


class ApiModel(BaseModel):
    """What a response of the API holds. The texts below fields are in its description."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ListPage(ApiModel, Generic[M]):
    """A page of a list."""

    items: list[M]
    next_cursor: str | None
    """The cursor of the next page; null on the last one."""


class Problem(ApiModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    """What is wrong, and what to do."""
    code: str
    """A stable name for programs."""
    request_id: str
    """Names the request in the log of the site."""


def api_router(access: Access, tag: str) -> APIRouter:
    """A router of the API. The description groups its routes under ``tag``, and names each as the application does."""
    return APIRouter(prefix=API_PREFIX, tags=[access, tag], generate_unique_id_function=lambda route: route.name)


def is_api_path(path: str) -> bool:
    """Whether a path belongs to the API. Pure."""
    return path == API_PREFIX or path.startswith(f"{API_PREFIX}/")


def make_cursor(*values: str) -> str:
    """What names the last item of a page, for the page after it. Pure."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def read_cursor(cursor: str, count: int) -> list[str] | None:
    """The values of a cursor; None for the first page. Raises InvalidCursor. Pure."""
    if not cursor:
        return None
    try:
        values = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise InvalidCursor from None
    if not isinstance(values, list) or len(values) != count or not all(_is_plain_text(value) for value in values):
        raise InvalidCursor
    return values


def make_page(
    found: Sequence[T], limit: int, show: Callable[[T], M], key: Callable[[T], tuple[str, ...]]
) -> ListPage[M]:
    """A page of items of which one more than ``limit`` was asked for. ``key``: the values of an item's cursor. Pure."""
    shown = found[:limit]
    more = len(found) > limit
    return ListPage(items=[show(item) for item in shown], next_cursor=make_cursor(*key(shown[-1])) if more else None)


def problem_response(error: LockstepError, message: str, request_id: str, headers: dict[str, str]) -> JSONResponse:
    """An error as a problem document."""
    title = HTTPStatus(error.status).phrase
    problem = Problem(
        type="about:blank", title=title, status=error.status, detail=message, code=error.code, request_id=request_id
    )
    return JSONResponse(problem.model_dump(), error.status, headers, PROBLEM_TYPE)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for the description of the API. Pure."""
    content = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in sorted(statuses)}


def _is_plain_text(value: object) -> bool:
    """Whether every database accepts the value in a query."""
    return isinstance(value, str) and "\0" not in value and value.encode(errors="replace").decode() == value
