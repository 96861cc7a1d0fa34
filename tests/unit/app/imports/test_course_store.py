"""Courses kept elsewhere: pinned, updated at once or not at all, and never run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from app.imports.course_store import CourseStore, resolve_source
from app.imports.report import CannotImport
from app.lessons.catalog import Catalog
from app.lessons.navigation import format_mistakes
from tests.factories.lesson_source import CELL, write_lesson, write_toml


def _git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Author", "-c", "user.email=author@example.org"]
    command = ["git", *identity, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _commit(folder: Path, words: str, course: str = "remote-course") -> str:
    write_lesson(folder / course / "one", f"{words}\n\n{CELL}")
    write_toml(folder, "one", course=course)
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message=Change")
    return _git(folder, "rev-parse", "HEAD")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote"
    folder.mkdir()
    _git(folder, "init", "--quiet")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> CourseStore:
    return CourseStore(tmp_path / "data" / "courses")


@pytest.fixture
def catalog(tmp_path: Path, store: CourseStore) -> Catalog:
    write_lesson(tmp_path / "lessons" / "own" / "one", "Own words.")
    write_toml(tmp_path / "lessons", "one", course="own")
    return Catalog(tmp_path / "lessons", added=store.root, quiet=True)


def _source(catalog: Catalog) -> str:
    catalog.reload()
    return catalog.lesson("remote-course", "one", "en").source


def test_a_course_is_served_at_its_commit_until_it_is_updated(
    remote: Path, store: CourseStore, catalog: Catalog
) -> None:
    first = _commit(remote, "First words.")
    added = store.add(resolve_source(str(remote)))
    second = _commit(remote, "Second words.")

    assert (added.course.slug, added.course.commit, added.mistakes) == ("remote-course", first, ())
    assert "First words." in _source(catalog)
    assert [course.slug for course in catalog.courses("en")] == ["own", "remote-course"]
    assert store.update(store.find("remote-course")).course.commit == second
    assert "Second words." in _source(catalog)
    assert catalog.origin("remote-course") == store.find("remote-course")
    assert catalog.origin("own") is None
    assert store.update(store.find("remote-course"), first).course.commit == first
    assert "First words." in _source(catalog)
    assert len([path for path in (store.root / ".copies").iterdir() if path.is_dir()]) == 1

    store.remove(store.find("remote-course"))
    catalog.reload()
    assert [course.slug for course in catalog.courses("en")] == ["own"]
    assert list((store.root / ".copies").iterdir()) == []


def test_a_file_that_is_only_a_pointer_of_git_lfs_is_left_out_and_named(remote: Path, store: CourseStore) -> None:
    picture = remote / "remote-course" / "one" / "assets" / "a.png"
    picture.parent.mkdir(parents=True)
    picture.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    _commit(remote, "![A picture](assets/a.png)")
    added = store.add(resolve_source(str(remote)))

    ((path, reason),) = added.skipped
    assert path == "remote-course/one/assets/a.png"
    assert reason.startswith("it is only a pointer of Git LFS, whose files are not fetched; ")
    assert ["assets/a.png" in mistake.text for mistake in added.mistakes] == [True]


def test_an_update_that_cannot_be_served_leaves_the_course_as_it_was(
    remote: Path, store: CourseStore, catalog: Catalog
) -> None:
    first = _commit(remote, "First words.")
    store.add(resolve_source(f"{remote}@{first}"))
    (remote / "remote-course" / "course.toml").write_text("title = ")
    _git(remote, "commit", "--quiet", "--all", "--message=Break")

    with pytest.raises(CannotImport, match=r"cannot be served: remote-course/course\.toml:1: this is not TOML"):
        store.update(store.find("remote-course"), "HEAD")
    assert store.find("remote-course").commit == first
    assert "First words." in _source(catalog)


def test_a_commit_that_changes_no_lesson_changes_the_pages_that_link_to_it(
    remote: Path, store: CourseStore, catalog: Catalog
) -> None:
    _commit(remote, "Words.")
    store.add(resolve_source(str(remote)))
    _source(catalog)
    before = catalog.digest
    (remote / "README").write_text("Only this.")
    _git(remote, "add", "--all")
    _git(remote, "commit", "--quiet", "--message=Explain")
    store.update(store.find("remote-course"))

    _source(catalog)
    assert catalog.digest != before


def test_a_repository_with_several_courses_asks_for_one(remote: Path, store: CourseStore) -> None:
    _commit(remote, "Words.")
    _commit(remote, "Words.", "another")

    with pytest.raises(CannotImport, match="several courses; choose one with --folder: another, remote-course"):
        store.add(resolve_source(str(remote)))
    assert store.add(resolve_source(str(remote)), folder="another", name="mine").course.slug == "mine"


def test_names_are_not_taken_twice(remote: Path, store: CourseStore) -> None:
    _commit(remote, "Words.")
    with pytest.raises(CannotImport, match="there is a course 'remote-course' already"):
        store.add(resolve_source(str(remote)), taken=frozenset({"remote-course"}))
    store.add(resolve_source(str(remote)))
    with pytest.raises(CannotImport, match="there is a course 'remote-course' already"):
        store.add(resolve_source(str(remote)))


@pytest.mark.parametrize("folder", ["../..", "/etc", "none"])
def test_a_folder_outside_the_repository_is_refused(remote: Path, store: CourseStore, folder: str) -> None:
    _commit(remote, "Words.")
    with pytest.raises(CannotImport, match="no course in the folder"):
        store.add(resolve_source(str(remote)), folder=folder, name="mine")
    assert list((store.root / ".copies").iterdir()) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("/tmp", "this is not a git repository"),
        ("https://me:secret@example.org/name", "a token or a password"),
        ("https://token@example.org/name", "a token or a password"),
        ("ssh://git:secret@example.org/name", "a token or a password"),
        ("ext::sh -c x", "not an allowed address"),
    ],
)
def test_a_source_that_is_no_repository_is_named(source: str, said: str) -> None:
    with pytest.raises(CannotImport, match=said):
        resolve_source(source)


def test_instructors_see_the_mistakes_of_an_added_course(remote: Path, store: CourseStore, catalog: Catalog) -> None:
    _commit(remote, "[a link](../nowhere/lesson.md)")
    store.add(resolve_source(str(remote)))
    catalog.reload()

    shown = format_mistakes(catalog.with_drafts, "remote-course", "one")
    assert [one.place.partition(":")[0] for one in shown] == ["remote-course/one/lesson.md"]
    assert format_mistakes(catalog.with_drafts, "own") == format_mistakes(catalog, "remote-course") == []
