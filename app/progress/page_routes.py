"""Pages and fragments of progress: the learner's own, and public profiles."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse

from app import i18n
from app.accounts.dependencies import OptionalAccount, OptionalLearnerId
from app.accounts.service import LearnerNotFound, find_by_handle
from app.lessons.dependencies import CatalogDep
from app.lessons.url_paths import LESSON_PATH
from app.progress import page_views
from app.progress.activity_calendar import WEEKS, calendar_weeks
from app.progress.history import find_cells_run, find_done_tasks, load_active_days, load_history
from app.progress.levels import level_steps
from app.progress.page_piece import header_context
from app.progress.service import ProgressServiceDep
from app.progress.timezones import learner_timezone
from app.web.access import Access
from app.web.dependencies import DatabaseDep
from app.web.languages import LANGUAGE_PREFIX
from app.web.rendering import render_fragment, render_page, render_private_page

router = APIRouter(prefix=LANGUAGE_PREFIX)

_MAX_PAGES = 10_000
CourseSlug = Annotated[str, Query(max_length=80)]
LedgerCursor = Annotated[str, Query(pattern=r"^[0-9]{0,16}$")]
PageNumber = Annotated[int, Query(alias="page", ge=1, le=_MAX_PAGES)]
_UTC = ZoneInfo("UTC")


@router.get("/progress", name="progress_header", tags=[Access.learner])
async def show_header(
    request: Request,
    lang: str,
    learner: OptionalLearnerId,
    account: OptionalAccount,
    catalog: CatalogDep,
    progress: ProgressServiceDep,
    db: DatabaseDep,
    course: CourseSlug = "",
) -> HTMLResponse:
    if course and course not in progress.terms().courses:
        catalog.course(course, lang)  # raises CourseNotFound, unless an instructor asks and it has only drafts
        course = ""
    async with db.session() as session:
        figures = await progress.summary.header(session, learner, course or None)
        states = await progress.summary.outline(session, learner, course) if course else ()
    context = header_context(figures, learner, account, course, states)
    return render_fragment(request, "progress/header.html", **context)


@router.get("/progress/awards", name="progress_awards", tags=[Access.learner])
async def show_awards(
    request: Request,
    lang: str,
    learner: OptionalLearnerId,
    progress: ProgressServiceDep,
    db: DatabaseDep,
    since: LedgerCursor = "",
) -> HTMLResponse:
    async with db.session() as session:
        news = await progress.summary.news(session, learner, since)
    return render_fragment(
        request, "progress/awards.html", cards=page_views.award_cards(news), cursor=news.cursor, xp=news.xp
    )


@router.get(f"{LESSON_PATH}/end", name="lesson_end", tags=[Access.learner])
async def show_lesson_end(
    request: Request,
    lang: str,
    course: str,
    slug: str,
    learner: OptionalLearnerId,
    catalog: CatalogDep,
    progress: ProgressServiceDep,
    db: DatabaseDep,
) -> HTMLResponse:
    lesson = catalog.lesson(course, slug, lang)
    names = [f"{lesson.key}#{cell.name}" for cell in lesson.cells]
    async with db.session() as session:
        outline = await progress.summary.outline(session, learner, course) if progress.counts(lesson.key) else []
        have_run = await find_cells_run(session, learner, names)
        tasks_done = await find_done_tasks(session, learner, progress.terms().tasks.get(lesson.key, ()))
    state = next((state for state in outline if state.slug == slug), None)
    needed = progress.terms().cells.get(lesson.key, frozenset())
    return render_fragment(
        request,
        "progress/lesson_end.html",
        lesson=lesson,
        next=catalog.neighbours(lesson, lang)[1],
        state=state,
        done=state is not None and state.stage in page_views.DONE_STAGES,
        tallies=page_views.task_tallies(lesson, tasks_done),
        missing=[cell for cell in lesson.cells if f"{lesson.key}#{cell.name}" in needed - have_run],
    )


@router.get("/achievements", name="achievements", tags=[Access.learner])
async def show_achievements(
    request: Request,
    lang: str,
    learner: OptionalLearnerId,
    account: OptionalAccount,
    catalog: CatalogDep,
    progress: ProgressServiceDep,
    db: DatabaseDep,
    number: PageNumber = 1,
) -> HTMLResponse:
    async with db.session() as session:
        zone = await learner_timezone(session, learner) if learner else _UTC
        today = datetime.now(zone).date()
        figures = await progress.summary.header(session, learner)
        views = await progress.summary.achievements(session, learner)
        awarded = await load_history(session, learner, number)
        active = await load_active_days(session, learner, today - timedelta(weeks=WEEKS))
    earned, towards, secret = page_views.group_badges(views, zone)
    return render_private_page(
        request,
        "progress/achievements.html",
        header=figures,
        share=page_views.level_percent(figures.level),
        earned=earned,
        towards=towards,
        secret=secret,
        history=awarded,
        rows=page_views.history_rows(awarded, catalog, lang, views, zone),
        weeks=calendar_weeks(active, today),
        weekdays=i18n.weekdays(),
        levels=level_steps(figures.level.xp),
        account=account,
    )


@router.get("/learners/{handle}", name="learner_profile", tags=[Access.public])
async def show_profile(
    request: Request, lang: str, handle: str, catalog: CatalogDep, progress: ProgressServiceDep, db: DatabaseDep
) -> HTMLResponse:
    async with db.session() as session:
        account = await find_by_handle(session, handle)
        if account is None or not account.public_profile:
            raise LearnerNotFound
        figures = await progress.summary.header(session, account.learner_id)
        views = await progress.summary.achievements(session, account.learner_id)
        outlines = {
            course.slug: await progress.summary.outline(session, account.learner_id, course.slug)
            for course in catalog.courses(lang)
            if course.slug in progress.terms().courses
        }
    return render_page(
        request,
        "progress/profile.html",
        name=account.name,
        handle=account.handle,
        since=account.created_at,
        header=figures,
        share=page_views.level_percent(figures.level),
        earned=page_views.group_badges(views, _UTC)[0],
        lessons=page_views.completed_lessons(outlines, catalog, lang),
    )
