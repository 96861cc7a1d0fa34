"""The playground: a page for code of one's own, and copies of it to share."""

from __future__ import annotations

from starlette.requests import Request

from app.feature import Feature
from app.i18n import current_language, gettext
from app.playground.pages import COURSE
from app.playground.personal_data import export_shares
from app.playground.routes import router
from app.playground.sharing import find_playground
from app.web.rendering import NavItem


def navigation(request: Request) -> list[NavItem]:
    url = str(request.app.url_path_for("playground", lang=current_language()))
    return [NavItem(gettext("Playground"), url, request.url.path == url)]


FEATURE = Feature(
    name="playground",
    routers=(router,),
    navigation=navigation,
    lesson_sources={COURSE: find_playground},
    exporters={"shared_playgrounds": export_shares},
)
