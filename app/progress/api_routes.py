"""A learner's own progress in the API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from app.accounts.api_access import ApiCaller, api_caller
from app.accounts.api_tokens import TokenScope
from app.i18n import use_language
from app.lessons.dependencies import WholeCatalogDep
from app.progress.history import load_entries_after
from app.progress.lesson_progress import load_lessons_after
from app.progress.models import LedgerEntry, LessonProgress
from app.progress.service import ProgressServiceDep
from app.web.access import Access
from app.web.api import (
    DEFAULT_PAGE_SIZE,
    ApiLanguage,
    ApiModel,
    Cursor,
    ListPage,
    PageSize,
    api_router,
    make_page,
    problem_responses,
    read_cursor,
)
from app.web.dependencies import DatabaseDep
from app.web.security_headers import NO_STORE

router = api_router(Access.token, "Progress")

Caller = Annotated[ApiCaller, api_caller(TokenScope.progress)]
CourseSlug = Annotated[str, Query(max_length=80, description="Count only the lessons of this course.")]
_ERRORS = problem_responses(401, 403, 422, 429)


class ProgressOut(ApiModel):
    """XP, level and streak, and how many lessons and achievements are done."""

    xp: int
    level: int
    next_level_xp: int
    """The total XP at which the next level is reached."""
    lessons_completed: int
    lessons: int
    achievements_earned: int
    achievements: int
    percent: int
    """Completed lessons, weighted by their minutes: 0 to 100."""
    streak_weeks: int
    longest_streak_weeks: int
    active_days_this_week: int


class LessonProgressOut(ApiModel):
    """Progress in a lesson that was opened."""

    lesson: str
    """`course/slug`."""
    started_at: datetime
    end_reached_at: datetime | None
    completed_at: datetime | None
    last_seen_at: datetime


class XpEntryOut(ApiModel):
    """An award of XP."""

    kind: str
    """`cell`, `lesson`, `exercise`, `check`, `quiz`, `prediction`, `module`, `course`, `achievement`, …"""
    subject: str
    """What it is for: `course/slug#cell`, `course/slug`, an achievement, …"""
    xp: int
    occurred_at: datetime


class AchievementOut(ApiModel):
    """An achievement. Hidden ones are listed once they are earned."""

    id: str
    title: str
    description: str
    xp: int
    earned_at: datetime | None
    have: int
    """Of `need`: how far the learner is."""
    need: int


class AchievementsOut(ApiModel):
    items: list[AchievementOut]


@router.get("/progress", name="api_progress", responses=problem_responses(401, 403, 404, 422, 429))
async def show_progress(
    caller: Caller,
    response: Response,
    catalog: WholeCatalogDep,
    progress: ProgressServiceDep,
    db: DatabaseDep,
    course: CourseSlug = "",
) -> ProgressOut:
    """XP, level and streak, and how much is done, in all courses or in one."""
    response.headers.update(NO_STORE)
    if course and course not in progress.terms().courses:
        catalog.course(course, "en")  # raises CourseNotFound
    async with db.session() as session:
        figures = await progress.summary.header(session, caller.account.learner_id, course or None)
    return ProgressOut(
        xp=figures.level.xp,
        level=figures.level.number,
        next_level_xp=figures.level.ends,
        lessons_completed=figures.lessons_done,
        lessons=figures.lessons,
        achievements_earned=figures.achievements_done,
        achievements=figures.achievements,
        percent=figures.percent,
        streak_weeks=figures.streak.weeks,
        longest_streak_weeks=figures.streak.longest,
        active_days_this_week=figures.streak.days,
    )


@router.get("/progress/lessons", name="api_lesson_progress", responses=_ERRORS)
async def list_lesson_progress(
    caller: Caller, response: Response, db: DatabaseDep, cursor: Cursor = "", limit: PageSize = DEFAULT_PAGE_SIZE
) -> ListPage[LessonProgressOut]:
    """The lessons that were opened, by their keys."""
    response.headers.update(NO_STORE)
    (after,) = read_cursor(cursor, 1) or ("",)
    async with db.session() as session:
        found = await load_lessons_after(session, caller.account.learner_id, after, limit + 1)
    return make_page(found, limit, _lesson_out, lambda row: (row.lesson,))


@router.get("/progress/xp", name="api_xp", responses=_ERRORS)
async def list_xp(
    caller: Caller, response: Response, db: DatabaseDep, cursor: Cursor = "", limit: PageSize = DEFAULT_PAGE_SIZE
) -> ListPage[XpEntryOut]:
    """The awards of XP, in the order of their kinds and subjects. Their sum is the total."""
    response.headers.update(NO_STORE)
    kind, subject = read_cursor(cursor, 2) or ("", "")
    async with db.session() as session:
        found = await load_entries_after(session, caller.account.learner_id, kind, subject, limit + 1)
    return make_page(found, limit, _entry_out, lambda row: (row.kind, row.subject))


@router.get("/progress/achievements", name="api_achievements", responses=_ERRORS)
async def list_achievements(
    caller: Caller, response: Response, progress: ProgressServiceDep, db: DatabaseDep, language: ApiLanguage = "en"
) -> AchievementsOut:
    """All achievements, and which are earned."""
    response.headers.update(NO_STORE)
    with use_language(language):
        async with db.session() as session:
            views = await progress.summary.achievements(session, caller.account.learner_id)
    shown = [view for view in views if view.earned_at is not None or not view.hidden]
    return AchievementsOut(
        items=[
            AchievementOut(
                id=view.id,
                title=view.title,
                description=view.description,
                xp=view.xp,
                earned_at=view.earned_at,
                have=min(view.towards.have, view.towards.need),
                need=view.towards.need,
            )
            for view in shown
        ]
    )


def _lesson_out(row: LessonProgress) -> LessonProgressOut:
    return LessonProgressOut(
        lesson=row.lesson,
        started_at=row.started_at,
        end_reached_at=row.end_reached_at,
        completed_at=row.completed_at,
        last_seen_at=row.last_seen_at,
    )


def _entry_out(entry: LedgerEntry) -> XpEntryOut:
    return XpEntryOut(kind=entry.kind, subject=entry.subject, xp=entry.xp, occurred_at=entry.occurred_at)
