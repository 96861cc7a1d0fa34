"""``lockstep lesson``: lists and checks lessons."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from app.cli.connect_runner import NoRunnerAvailable, connect_runner, wait_until_started
from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.cli.exercise_check import judge_samples
from app.cli.lesson_import import import_lessons
from app.cli.lesson_runner import (
    LessonRunner,
    cell_errors,
    error_line,
    prediction_errors,
    runnable_cells,
    traceback_tail,
)
from app.lessons.catalog import Catalog
from app.lessons.errors import LessonFileError
from app.lessons.jupyter_metadata import jupyter_metadata_errors
from app.lessons.model import Cell, CellTag, Lesson
from app.progress.achievement_catalog import AchievementCatalog
from app.settings import Settings
from runners.wire.client import RunnerClient, RunnerError

app = typer.Typer(no_args_is_help=True, help="List, check, and import lessons.")
app.command("import")(import_lessons)


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
            languages = " ".join(row["languages"])
            typer.echo(f"{row['slug']:32} {row['minutes']:>4} min  {row['status']:10}  {languages:8}  {row['title']}")
    for problem in catalog.problems:
        print_message(_format_error(problem))
    if not rows and catalog.problems:
        raise typer.Exit(1)


@app.command()
def check(
    slug: Annotated[str | None, typer.Argument(help="The lesson to check. Default: all.")] = None,
    static: Annotated[bool, typer.Option("--static", help="Read the files, but run no cells.")] = False,
    jobs: Annotated[
        int, typer.Option(min=1, max=8, help="Number of lessons to run at a time. Each is shown when it finishes.")
    ] = 1,
) -> None:
    """Read every lesson in every language, run its cells in the sandbox, and judge its exercises.

    Each solution has to pass all checks, each starter and each answer without results to fail one, and each wrong
    answer to fail with the diagnosis that it names. The exit status is 1 after an error, and 0 after warnings: a page
    shows something reasonable in place of what they are about.
    """
    settings = read_settings()
    catalog = _catalog(settings)
    lessons, mistakes = _select_lessons(catalog, slug)
    keys = {lesson.key for lesson in lessons}
    mistakes += [m for lesson in catalog.every() if lesson.key in keys for m in jupyter_metadata_errors(lesson)]
    if slug is None:
        mistakes += _achievement_errors(catalog)
    for mistake in mistakes:
        typer.echo(_format_error(mistake))
    errors = [mistake for mistake in mistakes if not mistake.warning]
    warned = f", {_pluralize(len(mistakes) - len(errors), 'warning')}" if len(errors) < len(mistakes) else ""
    typer.echo(f"{_pluralize(len(lessons), 'lesson')} read, {_pluralize(len(errors), 'error')}{warned}.")
    failures = 0
    if not static:
        try:
            failures = asyncio.run(_run_lessons(settings, lessons, jobs))
        except (NoRunnerAvailable, RunnerError) as e:
            fail(str(e))
        above = f", and {_pluralize(len(errors), 'error')} listed above the first cell" if errors else ""
        typer.echo(f"{_pluralize(failures, 'unexpected outcome')}{above}.")
    if errors or failures:
        raise typer.Exit(1)


def _catalog(settings: Settings) -> Catalog:
    catalog = Catalog(settings.lessons_dir, quiet=True)
    catalog.reload()
    return catalog


def _achievement_errors(catalog: Catalog) -> list[LessonFileError]:
    """The errors in the achievements beside the courses."""
    rulebook = AchievementCatalog(catalog, quiet=True)
    rulebook.reload()
    return list(rulebook.mistakes)


class LessonRow(TypedDict):
    """One lesson of ``list --json``."""

    course: str
    slug: str
    title: str
    url: str
    languages: list[str]
    minutes: int
    status: str
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
        status=str(lesson.status),
        exercises=[cell.name for cell in lesson.exercises],
        predictions=[prediction.name for prediction in lesson.predictions],
        quizzes=[quiz.name for quiz in lesson.quizzes],
    )


def _select_lessons(catalog: Catalog, slug: str | None) -> tuple[list[Lesson], list[LessonFileError]]:
    """The selected lessons in their first language, and the errors in their files."""
    lessons = [lesson for lesson in catalog.with_drafts.every() if lesson.language == lesson.languages[0]]
    if slug is None:
        return lessons, list(catalog.problems)
    mistakes = [m for m in catalog.problems if slug in _lesson_names(m.path, catalog.root)]
    chosen = [lesson for lesson in lessons if slug in (lesson.slug, lesson.key)]
    if not chosen and not mistakes:
        known = ", ".join(lesson.slug for lesson in lessons)
        fail(f"There is no lesson '{slug}'. Lessons: {known}.", USAGE_ERROR)
    return chosen, mistakes


def _lesson_names(path: Path, root: Path) -> tuple[str, ...]:
    """The slug and the key of the lesson that a file belongs to, also a file in a folder of the lesson."""
    parts = path.relative_to(root).parts
    return (parts[1], f"{parts[0]}/{parts[1]}") if len(parts) > 2 else ()


async def _run_lessons(settings: Settings, lessons: list[Lesson], jobs: int) -> int:
    """Run every cell; return the number of cells that failed the check."""
    async with connect_runner(settings) as client:
        await wait_until_started(client)
        if jobs == 1:
            return sum([await _run_lesson(client, lesson, _print) for lesson in lessons])
        return await _run_concurrently(client, lessons, jobs)


async def _run_concurrently(client: RunnerClient, lessons: list[Lesson], jobs: int) -> int:
    """Run ``jobs`` lessons at a time; print each lesson's report in one piece, in the order of the lessons."""
    turn = asyncio.Semaphore(jobs)

    async def rehearse(lesson: Lesson) -> tuple[int, str]:
        said: list[str] = []
        async with turn:
            return await _run_lesson(client, lesson, said.append), "".join(said)

    rehearsals = [asyncio.create_task(rehearse(lesson)) for lesson in lessons]
    failures = 0
    try:
        for runner in rehearsals:
            failed, said = await runner
            failures += failed
            _print(said)
    finally:
        for runner in rehearsals:
            runner.cancel()
        await asyncio.gather(*rehearsals, return_exceptions=True)
    return failures


def _print(text: str) -> None:
    typer.echo(text, nl=False)


async def _run_lesson(client: RunnerClient, lesson: Lesson, show: Callable[[str], object]) -> int:
    failures = 0
    show(f"\n{lesson.key}\n")
    async with LessonRunner(client) as runner:
        for cell in runnable_cells(lesson):
            show(f"  {cell.name:40} {cell.topology:8} ")
            result = await runner.run_cell(cell)
            show(f"{result.outcome:12} {result.duration_s:7.2f} s\n")
            wrong = [*cell_errors(result), *prediction_errors(lesson, result)]
            failures += bool(wrong)
            for sentence in wrong:
                show(f"{_relative_path(lesson.source_path)}:{error_line(result)}: {sentence}\n")
            if wrong:
                show("".join(f"    {line}\n" for line in traceback_tail(result.error)))
        for cell in lesson.exercises:
            failures += await _check_exercise(client, lesson, cell, show)
    skipped = sum(CellTag.skip_execution in cell.tags for cell in lesson.cells)
    if skipped:
        show(f"  {_pluralize(skipped, 'cell')} tagged {CellTag.skip_execution} skipped\n")
    return failures


async def _check_exercise(client: RunnerClient, lesson: Lesson, cell: Cell, show: Callable[[str], object]) -> int:
    """Judge the solution, the starter, and the empty and wrong answers; return how many had an unexpected verdict."""
    failures = 0
    async for one in judge_samples(client, lesson, cell):
        name = f"{cell.name}: {one.sample.name.removeprefix(f'{cell.name}--')}"
        show(f"  {name:40} {cell.topology:8} {one.judged.verdict:12} {one.duration_s:7.2f} s\n")
        failures += bool(one.errors)
        for error in one.errors:
            show(f"{_format_error(error)}\n")
            show("".join(f"    {line}\n" for line in traceback_tail(next(reversed(one.judged.errors), None))))
    return failures


def _format_error(mistake: LessonFileError) -> str:
    return f"{_relative_path(mistake.path)}:{mistake.line}: {mistake.message}"


def _relative_path(path: Path) -> str:
    """The path relative to the working directory, if it is below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _pluralize(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
