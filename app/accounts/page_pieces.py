"""What every page shows of its viewer, in pieces that features contribute and the browser requests all at once.

A piece states what it depends on: facts in SQL, as scalar subqueries that run together in one query, and values that
the request already has. While all of that stays the same, the viewer gets what was rendered before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from sqlalchemy import ScalarSelect, String, bindparam
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account
from app.web.cookies import Cookies

LEARNER_ID = bindparam("learner", type_=String)
ACCOUNT_ID = bindparam("account", type_=String)
"""Parameters of facts: the IDs of the viewer. None, if there is none."""


@dataclass(frozen=True, slots=True)
class PageViewer:
    """Whom a page is shown to, and which course it is about."""

    learner_id: str | None
    account: Account | None
    course: str
    """A slug from the URL, which need not exist; "" for a page about no course."""
    lesson: str
    """A slug from the URL, which need not exist; "" for a page about no lesson."""
    page_url: str
    """The page's URL as the browser states it, or ""."""
    cookies: Cookies
    render: Callable[..., Markup]
    """Renders the template of that name, with the context as keywords."""


RenderPiece = Callable[[AsyncSession, PageViewer, Mapping[str, Markup]], Awaitable[Markup]]
"""Renders a piece in the current language. The mapping has the pieces before it, by name."""


@dataclass(frozen=True, kw_only=True)
class PagePiece:
    """One piece of every page."""

    name: str
    target: str = ""
    """A CSS selector of its place; "" for a piece that another one contains. If it renders nothing, the page need not
    have that place."""
    swap: str = "innerHTML"
    facts: Sequence[ScalarSelect[Any]] = ()
    """All that it shows from SQL, or what changes with it. Each is a single value."""
    values: Callable[[PageViewer], Hashable | None]
    """All that it depends on of the request: its URL, its cookies and the account, but not the language. None if it
    must be rendered each time."""
    edition: Callable[[], Hashable] = lambda: 0
    """Everything else that it depends on: the same for all viewers, and never again what it was before."""
    render: RenderPiece
