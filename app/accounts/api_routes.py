"""What the API says about the token that asks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from starlette.responses import Response

from app.accounts.api_access import ApiCaller, api_caller
from app.accounts.api_tokens import TokenScope, scopes_of
from app.web.access import Access
from app.web.api import ApiModel, api_router, problem_responses
from app.web.security_headers import NO_STORE

router = api_router(Access.token, "Token")


class TokenOut(ApiModel):
    """An API token."""

    name: str
    scopes: list[TokenScope]
    created_at: datetime
    expires_at: datetime
    handle: str
    """Of the account that it reads for."""


@router.get("/token", name="api_token", responses=problem_responses(401, 429))
async def show_token(caller: Annotated[ApiCaller, api_caller()], response: Response) -> TokenOut:
    """The token that this request sends: what it may read, and until when. It needs no scope."""
    response.headers.update(NO_STORE)
    token = caller.token
    return TokenOut(
        name=token.name,
        scopes=sorted(scopes_of(token)),
        created_at=token.created_at,
        expires_at=token.expires_at,
        handle=caller.account.handle,
    )
