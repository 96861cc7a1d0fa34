"""What the editor says, in the language of a page, which loads it with the editor instead of with itself."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from app.i18n import N_, gettext
from app.web.access import Access
from app.web.languages import LANGUAGE_PREFIX

router = APIRouter(tags=[Access.public])

_CACHED = {"cache-control": "public, max-age=300"}

EDITOR_TEXTS = {
    "editor.busy": N_("The session is busy or has not started. Its documentation is available once it is idle."),
    "editor.completions": N_("Completions"),
    "editor.control": N_("Control character"),
    "editor.documentation": N_("Documentation"),
    "editor.find": N_("Find"),
    "editor.keys": N_("Keys for code"),
    "editor.left": N_("Cursor left"),
    "editor.nothingToComplete": N_("No completions here."),
    "editor.nothingToShow": N_("No documentation for this name. It may have to be defined by a cell first."),
    "editor.numbers": N_("Line numbers"),
    "editor.right": N_("Cursor right"),
    "editor.tabIndents": N_("Tab indents. Press Esc, then Tab, to move on."),
    "editor.tabMoves": N_("Tab moves on. Once you type, it indents."),
    "editor.tools": N_("Editor"),
    "editor.undo": N_("Undo"),
    "editor.wrap": N_("Wrap lines"),
    "find.all": N_("Select all"),
    "find.case": N_("Match case"),
    "find.close": N_("Close"),
    "find.current": N_("current match"),
    "find.go": N_("Go"),
    "find.goToLine": N_("Go to line"),
    "find.next": N_("Next"),
    "find.onLine": N_("on line"),
    "find.previous": N_("Previous"),
    "find.regexp": N_("Regular expression"),
    "find.replace": N_("Replace"),
    "find.replaceAll": N_("Replace all"),
    "find.replaceWith": N_("Replace with"),
    "find.replaced": N_("Replaced the match on line {line}."),
    "find.replacedAll": N_("Replaced {count} matches."),
    "find.word": N_("Whole words"),
}
"""By the key of ``say()`` in the front end; a test compares them."""


@router.get(f"{LANGUAGE_PREFIX}/editor-texts", name="list_editor_texts")
async def list_editor_texts(lang: str) -> Response:
    return JSONResponse({key: gettext(text) for key, text in EDITOR_TEXTS.items()}, headers=_CACHED)
