"""``lockstep course``: courses that are kept elsewhere, in git repositories."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.ansi_filter import plain_text
from app.cli.console import fail, print_message, read_settings
from app.imports.course_store import CourseCopy, CourseStore, resolve_source
from app.imports.report import CannotImport
from app.imports.repository import Address, check_revision
from app.lessons.catalog import Catalog
from app.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Serve courses that are kept in git repositories elsewhere.")
_Name = Annotated[str, typer.Argument(help="The name of an added course.")]


@app.command()
def add(
    source: Annotated[str, typer.Argument(metavar="PATH|GIT-URL[@COMMIT]", help="A repository; a branch or tag, too.")],
    name: Annotated[str, typer.Option(help="The course's name in addresses. Default: its folder's.")] = "",
    folder: Annotated[str, typer.Option(help="The course's folder, if the repository has several.")] = "",
) -> None:
    """Copy one commit of a course into the data folder, and serve it. The server notices at once."""
    settings = read_settings()
    try:
        own = Catalog(settings.lessons_dir, quiet=True)
        own.reload()
        taken = frozenset(own.with_drafts.snapshot.courses)
        _print(_store(settings).add(resolve_source(source), name=name, folder=folder, taken=taken), "Added")
    except CannotImport as e:
        fail(plain_text(f"{source}: {e}"))
    except OSError as e:
        fail(f"{_store(settings).root} cannot be written: {e.strerror}.")


@app.command()
def update(
    name: _Name,
    revision: Annotated[
        str | None,
        typer.Option("--to", metavar="COMMIT", help="Another branch, tag or commit, also for later updates."),
    ] = None,
) -> None:
    """Serve a course's newest commit, or another one. After an error, what was served stays."""
    settings = read_settings()
    try:
        store = _store(settings)
        _print(store.update(store.find(name), check_revision(revision) if revision else None), "Updated")
    except CannotImport as e:
        fail(plain_text(f"{name}: {e}"))
    except OSError as e:
        fail(f"{_store(settings).root} cannot be written: {e.strerror}.")


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the courses that are kept elsewhere, and the commits that are served."""
    courses = list(_store(read_settings()).courses())
    if as_json:
        typer.echo(json.dumps([asdict(course) for course in courses], ensure_ascii=False, indent=2))
        return
    for course in courses:
        typer.echo(plain_text(f"{course.slug:32} {course.commit[:12]}  {Address(course.url, course.revision)}"))


@app.command()
def remove(name: _Name) -> None:
    """Stop serving a course, and delete its copy. Runs and comments stay in the database."""
    store = _store(read_settings())
    try:
        store.remove(store.find(name))
    except CannotImport as e:
        fail(plain_text(f"{name}: {e}"))
    except OSError as e:
        fail(f"{store.root} cannot be written: {e.strerror}.")
    typer.echo(f"Removed {name}.")


def _store(settings: Settings) -> CourseStore:
    return CourseStore(settings.added_courses_dir)


def _print(copy: CourseCopy, verb: str) -> None:
    for path, reason in copy.skipped:
        print_message(plain_text(f"{path}: left out: {reason}"))
    for mistake in copy.mistakes:
        print_message(plain_text(f"{mistake.path.name}:{mistake.line}: {mistake.text}"))
    typer.echo(f"{verb} {copy.course.slug} at commit {copy.course.commit}.")
