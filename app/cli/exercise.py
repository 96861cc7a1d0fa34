"""``lockstep exercise``: judge a file as a learner's submission would be."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from pydantic import ValidationError

from app.cli.ansi_filter import plain_text
from app.cli.connect_runner import NoRunnerAvailable, connect_runner, wait_until_started
from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.cli.lesson_runner import traceback_tail
from app.cli.printer import escape_json_controls
from app.cli.run import format_error, read_source
from app.cli.submission_runner import JudgedSubmission, judge_submission
from app.lessons.catalog import Catalog
from app.lessons.model import Cell, Lesson
from app.settings import Settings
from runners.wire.client import RunnerError

app = typer.Typer(no_args_is_help=True, help="Judge submissions for exercises.")


@app.callback()
def _about() -> None:
    """Judge submissions for exercises."""


@app.command()
def judge(
    lesson: Annotated[str, typer.Argument(metavar="COURSE/LESSON", help="The lesson. Its name alone will do.")],
    exercise: Annotated[str, typer.Argument(help="The name of the exercise's cell.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The submission, or - for standard input.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Judge a file as a learner's submission.

    Exit status: 0 passed, 1 not passed or no runner, 2 usage error.
    """
    settings = read_settings()
    code = read_source(file)
    found, cell = _find(settings, lesson, exercise)
    try:
        judged = asyncio.run(_judge(settings, found, cell, code))
    except (NoRunnerAvailable, RunnerError) as e:
        fail(str(e))
    except ValidationError as e:
        fail(format_error(e), USAGE_ERROR)
    if as_json:
        typer.echo(escape_json_controls(json.dumps(_as_json(judged), ensure_ascii=False, indent=2)))
    else:
        _print(judged)
    raise typer.Exit(0 if judged.verdict == "passed" else 1)


def _find(settings: Settings, name: str, exercise: str) -> tuple[Lesson, Cell]:
    """The lesson and the cell, or an exit with a sentence that names those there are."""
    catalog = Catalog(settings.lessons_dir, added=settings.added_courses_dir, quiet=True)
    catalog.reload()
    lessons = [lesson for lesson in catalog.with_drafts.every() if lesson.language == lesson.languages[0]]
    lesson = next((lesson for lesson in lessons if name in (lesson.key, lesson.slug)), None)
    if lesson is None:
        known = ", ".join(lesson.key for lesson in lessons)
        fail(f"There is no lesson '{name}'. Lessons: {known}.", USAGE_ERROR)
    cell = next((cell for cell in lesson.exercises if cell.name == exercise), None)
    if cell is None:
        known = ", ".join(cell.name for cell in lesson.exercises) or "none"
        fail(f"{lesson.key} has no exercise '{exercise}'. Exercises: {known}.", USAGE_ERROR)
    return lesson, cell


async def _judge(settings: Settings, lesson: Lesson, cell: Cell, code: str) -> JudgedSubmission:
    async with connect_runner(settings, 2 if cell.keras == 2 else 3) as client:
        await wait_until_started(client)
        return await judge_submission(client, lesson, cell, code)


def _as_json(judged: JudgedSubmission) -> dict[str, object]:
    checks = [
        {"name": check.name, "outcome": check.outcome, "message": message}
        for check, message in zip(judged.checks, judged.messages, strict=True)
    ]
    return {
        "passed": judged.verdict == "passed",
        "verdict": judged.verdict,
        "outcome": judged.outcome,
        "checks": checks,
    }


def _print(judged: JudgedSubmission) -> None:
    for error in judged.errors:
        for line in traceback_tail(error):
            print_message(line)
    for check, message in zip(judged.checks, judged.messages, strict=True):
        typer.echo(f"{check.outcome:12} {check.name}")
        if message:
            typer.echo(f"{'':12} {plain_text(message)}")
        if check.outcome == "failed" and check.got is not None:
            wanted = "" if check.wanted is None else f"   wanted: {plain_text(check.wanted)}"
            typer.echo(f"{'':12} got: {plain_text(check.got)}{wanted}")
        for line in check.detail.splitlines():
            print_message(f"    {plain_text(line)}")
    passed = sum(check.outcome == "passed" for check in judged.checks)
    typer.echo(f"{judged.verdict}: {passed} of {len(judged.checks)} checks passed, the code ended '{judged.outcome}'.")
