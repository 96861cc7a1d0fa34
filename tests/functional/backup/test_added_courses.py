"""Courses from elsewhere in a backup: they come back at their commits, without their repositories."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.backup.archive import BackupError
from app.backup.service import restore_backup, verify_backup
from app.db import Database
from app.imports.course_store import CourseStore
from app.lessons.added_courses import AddedCourse
from app.lessons.catalog import Catalog
from app.settings import Settings
from tests.factories.backups import archive_of, changed, files_in, options, silent
from tests.factories.cli_process import lockstep
from tests.factories.lesson_source import write_lesson, write_toml

NEW, OLD = "1" * 40, "2" * 40


def add_course(site: Settings, tmp_path: Path, commit: str, name: str = "kept-elsewhere") -> AddedCourse:
    """Serve a course as if its repository had been copied at a commit."""
    write_lesson(tmp_path / commit / name / "one", f"Words of {commit[:1]}.")
    write_toml(tmp_path / commit, "one", course=name)
    course = AddedCourse(name, "https://git.example.org/owner/name", "main", "courses/it", commit)
    CourseStore(site.added_courses_dir).put(course, tmp_path / commit)
    return course


def words_of(site: Settings, name: str = "kept-elsewhere") -> str:
    catalog = Catalog(site.lessons_dir, added=site.added_courses_dir, quiet=True)
    catalog.reload()
    return catalog.lesson(name, "one", "en").source


@pytest.mark.long
async def test_an_added_course_is_served_again_on_a_new_machine(
    site: Settings, db: Database, new_site: Settings, tmp_path: Path
) -> None:
    course = add_course(site, tmp_path, NEW)
    file = tmp_path / "site.tar.gz"

    saved = await lockstep("backup", str(file), **options(site))
    assert saved.status == 0, saved.err
    assert " of lessons and 1 added course to " in saved.err
    restored = await lockstep("restore", str(file), **options(new_site))

    assert restored.status == 0, restored.err
    assert f"The course kept-elsewhere is served at commit {NEW}.\n" in restored.err
    assert list(CourseStore(new_site.added_courses_dir).courses()) == [course]
    assert files_in(new_site.added_courses_dir / "kept-elsewhere") == files_in(
        site.added_courses_dir / "kept-elsewhere"
    )
    assert "Words of 1." in words_of(new_site)
    lesson = new_site.added_courses_dir / "kept-elsewhere" / "one" / "lesson.md"
    assert lesson.stat().st_mode & 0o777 == 0o644


async def test_a_course_at_another_commit_goes_back_and_others_stay(
    site: Settings, db: Database, tmp_path: Path
) -> None:
    add_course(site, tmp_path, OLD)
    file = tmp_path / "site.tar.gz"
    file.write_bytes((await archive_of(site)).getvalue())
    await db.close()
    add_course(site, tmp_path, NEW)
    add_course(site, tmp_path, "3" * 40, "added-since")

    restored = await lockstep("restore", "--replace", str(file), **options(site))

    assert restored.status == 0, restored.err
    assert f"lockstep course update kept-elsewhere --to {NEW}\n" in restored.err
    assert "Words of 2." in words_of(site)
    assert "Words of 3." in words_of(site, "added-since")
    again = await lockstep("restore", "--replace", str(file), **options(site))
    assert "kept-elsewhere" not in again.err


async def test_a_folder_of_somebody_else_is_named_with_the_command_that_adds_the_course(
    site: Settings, db: Database, new_site: Settings, tmp_path: Path
) -> None:
    add_course(site, tmp_path, NEW)
    file = tmp_path / "site.tar.gz"
    file.write_bytes((await archive_of(site)).getvalue())
    new_site.data_dir.mkdir(parents=True)
    new_site.added_courses_dir.write_text("in the way")

    restored = await lockstep("restore", str(file), **options(new_site))

    assert restored.status == 0, restored.err
    assert "The course kept-elsewhere could not be restored: Not a directory." in restored.err
    command = f"lockstep course add https://git.example.org/owner/name@{NEW} --name kept-elsewhere --folder courses/it"
    assert command in restored.err
    assert (new_site.data_dir / "lockstep.db").exists()


def _without_source(name: str, data: bytes) -> bytes | None:
    return None if name.endswith("source.json") else data


def _without_course_file(name: str, data: bytes) -> bytes | None:
    return None if name.startswith("courses/") and name.endswith("course.toml") else data


def _of_another_name(name: str, data: bytes) -> bytes:
    return json.dumps(json.loads(data) | {"slug": "other"}).encode() if name.endswith("source.json") else data


def _with_an_escape(name: str, data: bytes) -> bytes:
    return json.dumps(json.loads(data) | {"url": "\x1b]0;x\x07"}).encode() if name.endswith("source.json") else data


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_without_source, "it has only a part of an added course"),
        (_without_course_file, "it has only a part of an added course"),
        (_of_another_name, "it does not say where the course kept-elsewhere comes from"),
        (_with_an_escape, "it does not say where the course kept-elsewhere comes from"),
    ],
)
async def test_a_damaged_course_is_noticed_before_anything_changes(
    site: Settings,
    db: Database,
    new_site: Settings,
    tmp_path: Path,
    change: Callable[[str, bytes], bytes | None],
    sentence: str,
) -> None:
    add_course(site, tmp_path, NEW)
    archive = changed(await archive_of(site), change)

    with pytest.raises(BackupError, match=sentence):
        await restore_backup(new_site, archive, silent)
    assert not new_site.data_dir.exists()


async def test_an_update_waits_until_a_backup_has_read_the_copy(site: Settings, db: Database, tmp_path: Path) -> None:
    add_course(site, tmp_path, OLD)
    store = CourseStore(site.added_courses_dir)
    update = threading.Thread(target=add_course, args=(site, tmp_path, NEW))
    with store.reading() as ((course, copy),):
        update.start()
        while not any((path / "link").is_symlink() for path in (store.root / ".copies").iterdir()):
            assert update.is_alive()
        assert (course.commit, (copy / "kept-elsewhere" / "course.toml").is_file()) == (OLD, True)
        assert "Words of 2." in words_of(site)
    update.join()

    assert "Words of 1." in words_of(site)
    assert [course.commit for course in (await verify_backup(await archive_of(site))).courses] == [NEW]
