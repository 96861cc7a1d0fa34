"""``lockstep lesson``: lists and checks lessons."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from app.cli.connect_runner import NoRunnerAvailable, connect_runner, wait_until_started
from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.cli.exercise_check import judge_samples
from app.cli.lesson_cover import draw_covers
from app.cli.lesson_diff import diff_translations
from app.cli.lesson_export import export_lessons
from app.cli.lesson_import import import_lessons
from app.cli.lesson_new import new_lesson, template_texts
from app.cli.lesson_open import open_lesson
from app.cli.lesson_preview import preview_lesson
from app.cli.lesson_report import CheckedCase, CheckReport, ReportFormat, format_error
from app.cli.lesson_runner import (
    LessonRunner,
    cell_errors,
    error_line,
    prediction_errors,
    runnable_cells,
    traceback_tail,
)
from app.cli.lesson_target import belongs_to
from app.cli.published_courses import published_courses
from app.lessons.catalog import Catalog
from app.lessons.errors import LessonFileError
from app.lessons.json_schema import course_schema, front_matter_schema
from app.lessons.jupyter_metadata import jupyter_metadata_errors
from app.lessons.lost_names import lost_names, names_lost_while_served
from app.lessons.model import Cell, CellTag, Lesson, LessonStatus
from app.progress.achievement_catalog import AchievementCatalog
from app.settings import Settings
from runners.wire.client import RunnerClient, RunnerError

Show = Callable[[str], object]
"""Prints a part of the report."""

app = typer.Typer(no_args_is_help=True, help="List, check, import, and export lessons.")
app.command("new")(new_lesson)
app.command("preview")(preview_lesson)
app.command("open")(open_lesson)
app.command("import")(import_lessons)
app.command("export")(export_lessons)
app.command("diff")(diff_translations)
app.command("cover")(draw_covers)


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List every lesson. The exit status is 1 if errors leave no lesson to list."""
    settings = read_settings()
    catalog = _catalog(settings)
    rows = [
        _lesson_row(lesson, settings)
        for lesson in catalog.with_drafts.every()
        if lesson.language == lesson.languages[0]
    ]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for row in rows:
            typer.echo(_row_line(row))
    for problem in catalog.problems:
        print_message(format_error(problem))
    if not rows and catalog.problems:
        raise typer.Exit(1)


@app.command()
def check(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LESSON|COURSE|PATH]...", help="What to check, by name or by path. Default: all lessons."
        ),
    ] = None,
    static: Annotated[bool, typer.Option("--static", help="Read the files, but run no cells.")] = False,
    jobs: Annotated[
        int, typer.Option(min=1, max=8, help="Number of lessons to run at a time. Each is shown when it finishes.")
    ] = 1,
    form: Annotated[
        ReportFormat,
        typer.Option("--format", help="How to report: as text, JSON, JUnit's XML, or annotations on GitHub."),
    ] = ReportFormat.text,
    since: Annotated[
        str,
        typer.Option(metavar="REVISION", help="The Git revision that learners know. Default: what was served last."),
    ] = "",
) -> None:
    """Read every lesson in every language, run its cells in the sandbox, and judge its exercises.

    Each solution has to pass all checks, each starter and each answer without results to fail one, and each wrong
    answer to fail with the diagnosis that it names. After several lessons, the unexpected outcomes are listed
    once more. The exit status is 1 after an error, and 0 after warnings: of what a page cannot show, and of a name that
    learners' work is stored under and that is gone.
    """
    settings = read_settings()
    catalog = _catalog(settings)
    lessons, mistakes = _select_lessons(catalog, targets or [])
    keys = {lesson.key for lesson in lessons}
    chosen = [lesson for lesson in catalog.with_drafts.every() if lesson.key in keys]
    mistakes += [m for lesson in chosen for m in _jupyter_errors(lesson)]
    mistakes += template_texts([lesson for lesson in chosen if not _is_unfinished(lesson)])
    if not targets:
        mistakes += _achievement_errors(catalog)
    report = CheckReport(
        [lesson.key for lesson in lessons],
        [mistake for mistake in mistakes if not mistake.warning],
        [mistake for mistake in mistakes if mistake.warning],
    )
    with published_courses(settings, since) as published:
        lost = list(lost_names(published.with_drafts.every(), catalog.with_drafts)) if published is not None else []
    if not since:
        lost += names_lost_while_served(settings.last_good_courses, catalog.with_drafts)
    report.warnings += [
        one for one in dict.fromkeys(lost) if not targets or _belongs_to_any(catalog, one.path, targets)
    ]

    def show(text: str) -> None:
        typer.echo(text, nl=False, err=form is not ReportFormat.text)

    show("".join(f"{format_error(mistake)}\n" for mistake in (*report.mistakes, *report.warnings)))
    warned = f", {_pluralize(len(report.warnings), 'warning')}" if report.warnings else ""
    show(f"{_pluralize(len(lessons), 'lesson')} read, {_pluralize(len(report.mistakes), 'error')}{warned}.\n")
    if not static:
        try:
            report.cases += asyncio.run(_run_lessons(settings, lessons, jobs, show))
        except (NoRunnerAvailable, RunnerError) as e:
            fail(str(e))
        errors = len(report.mistakes)
        above = f", and {_pluralize(errors, 'error')} listed above the first cell" if errors else ""
        show(f"{report.failures_again()}{_pluralize(report.failures, 'unexpected outcome')}{above}.\n")
    if form is not ReportFormat.text:
        typer.echo(report.written(form))
    if report.failed:
        raise typer.Exit(1)


def _jupyter_errors(lesson: Lesson) -> list[LessonFileError]:
    """They are warnings while its author is still writing the lesson."""
    return [replace(one, warning=one.warning or _is_unfinished(lesson)) for one in jupyter_metadata_errors(lesson)]


def _is_unfinished(lesson: Lesson) -> bool:
    return lesson.status is LessonStatus.draft and not lesson.scheduled


def _catalog(settings: Settings) -> Catalog:
    catalog = Catalog(settings.lessons_dir, added=settings.added_courses_dir, quiet=True)
    catalog.reload()
    return catalog


def _achievement_errors(catalog: Catalog) -> list[LessonFileError]:
    """The errors in the achievements beside the courses."""
    rulebook = AchievementCatalog(catalog, quiet=True)
    rulebook.reload()
    return list(rulebook.mistakes)


class SchemaName(StrEnum):
    lesson = "lesson"
    course = "course"


@app.command()
def schema(
    of: Annotated[SchemaName, typer.Argument(help="The front matter of a lesson, or the file course.toml.")],
) -> None:
    """Print a JSON Schema, with which editors complete and check the front matter of lessons, and course.toml."""
    document = front_matter_schema() if of is SchemaName.lesson else course_schema()
    typer.echo(json.dumps(document, indent=2))


class LessonRow(TypedDict):
    """One lesson of ``list --json``."""

    course: str
    slug: str
    title: str
    url: str
    languages: list[str]
    minutes: int
    status: str
    publish_at: str | None
    exercises: list[str]
    predictions: list[str]
    quizzes: list[str]


def _lesson_row(lesson: Lesson, settings: Settings) -> LessonRow:
    return LessonRow(
        course=lesson.course,
        slug=lesson.slug,
        title=lesson.title,
        url=f"{settings.public_url}/{lesson.language}/courses/{lesson.key}",
        languages=list(lesson.languages),
        minutes=lesson.minutes,
        status="scheduled" if lesson.scheduled else str(lesson.status),
        publish_at=lesson.publish_at.isoformat() if lesson.publish_at is not None else None,
        exercises=[cell.name for cell in lesson.exercises],
        predictions=[prediction.name for prediction in lesson.predictions],
        quizzes=[quiz.name for quiz in lesson.quizzes],
    )


def _row_line(row: LessonRow) -> str:
    when = row["publish_at"] if row["status"] == "scheduled" else None
    status = f"scheduled for {datetime.fromisoformat(when):%Y-%m-%d %H:%M} UTC" if when else row["status"]
    languages = " ".join(row["languages"])
    return f"{row['course']:24} {row['slug']:32} {row['minutes']:>4} min  {languages:8}  {row['title']}  ({status})"


def _select_lessons(catalog: Catalog, targets: list[str]) -> tuple[list[Lesson], list[LessonFileError]]:
    """The selected lessons in their first language, and the errors in their files. Without targets, all of them."""
    lessons = [lesson for lesson in catalog.with_drafts.every() if lesson.language == lesson.languages[0]]
    if not targets:
        return lessons, list(catalog.problems)
    paths = [*(lesson.source_path for lesson in lessons), *(mistake.path for mistake in catalog.problems)]
    for target in targets:
        if not any(_belongs_to_any(catalog, path, [target]) for path in paths):
            known = ", ".join(lesson.slug for lesson in lessons)
            fail(f"There is no lesson or course '{target}'. Lessons: {known}.", USAGE_ERROR)
    return (
        [lesson for lesson in lessons if _belongs_to_any(catalog, lesson.source_path, targets)],
        [mistake for mistake in catalog.problems if _belongs_to_any(catalog, mistake.path, targets)],
    )


def _belongs_to_any(catalog: Catalog, path: Path, targets: list[str]) -> bool:
    root = catalog.root_of(path)
    return any(belongs_to(path, root, target) for target in targets)


async def _run_lessons(settings: Settings, lessons: list[Lesson], jobs: int, show: Show) -> list[CheckedCase]:
    """Run every cell, and judge every sample of the exercises."""
    async with connect_runner(settings) as client:
        await wait_until_started(client)
        if jobs == 1:
            return [case for lesson in lessons for case in await _run_lesson(client, lesson, show)]
        return await _run_concurrently(client, lessons, jobs, show)


async def _run_concurrently(client: RunnerClient, lessons: list[Lesson], jobs: int, show: Show) -> list[CheckedCase]:
    """Run ``jobs`` lessons at a time; print each lesson's report in one piece, in the order of the lessons."""
    turn = asyncio.Semaphore(jobs)

    async def rehearse(lesson: Lesson) -> tuple[list[CheckedCase], str]:
        said: list[str] = []
        async with turn:
            return await _run_lesson(client, lesson, said.append), "".join(said)

    rehearsals = [asyncio.create_task(rehearse(lesson)) for lesson in lessons]
    cases: list[CheckedCase] = []
    try:
        for runner in rehearsals:
            run, said = await runner
            cases += run
            show(said)
    finally:
        for runner in rehearsals:
            runner.cancel()
        await asyncio.gather(*rehearsals, return_exceptions=True)
    return cases


async def _run_lesson(client: RunnerClient, lesson: Lesson, show: Show) -> list[CheckedCase]:
    cases: list[CheckedCase] = []
    show(f"\n{lesson.key}\n")
    async with LessonRunner(client) as runner:
        for cell in runnable_cells(lesson):
            show(f"  {cell.name:40} {cell.topology:8} ")
            result = await runner.run_cell(cell)
            show(f"{result.outcome:12} {result.duration_s:7.2f} s\n")
            wrong = tuple(
                LessonFileError(lesson.source_path, error_line(result), sentence)
                for sentence in [*cell_errors(result), *prediction_errors(lesson, result)]
            )
            raised = traceback_tail(result.error)
            cases.append(CheckedCase(lesson.key, cell.name, result.outcome, result.duration_s, wrong, raised))
            show(cases[-1].explained())
        for cell in lesson.exercises:
            cases += await _check_exercise(client, lesson, cell, show)
    skipped = sum(CellTag.skip_execution in cell.tags for cell in lesson.cells)
    if skipped:
        show(f"  {_pluralize(skipped, 'cell')} tagged {CellTag.skip_execution} skipped\n")
    return cases


async def _check_exercise(client: RunnerClient, lesson: Lesson, cell: Cell, show: Show) -> list[CheckedCase]:
    """Judge the solution, the starter, and the empty and wrong answers."""
    cases: list[CheckedCase] = []
    async for one in judge_samples(client, lesson, cell):
        name = f"{cell.name}: {one.sample.name.removeprefix(f'{cell.name}--')}"
        show(f"  {name:40} {cell.topology:8} {one.judged.verdict:12} {one.duration_s:7.2f} s\n")
        raised = traceback_tail(next(reversed(one.judged.errors), None))
        cases.append(CheckedCase(lesson.key, name, one.judged.verdict, one.duration_s, tuple(one.errors), raised))
        show(cases[-1].explained())
    return cases


def _pluralize(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
