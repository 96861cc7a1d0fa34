"""``lockstep lesson``: list the lessons there are, and check them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from app.cli.rehearsal import Rehearsal, complaints, last_lines, line_of, runnable
from app.cli.runner_at_hand import NoRunner, runner_at_hand, settled
from app.cli.speech import USAGE, give_up, read_settings, say
from app.lessons.catalog import Catalog
from app.lessons.errors import Mistake
from app.lessons.jupyter import jupyter_mistakes
from app.lessons.model import Lesson, Tag
from app.progress.rulebook import RuleBook
from app.settings import Settings
from runners.client import RunnerClient, RunnerError

app = typer.Typer(no_args_is_help=True, help="The lessons: list them, check them.")


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show every lesson. The exit status is 1 if there is none for a mistake."""
    settings = read_settings()
    catalog = _catalog(settings)
    rows = [_row(lesson, settings) for lesson in catalog.with_drafts.every() if lesson.language == lesson.languages[0]]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for row in rows:
            languages = " ".join(row["languages"])
            typer.echo(f"{row['slug']:32} {row['minutes']:>4} min  {row['status']:10}  {languages:8}  {row['title']}")
    for problem in catalog.problems:
        say(_shown(problem))
    if not rows and catalog.problems:
        raise typer.Exit(1)


@app.command()
def check(
    slug: Annotated[str | None, typer.Argument(help="One lesson; all if left out.")] = None,
    static: Annotated[bool, typer.Option("--static", help="Only read the files; run nothing.")] = False,
    jobs: Annotated[
        int, typer.Option(min=1, max=8, help="Lessons to run at a time; each is shown once it is over.")
    ] = 1,
) -> None:
    """Read every lesson in every language, then run its cells in the sandbox. The exit status is 1 after a mistake."""
    settings = read_settings()
    catalog = _catalog(settings)
    lessons, mistakes = _chosen(catalog, slug)
    keys = {lesson.key for lesson in lessons}
    mistakes += [m for lesson in catalog.every() if lesson.key in keys for m in jupyter_mistakes(lesson)]
    if slug is None:
        mistakes += _achievements(catalog)
    for mistake in mistakes:
        typer.echo(_shown(mistake))
    typer.echo(f"{_count(len(lessons), 'lesson')} read, {_count(len(mistakes), 'mistake')}.")
    failures = 0
    if not static:
        try:
            failures = asyncio.run(_rehearse_all(settings, lessons, jobs))
        except (NoRunner, RunnerError) as e:
            give_up(str(e))
        above = f", and {_count(len(mistakes), 'mistake')} above the first cell" if mistakes else ""
        typer.echo(f"{_count(failures, 'unexpected outcome')}{above}.")
    if mistakes or failures:
        raise typer.Exit(1)


def _catalog(settings: Settings) -> Catalog:
    catalog = Catalog(settings.lessons_dir, quiet=True)
    catalog.reload()
    return catalog


def _achievements(catalog: Catalog) -> list[Mistake]:
    """The mistakes in the achievements beside the courses."""
    rulebook = RuleBook(catalog, quiet=True)
    rulebook.reload()
    return list(rulebook.mistakes)


class Row(TypedDict):
    """One lesson of ``list --json``."""

    course: str
    slug: str
    title: str
    url: str
    languages: list[str]
    minutes: int
    status: str


def _row(lesson: Lesson, settings: Settings) -> Row:
    return Row(
        course=lesson.course,
        slug=lesson.slug,
        title=lesson.title,
        url=f"{settings.public_url}/{lesson.language}/courses/{lesson.key}",
        languages=list(lesson.languages),
        minutes=lesson.minutes,
        status=str(lesson.status),
    )


def _chosen(catalog: Catalog, slug: str | None) -> tuple[list[Lesson], list[Mistake]]:
    """The lessons asked for, in their first language, and the mistakes in their files."""
    lessons = [lesson for lesson in catalog.with_drafts.every() if lesson.language == lesson.languages[0]]
    if slug is None:
        return lessons, list(catalog.problems)
    mistakes = [m for m in catalog.problems if slug in (m.path.parent.name, _key(m.path))]
    chosen = [lesson for lesson in lessons if slug in (lesson.slug, lesson.key)]
    if not chosen and not mistakes:
        known = ", ".join(lesson.slug for lesson in lessons)
        give_up(f"There is no lesson '{slug}'. Lessons: {known}.", USAGE)
    return chosen, mistakes


def _key(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.parent.name}"


async def _rehearse_all(settings: Settings, lessons: list[Lesson], jobs: int) -> int:
    """Run every cell; return how many went otherwise than they should."""
    async with runner_at_hand(settings) as client:
        await settled(client)
        if jobs == 1:
            return sum([await _rehearse(client, lesson, _show) for lesson in lessons])
        return await _rehearse_together(client, lessons, jobs)


async def _rehearse_together(client: RunnerClient, lessons: list[Lesson], jobs: int) -> int:
    """So many at a time; what there is to say of each comes in one piece, in the order of the lessons."""
    turn = asyncio.Semaphore(jobs)

    async def rehearse(lesson: Lesson) -> tuple[int, str]:
        said: list[str] = []
        async with turn:
            return await _rehearse(client, lesson, said.append), "".join(said)

    rehearsals = [asyncio.create_task(rehearse(lesson)) for lesson in lessons]
    failures = 0
    try:
        for rehearsal in rehearsals:
            failed, said = await rehearsal
            failures += failed
            _show(said)
    finally:
        for rehearsal in rehearsals:
            rehearsal.cancel()
        await asyncio.gather(*rehearsals, return_exceptions=True)
    return failures


def _show(text: str) -> None:
    typer.echo(text, nl=False)


async def _rehearse(client: RunnerClient, lesson: Lesson, show: Callable[[str], object]) -> int:
    failures = 0
    show(f"\n{lesson.key}\n")
    async with Rehearsal(client, lesson) as rehearsal:
        for cell in runnable(lesson):
            show(f"  {cell.name:28} {cell.topology:8} ")
            performance = await rehearsal.perform(cell)
            show(f"{performance.outcome:12} {performance.duration_s:7.2f} s\n")
            wrong = complaints(performance)
            failures += bool(wrong)
            for sentence in wrong:
                show(f"{_near(lesson.source_path)}:{line_of(performance)}: {sentence}\n")
            if wrong:
                show("".join(f"    {line}\n" for line in last_lines(performance)))
    skipped = sum(Tag.skip_execution in cell.tags for cell in lesson.cells)
    if skipped:
        show(f"  {_count(skipped, 'cell')} tagged {Tag.skip_execution} not run\n")
    return failures


def _shown(mistake: Mistake) -> str:
    return f"{_near(mistake.path)}:{mistake.line}: {mistake.text}"


def _near(path: Path) -> str:
    """The path as one would type it here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
