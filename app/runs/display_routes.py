"""Rich output over HTTP: HTML and plots as documents of their own without rights, Markdown and LaTeX as a fragment."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.accounts.dependencies import OptionalLearnerId
from app.lessons.untrusted_markdown import run_in_render_thread
from app.runs.dispatcher import RunDispatcherDep
from app.runs.display_text import PLOTS
from app.runs.errors import DisplayNotFound, OutputDeleted
from app.runs.rich_text import latex_to_html, markdown_to_html
from app.runs.service import display_data, get_run
from app.web.access import Access
from app.web.rendering import render_page
from app.web.security_headers import NO_STORE, PLOT_DOCUMENT_POLICY, UNTRUSTED_DOCUMENT_POLICY

SeqParam = Annotated[int, Path(ge=1, le=2**31 - 1)]
ThemeQuery = Literal["light", "dark"]

router = APIRouter(prefix="/runs/{run_id}/displays/{seq}", tags=[Access.learner])


@router.get("", name="run_display")
async def run_display(
    request: Request,
    run_id: str,
    seq: SeqParam,
    learner: OptionalLearnerId,
    dispatcher: RunDispatcherDep,
    theme: ThemeQuery = "light",
) -> Response:
    html = (await _data(dispatcher, learner, run_id, seq, "text/html"))["text/html"]
    context = {"theme": theme, "html": Markup(html), "own_colors": has_own_colors(html)}  # noqa: S704 - the CSP gives it no rights
    return _document(render_page(request, "runs/display.html", **context), UNTRUSTED_DOCUMENT_POLICY)


@router.get("/text", name="run_display_text")
async def run_display_text(
    run_id: str, seq: SeqParam, learner: OptionalLearnerId, dispatcher: RunDispatcherDep
) -> Response:
    data = await _data(dispatcher, learner, run_id, seq, "text/markdown", "text/latex")
    (media_type, source), *_ = data.items()
    convert = markdown_to_html if media_type == "text/markdown" else latex_to_html
    html = await run_in_render_thread(convert, source)
    return _document(HTMLResponse(html), UNTRUSTED_DOCUMENT_POLICY)


@router.get("/plot", name="run_display_plot")
async def run_display_plot(
    request: Request,
    run_id: str,
    seq: SeqParam,
    learner: OptionalLearnerId,
    dispatcher: RunDispatcherDep,
    theme: ThemeQuery = "light",
) -> Response:
    data = await _data(dispatcher, learner, run_id, seq, *PLOTS)
    (media_type, plot), *_ = data.items()
    context = {"theme": theme, "library": PLOTS[media_type], "plot": Markup(json_for_script(plot))}  # noqa: S704 - no "<" in it
    return _document(render_page(request, "runs/plot.html", **context), PLOT_DOCUMENT_POLICY)


async def _data(
    dispatcher: RunDispatcherDep, learner: str | None, run_id: str, seq: int, *wanted: str
) -> dict[str, Any]:
    """What a display holds of the wanted media types, of which the first has to be text if it is one of text."""
    async with dispatcher.db.session() as session:
        run = await get_run(session, learner, run_id)
        data = await display_data(session, run.id, seq)
    kept = {
        name: data[name] for name in wanted if isinstance(data.get(name), str if name.startswith("text/") else dict)
    }
    if not kept:
        raise DisplayNotFound if run.pruned_at is None else OutputDeleted
    return kept


def _document(response: Response, policy: str) -> Response:
    response.headers["content-security-policy"] = policy
    response.headers.update(NO_STORE)
    return response


def json_for_script(value: Any) -> str:
    """JSON that can be the text of a ``<script>``, which ends at ``</script`` and changes its meaning at ``<!--``."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")


def has_own_colors(html: str) -> bool:
    """Whether HTML chooses colors, which were chosen for a white page."""
    lower = html.lower()
    return any(word in lower for word in ("color:", "color=", "background:", "background=", "fill:", "fill="))
