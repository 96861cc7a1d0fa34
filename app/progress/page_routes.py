"""The pages and fragments of progress: one's own, and the profile of whoever wants to be seen."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app import i18n
from app.accounts.current import CurrentAccount, KnownLearner
from app.accounts.tokens import marker
from app.db import Database
from app.errors import NotFound
from app.lessons.addresses import LESSON
from app.lessons.catalog import TheCatalog
from app.progress import pages
from app.progress.calendar import WEEKS, weeks
from app.progress.curve import curve, steps
from app.progress.history import active_days, cells_run, history, public_account
from app.progress.service import TheProgress
from app.progress.zones import zone_of
from app.web.languages import PREFIX
from app.web.page import fragment, own_page, page

router = APIRouter(prefix=PREFIX)

_MOST_PAGES = 10_000
CourseSlug = Annotated[str, Query(max_length=80)]
Cursor = Annotated[str, Query(pattern=r"^[0-9]{0,16}$")]
PageNumber = Annotated[int, Query(alias="page", ge=1, le=_MOST_PAGES)]
_UTC = ZoneInfo("UTC")


class LearnerUnknown(NotFound):
    """The same for a name that nobody has and for an account without a public profile."""

    code = "learner_unknown"


@router.get("/progress", name="progress_header")
async def header(
    request: Request,
    lang: str,
    learner: KnownLearner,
    account: CurrentAccount,
    catalog: TheCatalog,
    progress: TheProgress,
    course: CourseSlug = "",
) -> HTMLResponse:
    if course and course not in progress.terms().courses:
        catalog.course(course, lang)  # raises CourseUnknown, unless it holds nothing but drafts and is an instructor's
        course = ""
    async with _db(request).session() as session:
        figures = await progress.summary.header(session, learner, course or None)
    return fragment(
        request,
        "progress/header.html",
        header=figures,
        share=pages.share_of(figures.level),
        who=marker(learner),
        account=account,
    )


@router.get("/progress/awards", name="progress_awards")
async def awards(
    request: Request, lang: str, learner: KnownLearner, progress: TheProgress, since: Cursor = ""
) -> HTMLResponse:
    async with _db(request).session() as session:
        news = await progress.summary.news(session, learner, since)
    return fragment(request, "progress/awards.html", cards=pages.cards(news), cursor=news.cursor, xp=news.xp)


@router.get(f"{LESSON}/end", name="lesson_end")
async def lesson_end(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    learner: KnownLearner,
    catalog: TheCatalog,
    progress: TheProgress,
) -> HTMLResponse:
    lesson = catalog.lesson(course, slug, lang)
    names = [f"{lesson.key}#{cell.name}" for cell in lesson.cells]
    async with _db(request).session() as session:
        outline = await progress.summary.outline(session, learner, course) if progress.counts(lesson.key) else []
        have_run = await cells_run(session, learner, names)
    state = next((state for state in outline if state.slug == slug), None)
    needed = progress.terms().cells.get(lesson.key, frozenset())
    return fragment(
        request,
        "progress/lesson_end.html",
        lesson=lesson,
        next=catalog.neighbours(lesson, lang)[1],
        state=state,
        done=state is not None and state.stage in pages.DONE,
        missing=[cell for cell in lesson.cells if f"{lesson.key}#{cell.name}" in needed - have_run],
    )


@router.get("/achievements", name="achievements")
async def achievements(
    request: Request,
    lang: str,
    learner: KnownLearner,
    account: CurrentAccount,
    catalog: TheCatalog,
    progress: TheProgress,
    number: PageNumber = 1,
) -> HTMLResponse:
    async with _db(request).session() as session:
        zone = await zone_of(session, learner) if learner else _UTC
        today = datetime.now(zone).date()
        figures = await progress.summary.header(session, learner)
        views = await progress.summary.achievements(session, learner)
        awarded = await history(session, learner, number)
        active = await active_days(session, learner, today - timedelta(weeks=WEEKS))
    earned, towards, secret = pages.badges(views, zone)
    levels = steps(figures.level.xp)
    return own_page(
        request,
        "progress/achievements.html",
        header=figures,
        share=pages.share_of(figures.level),
        earned=earned,
        towards=towards,
        secret=secret,
        history=awarded,
        rows=pages.rows(awarded, catalog, lang, views, zone),
        weeks=weeks(active, today),
        weekdays=i18n.weekdays(),
        levels=levels,
        curve=curve(levels),
        account=account,
    )


@router.get("/learners/{handle}", name="learner_profile")
async def profile(request: Request, lang: str, handle: str, catalog: TheCatalog, progress: TheProgress) -> HTMLResponse:
    async with _db(request).session() as session:
        account = await public_account(session, handle)
        if account is None:
            raise LearnerUnknown
        figures = await progress.summary.header(session, account.learner_id)
        views = await progress.summary.achievements(session, account.learner_id)
        outlines = {
            course.slug: await progress.summary.outline(session, account.learner_id, course.slug)
            for course in catalog.courses(lang)
            if course.slug in progress.terms().courses
        }
    return page(
        request,
        "progress/profile.html",
        name=account.name,
        handle=account.handle,
        since=account.created_at,
        header=figures,
        share=pages.share_of(figures.level),
        earned=pages.badges(views, _UTC)[0],
        lessons=pages.lessons_done(outlines, catalog, lang),
    )


def _db(request: Request) -> Database:
    db: Database = request.app.state.db
    return db
