"""Courses that are kept elsewhere: each is one commit of a git repository, copied into the data folder to be served.

::

    courses/my-course             a link to the copy that is served; replacing it is the update
    courses/.copies/my-course-…/  a copy: source.json, which says where it comes from, and the files of one commit

Nothing here is edited: what learners see is what the commit says.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from app.imports.report import CannotImport
from app.imports.repository import Address, Checkout, check_revision, parse_address, read_repository
from app.imports.source import slug
from app.lessons.added_courses import SOURCE_FILE, AddedCourse, format_source, read_source
from app.lessons.errors import LessonFileError
from app.lessons.front_matter import MAX_SLUG_LENGTH, SLUG_PATTERN
from app.lessons.snapshot import Snapshot, load_snapshot

_MAX_DEPTH = 4
"""How many folders down in a repository a course may be."""


@dataclass(slots=True)
class CourseCopy:
    """The result of an addition or an update."""

    course: AddedCourse
    skipped: list[tuple[str, str]] = field(default_factory=list)
    mistakes: tuple[LessonFileError, ...] = ()


def resolve_source(text: str) -> Address:
    """The repository that an address or a path names.

    Raises:
        CannotImport: it names none.
    """
    address = parse_address(text)
    if address is not None and re.match(r"https://[^/]*@|\w+://[^/@]*:[^/@]*@", address.url):
        raise CannotImport(
            "the address contains a name, a token or a password, which would be stored; use one with a key for SSH"
        )
    if address is not None:
        return address
    path, revision = Path(text).expanduser().absolute(), ""
    if not path.exists() and "@" in text:
        before, _, revision = text.rpartition("@")
        path = Path(before).expanduser().absolute()
    if not ((path / ".git").exists() or (path / "HEAD").is_file()):
        raise CannotImport("this is not a git repository; commit the course to one, because a course is kept by commit")
    return Address(path.resolve().as_uri(), check_revision(revision) if revision else "")


class CourseStore:
    """The folder of these courses."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def courses(self) -> Iterator[AddedCourse]:
        """Every course, by name."""
        for link in sorted(self.root.glob("[!.]*")):
            if (course := read_source(link)) is not None:
                yield course

    def find(self, name: str) -> AddedCourse:
        """The course with this name.

        Raises:
            CannotImport: there is none.
        """
        found = next((course for course in self.courses() if course.slug == name), None)
        if found is None:
            raise CannotImport(f"there is no added course '{name}'; lockstep course list shows them")
        return found

    def add(
        self, address: Address, *, name: str = "", folder: str = "", taken: frozenset[str] = frozenset()
    ) -> CourseCopy:
        """Copy a course and serve it. ``taken`` are names that it cannot have.

        Raises:
            CannotImport: the repository cannot be read, has no course, or its name is taken.
        """
        wanted = AddedCourse(name, address.url, address.revision, folder, "")
        return self._copy(wanted, taken | {course.slug for course in self.courses()})

    def update(self, course: AddedCourse, revision: str | None = None) -> CourseCopy:
        """Copy a course's newest commit, or another revision, and serve that.

        Raises:
            CannotImport: it cannot be read. What was served stays.
        """
        wanted = AddedCourse(
            course.slug, course.url, course.revision if revision is None else revision, course.folder, ""
        )
        return self._copy(wanted, frozenset())

    def remove(self, course: AddedCourse) -> None:
        """Stop serving a course, and delete the copy. Runs and comments stay in the database."""
        with self._locked(fcntl.LOCK_EX):
            (self.root / course.slug).unlink(missing_ok=True)
            self._delete_copies(course.slug, keep=None)

    @contextmanager
    def reading(self) -> Iterator[list[tuple[AddedCourse, Path]]]:
        """The courses, each with the folder of its copy. No copy is replaced or deleted before the block ends."""
        if not self.root.is_dir():
            yield []
            return
        with self._locked(fcntl.LOCK_SH):
            yield [(course, (self.root / course.slug).resolve().parent) for course in self.courses()]

    def put(self, course: AddedCourse, copy: Path) -> None:
        """Serve a copy that a backup has brought back. It is moved into the store, with the file about its source."""
        copies = self.root / ".copies"
        copies.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{course.slug}-", dir=copies))
        made.chmod(0o755)
        try:
            shutil.move(copy / course.slug, made / course.slug)
            self._serve(course, made)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise

    def _copy(self, wanted: AddedCourse, taken: frozenset[str]) -> CourseCopy:
        copies = self.root / ".copies"
        copies.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=copies) as temporary:
            address = Address(wanted.url, wanted.revision)
            repository = Path(temporary) / "repository"
            checkout = read_repository(address, repository)
            folder = wanted.folder or _course_folder(repository)
            name = wanted.slug or _name(address, folder)
            if not SLUG_PATTERN.fullmatch(name) or len(name) > MAX_SLUG_LENGTH:
                raise CannotImport(f"'{name[:60]}' cannot name a course; choose a name with --name")
            if name in taken:
                raise CannotImport(f"there is a course '{name}' already; update it, or choose another name with --name")
            source = repository / folder
            if not (source / "course.toml").is_file() or not source.resolve().is_relative_to(repository.resolve()):
                raise CannotImport(f"the repository has no course in the folder '{folder}'")
            made = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=copies))
            made.chmod(0o755)
            try:
                source.rename(made / name)
                mistakes = _checked(made, name)
                course = AddedCourse(name, wanted.url, wanted.revision, folder, checkout.commit)
                self._serve(course, made)
            except BaseException:
                shutil.rmtree(made, ignore_errors=True)
                raise
            return CourseCopy(course, _skipped_in(checkout, folder), mistakes)

    def _serve(self, course: AddedCourse, made: Path) -> None:
        """Replace the link at once: a reader sees the old copy or the new one, and where that one comes from."""
        (made / SOURCE_FILE).write_bytes(format_source(course))
        (made / SOURCE_FILE).chmod(0o644)
        link = made / "link"
        link.symlink_to(os.path.relpath(made / course.slug, self.root))
        with self._locked(fcntl.LOCK_EX):
            link.replace(self.root / course.slug)
            self._delete_copies(course.slug, keep=made)

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Wait for backups, which read the copies, or for what replaces them."""
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, how)
            yield
        finally:
            os.close(folder)

    def _delete_copies(self, name: str, *, keep: Path | None) -> None:
        for copy in (self.root / ".copies").glob(f"{name}-*"):
            if copy != keep and (copy / name).is_dir():
                shutil.rmtree(copy, ignore_errors=True)


def _course_folder(repository: Path) -> str:
    """The folder of the only course in a repository."""
    found = sorted(path.parent.relative_to(repository).as_posix() for path in repository.rglob("course.toml"))
    found = [folder for folder in found if folder.count("/") < _MAX_DEPTH]
    if not found:
        raise CannotImport(
            "the repository has no course.toml; turn notebooks into a course with lockstep lesson import"
        )
    if len(found) > 1:
        raise CannotImport(f"the repository has several courses; choose one with --folder: {', '.join(found[:20])}")
    return found[0]


def _name(address: Address, folder: str) -> str:
    last = PurePosixPath(folder).name if folder != "." else PurePosixPath(address.url.replace(":", "/")).name
    return slug(last.removesuffix(".git"))


def _checked(made: Path, name: str) -> tuple[LessonFileError, ...]:
    """The mistakes in a copy, if a course can be served nevertheless."""
    snapshot = load_snapshot(made, Snapshot())
    readable = any(shown for (course, _), shown in snapshot.lessons.items() if course == name)
    if name not in snapshot.courses or not readable:
        said = "; ".join(f"{m.path.relative_to(made)}:{m.line}: {m.text}" for m in snapshot.mistakes[:3])
        raise CannotImport(f"the course cannot be served: {said or 'it has no lesson'}")
    return snapshot.mistakes


def _skipped_in(checkout: Checkout, folder: str) -> list[tuple[str, str]]:
    """What was left out of the course's folder."""
    return [(path, why) for path, why in checkout.skipped if folder == "." or path.startswith(f"{folder}/")]
