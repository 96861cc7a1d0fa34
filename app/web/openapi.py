"""The description of the API as OpenAPI: made from its routes, and from no others."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import JSONResponse

from app.version import lockstep_version
from app.web.access import Access
from app.web.api import Problem, api_router, is_api_path

router = api_router(Access.public, "Description")

_ABOUT = (
    "Read what you did, and what your groups did. Every route only reads. Routes with a padlock need an API token, "
    "which you create under Settings, API tokens: send it as `Authorization: Bearer TOKEN`. Errors are problem "
    "documents (RFC 9457). Lists come in pages: follow `next_cursor`."
)
_NEVER_SENT = ("HTTPValidationError", "ValidationError")
"""FastAPI's own descriptions of errors: this API sends problem documents."""


@router.get("/openapi.json", name="openapi", include_in_schema=False)
async def show_openapi(request: Request) -> JSONResponse:
    """This description."""
    return JSONResponse(describe_api(request.app), headers={"cache-control": "no-cache"})


def describe_api(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        routes = [route for route in app.routes if isinstance(route, APIRoute) and is_api_path(route.path)]
        version = lockstep_version()
        document = get_openapi(title="Lockstep", version=version, description=_ABOUT, routes=routes)
        schemas = document["components"]["schemas"]
        document["components"]["schemas"] = {
            **{name: schema for name, schema in schemas.items() if name not in _NEVER_SENT},
            "Problem": Problem.model_json_schema(),
        }
        for operation in (operation for path in document["paths"].values() for operation in path.values()):
            operation["tags"] = [tag for tag in operation["tags"] if tag not in set(Access)]
        app.openapi_schema = document
    return app.openapi_schema
