"""``lockstep lesson import``: a course from notebooks, MyST Markdown or a Jupyter Book."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import typer

from app.cli.ansi_filter import plain_text
from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.imports.book import SUFFIXES, CoursePlan, plan_file, plan_folder
from app.imports.course import ImportOptions, course_slug, import_course
from app.imports.report import CannotImport, Report
from app.imports.repository import parse_address, read_repository
from app.imports.source_tree import SourceTree
from runners.wire.protocol import POSSIBLE_TOPOLOGIES, Topology, UnknownTopology


def import_lessons(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|FOLDER|GIT-URL",
            help="A notebook, a Markdown file, a folder, a book or a repository.",
        ),
    ],
    into: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The course's new folder. Default: among the courses, by its title."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the course in that folder.")] = False,
    topology: Annotated[
        str, typer.Option(help=f"The machine of lessons that name none: {POSSIBLE_TOPOLOGIES}.")
    ] = "gpu:4",
    status: Annotated[
        Literal["draft", "published"], typer.Option(help="Whether learners see the lessons at once.")
    ] = "draft",
) -> None:
    """Turn notebooks, MyST Markdown or a Jupyter Book into a course.

    Prints each change with its place in the source. A repository's address may end with @BRANCH, @TAG or @COMMIT. The
    exit status is 1 if a file was left out, or if `lockstep lesson check` would report an error.
    """
    settings = read_settings()
    report = Report()
    try:
        options = ImportOptions(str(Topology.parse(topology)), status)
    except UnknownTopology:
        fail(f"There is no machine '{topology}'. Use {POSSIBLE_TOPOLOGIES}.", USAGE_ERROR)
    try:
        with _opened(source, report) as (tree, plan):
            folder = into or settings.lessons_dir / course_slug(plan, tree)
            course = import_course(tree, plan, folder.expanduser().absolute(), report, options, replace=force)
    except CannotImport as e:
        _print(report)
        fail(plain_text(f"{source}: {e}"))
    except OSError as e:
        fail(plain_text(f"{e.filename or source} cannot be read or written: {e.strerror}."))
    _print(report)
    counts = f"{_count(course.lessons, 'lesson')} with {_count(course.cells, 'cell')}"
    typer.echo(plain_text(f"Imported {counts} into {course.folder}, with {_count(len(report.changes), 'change')}."))
    if status == "draft":
        typer.echo("Only instructors see them until each says 'status: published'.")
    if report.failures:
        raise typer.Exit(1)


@contextmanager
def _opened(source: str, report: Report) -> Iterator[tuple[SourceTree, CoursePlan]]:
    """The source's files, and the course that they become."""
    address = parse_address(source)
    if address is not None:
        with tempfile.TemporaryDirectory(prefix="lockstep-import-") as temporary:
            name = PurePosixPath(address.url.rstrip("/")).name.removesuffix(".git")
            folder = Path(temporary) / "repository"
            print_message(plain_text(f"Fetching {address}"))
            checkout = read_repository(address, folder)
            print_message(f"Commit {checkout.commit}")
            for path, reason in checkout.skipped:
                report.note(path, f"left out: {reason}")
            tree = SourceTree(folder)
            yield tree, plan_folder(tree, name.rpartition(":")[2] or "repository", report)
        return
    place = Path(source).expanduser().absolute()
    if place.is_dir():
        tree = SourceTree(place)
        yield tree, plan_folder(tree, place.name, report)
    elif not place.exists():
        raise CannotImport("there is no such file or folder; a repository's address begins with https://")
    elif place.suffix.lower() in (".zip", ".tar", ".gz", ".tgz"):
        raise CannotImport("archives are not read; unpack it, and import the folder")
    elif place.suffix.lower() not in SUFFIXES or not place.is_file():
        raise CannotImport("this is not a notebook (.ipynb) or a Markdown file (.md)")
    else:
        tree = SourceTree(place.parent)
        yield tree, plan_file(tree, PurePosixPath(place.name))


def _print(report: Report) -> None:
    for change in report.changes:
        typer.echo(plain_text(str(change)))
    for failure in [*report.warnings, *report.failures]:
        print_message(plain_text(str(failure)))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
