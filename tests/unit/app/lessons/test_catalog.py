"""The catalog follows its files, keeps the last good version of each, and keeps errors from affecting other lessons."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest
from structlog.testing import capture_logs

from app.lessons import lost_names
from app.lessons.catalog import Catalog
from app.lessons.document import parse_document as read_document
from app.lessons.errors import CourseNotFound, LessonNotFound, LessonUnavailable
from app.lessons.former_names import Rename, renames_of
from tests.factories.lesson_source import CELL, FRONT_MATTER, write_lesson, write_toml

KOREAN = "title: 하나\nsummary: 요약.\n"

BROKEN = "```{cod-cell}\nprint(1)\n```\n"
"""A text that is not shown."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = write_toml(tmp_path, "one", "two")
    write_lesson(folder / "one", f"Words of one.\n\n{CELL}")
    write_lesson(folder / "two", "## Deep\n\nWords of two.\n")
    return tmp_path


@pytest.fixture
def catalog(root: Path) -> Catalog:
    catalog = Catalog(root)
    catalog.reload()
    return catalog


def _problems(catalog: Catalog) -> list[str]:
    return [str(problem).removeprefix(f"{catalog.root}/course/") for problem in catalog.problems]


def test_lessons_are_numbered_through_the_course(catalog: Catalog) -> None:
    lessons = list(catalog.every())

    assert [(lesson.slug, lesson.number, lesson.total) for lesson in lessons] == [("one", 1, 2), ("two", 2, 2)]
    assert catalog.neighbours(lessons[0], "en") == (None, lessons[1])
    assert catalog.neighbours(lessons[1], "en") == (lessons[0], None)
    assert catalog.problems == ()


def test_missing_objects_have_their_own_error(catalog: Catalog) -> None:
    with pytest.raises(CourseNotFound):
        catalog.lesson("nowhere", "one", "en")
    with pytest.raises(CourseNotFound):
        catalog.course("nowhere", "en")
    with pytest.raises(LessonNotFound):
        catalog.lesson("course", "three", "en")


def test_a_lesson_without_a_translation_comes_in_english(catalog: Catalog, root: Path) -> None:
    write_lesson(root / "course" / "one", CELL.replace("print(1)\n", ""), name="lesson.ko.md", header=KOREAN)
    catalog.reload()

    korean, english = catalog.lesson("course", "one", "ko"), catalog.lesson("course", "one", "zh")
    assert catalog.problems == ()
    assert (korean.language, korean.title, korean.languages) == ("ko", "하나", ("en", "ko"))
    assert (english.language, english.languages) == ("en", ("en", "ko"))
    assert korean.cells[0].code == "print(1)"
    assert catalog.outline("course", "ko").course.title == "강좌"
    assert [entry.title for entry in catalog.outline("course", "ko").lessons] == ["하나", "The lesson"]


def test_a_mistake_leaves_the_last_good_version_up(catalog: Catalog, root: Path) -> None:
    good = catalog.lesson("course", "one", "en")
    write_lesson(root / "course" / "one", BROKEN)
    write_lesson(root / "course" / "two", "New words.\n")
    catalog.reload()

    assert catalog.lesson("course", "one", "en").blocks == good.blocks
    assert "New words." in str(catalog.lesson("course", "two", "en").blocks[0])
    assert _problems(catalog) == ["one/lesson.md:7: unknown directive {cod-cell}; did you mean 'code-cell'?"]

    write_lesson(root / "course" / "one", f"Corrected.\n\n{CELL}")
    catalog.reload()
    assert "Corrected." in str(catalog.lesson("course", "one", "en").blocks[0])
    assert catalog.problems == ()


def test_a_lesson_broken_from_the_start_is_listed_and_not_available(root: Path) -> None:
    write_lesson(root / "course" / "one", BROKEN)
    catalog = Catalog(root)
    catalog.reload()

    with pytest.raises(LessonUnavailable) as raised:
        catalog.lesson("course", "one", "en")
    assert raised.value.status == 503
    outline = catalog.outline("course", "en")
    assert [(entry.slug, entry.title, entry.lesson is None) for entry in outline.lessons] == [
        ("one", "one", True),
        ("two", "The lesson", False),
    ]
    assert len(catalog.problems) == 1


def test_a_translation_stays_as_it_was_while_the_english_lesson_has_a_mistake(catalog: Catalog, root: Path) -> None:
    folder = root / "course" / "one"
    korean = write_lesson(folder, CELL.replace("print(1)\n", ""), name="lesson.ko.md", header=KOREAN)
    catalog.reload()
    write_lesson(folder, CELL.replace("print(1)", "print("))
    catalog.reload()
    assert catalog.lesson("course", "one", "ko").cells[0].code == "print(1)"

    korean.unlink()
    catalog.reload()
    assert catalog.lesson("course", "one", "ko").language == "en"


def test_a_change_of_the_english_code_reaches_the_translation(catalog: Catalog, root: Path) -> None:
    folder = root / "course" / "one"
    write_lesson(folder, CELL.replace("print(1)\n", ""), name="lesson.ko.md", header=KOREAN)
    catalog.reload()
    write_lesson(folder, CELL.replace("print(1)", "print(2)"))
    catalog.reload()

    assert catalog.lesson("course", "one", "ko").cells[0].code == "print(2)"


def test_a_course_file_with_a_mistake_leaves_the_course_as_it_was(catalog: Catalog, root: Path) -> None:
    (root / "course" / "course.toml").write_text("title = \n")
    catalog.reload()

    assert catalog.course("course", "en").title == "The course"
    assert catalog.lesson("course", "one", "en").number == 1
    assert _problems(catalog)[0].startswith("course.toml:1: this is not TOML: Invalid value; write")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[x](../three/lesson.md)", "there is no lesson 'course/three'; use one of one, two"),
        ("[x](../../other/one/lesson.md)", "there is no lesson 'other/one'; use one of course"),
        ("[x](../two/lesson.md#shallow)", "'two' has no heading #shallow; use one of deep"),
        ("[x](#nowhere)", "'one' has no heading #nowhere; use one of cell-one"),
        ("[x](assets/none.csv)", "there is no file assets/none.csv; add it, or correct the name"),
        ("![A](assets/none.png)", "there is no file assets/none.png; add it, or correct the name"),
    ],
)
def test_a_broken_link_is_reported_but_the_lesson_is_shown(catalog: Catalog, root: Path, body: str, words: str) -> None:
    write_lesson(root / "course" / "one", f"Words\nand {body}.\n\n{CELL}")
    catalog.reload()

    assert _problems(catalog) == [f"one/lesson.md:8: {words}"]
    assert len(catalog.lesson("course", "one", "en").blocks) == 2


def test_links_that_lead_somewhere_are_fine(catalog: Catalog, root: Path) -> None:
    folder = root / "course" / "one"
    (folder / "assets").mkdir()
    (folder / "assets" / "x.png").write_bytes(b"png")
    write_lesson(folder, f"![A](assets/x.png) [x](../two/lesson.md#deep) [y](#cell-one) [z](../two/)\n\n{CELL}")
    catalog.reload()

    assert catalog.problems == ()


def test_a_required_lesson_has_to_exist(catalog: Catalog, root: Path) -> None:
    write_lesson(root / "course" / "one", CELL, header=f"{FRONT_MATTER}requires: [three]\n")
    catalog.reload()

    assert _problems(catalog) == ["one/lesson.md:6: there is no lesson 'course/three'; use one of one, two"]


def test_a_lesson_cannot_be_required_before_itself(catalog: Catalog, root: Path) -> None:
    write_lesson(root / "course" / "one", CELL, header=f"{FRONT_MATTER}requires: [one]\n")
    catalog.reload()
    assert _problems(catalog) == ["one/lesson.md:6: 'requires' names the lesson itself; remove 'one'"]

    write_lesson(root / "course" / "one", CELL, header=f"{FRONT_MATTER}requires: [two]\n")
    write_lesson(root / "course" / "two", "Words.\n", header=f"{FRONT_MATTER}requires: [one]\n")
    catalog.reload()
    circle, remedy = "'requires' goes in a circle", "remove one of these lessons from 'requires'"
    assert _problems(catalog) == [
        f"one/lesson.md:6: {circle}: one → two → one; {remedy}",
        f"two/lesson.md:6: {circle}: two → one → two; {remedy}",
    ]


def test_a_circle_of_several_lessons_is_reported_at_each_of_them(root: Path) -> None:
    write_toml(root, "one", "two", "three", "four")
    for slug, first in (("one", "two"), ("two", "three"), ("three", "one"), ("four", "one")):
        write_lesson(root / "course" / slug, "Words.\n", header=f"{FRONT_MATTER}requires: [{first}]\n")
    catalog = Catalog(root, quiet=True)
    catalog.reload()

    circles = [
        f"{way.partition(' ')[0]}/lesson.md:6: 'requires' goes in a circle: {way}; "
        "remove one of these lessons from 'requires'"
        for way in ("one → two → three → one", "two → three → one → two", "three → one → two → three")
    ]
    assert _problems(catalog) == sorted(circles)


def test_an_outline_says_what_to_read_first(catalog: Catalog, root: Path) -> None:
    write_lesson(root / "course" / "one", "Words.\n", header=f"{FRONT_MATTER}was: [first]\n")
    write_lesson(root / "course" / "two", "Words.\n", header=f"{FRONT_MATTER}requires: [first, three]\n")
    catalog.reload()

    found = catalog.outline("course", "en").requirements
    assert {slug: [lesson.slug for lesson in lessons] for slug, lessons in found.items()} == {"two": ["one"]}


def test_one_bad_slug_hides_no_other_mistake(root: Path) -> None:
    write_toml(root, "one", "two", "Bad Slug")
    write_lesson(root / "course" / "one", "#### Too deep\n")
    catalog = Catalog(root, quiet=True)
    catalog.reload()

    assert _problems(catalog) == [
        "course.toml:8: 'Bad Slug' is not a valid slug; use lowercase letters, digits, and hyphens",
        "one/lesson.md:7: warning: a heading of level 4 follows one of level 1; write ##",
    ]


def test_a_broken_link_in_a_long_course_is_compared_with_similar_names(root: Path) -> None:
    slugs = ["one", "two", *(f"lesson-{number}" for number in range(20))]
    write_toml(root, *slugs)
    for slug in slugs:
        links = "[x](../too/lesson.md) [y](../zzz/lesson.md)\n"
        write_lesson(root / "course" / slug, links if slug == "one" else "Z\n")
    catalog = Catalog(root, quiet=True)
    catalog.reload()

    assert _problems(catalog) == [
        "one/lesson.md:7: there is no lesson 'course/too'; did you mean two?",
        "one/lesson.md:7: there is no lesson 'course/zzz'; there are 22, and none has a similar name",
    ]


def test_a_folder_with_lessons_but_without_a_course_file_is_named(catalog: Catalog, root: Path) -> None:
    write_lesson(root / "other" / "first", "Words.\n")
    (root / "data").mkdir()
    catalog.reload()

    assert [str(problem) for problem in catalog.problems] == [
        f"{root}/other:1: the folder has no course.toml, so it is not a course; add one that lists its lessons"
    ]


def test_missing_and_unlisted_files_are_reported(catalog: Catalog, root: Path) -> None:
    (root / "course" / "two" / "lesson.md").unlink()
    write_lesson(root / "course" / "extra", "Words.\n")
    write_lesson(root / "course" / "one", "Words.\n", name="lesson.xx.md")
    catalog.reload()

    assert _problems(catalog) == [
        "course.toml:1: the lesson 'extra' is not in any module; add it to the lessons of one",
        "one/lesson.xx.md:1: unknown language 'xx' in the file's name; use ko, zh",
        "two/lesson.md:1: the file is missing; write it, or remove the lesson from course.toml",
    ]


def test_names_that_published_lessons_lose_are_warnings_until_they_lead_somewhere(
    catalog: Catalog, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(body: str, slug: str = "one", status: str = "published") -> list[str]:
        write_lesson(root / "course" / slug, body, header=FRONT_MATTER.replace("published", status))
        catalog.reload()
        return _problems(catalog)

    with capture_logs() as logs:
        (warning,) = save(CELL.replace("one", "first"))
    assert warning.startswith("one/lesson.md:1: warning: the cell 'one' was published and is gone, so learners lose")
    assert "write ':was: one' there, or ':was: one#one' if it is in another lesson now" in warning
    assert [entry["what"] for entry in logs if entry["event"] == "lesson_mistake"] == [
        warning.partition("warning: ")[2]
    ]
    assert save("Other words.\n\n" + CELL.replace("one", "first")) == [warning], "as long as it is lost"
    assert save(CELL.replace(":name: one", ":name: first\n:was: one")) == []
    (warning,) = save("Words.\n")
    assert "the cell 'first' was published" in warning, "it has the work that was done under its former name"
    assert save(CELL.replace(":name: one", ":name: half")) == [warning]
    assert save(CELL.replace(":name: one", ":name: half-typed")) == [warning], (
        "nobody can have worked under half a name"
    )
    monkeypatch.setattr(lost_names, "_NAMED_FOR", timedelta(0))
    assert save("More words.\n") == [], "not for ever"
    assert save(CELL, "two", "draft") == []
    assert save("Words.\n", "two", "draft") == [], "nobody has work in a draft"


def test_a_cell_moves_to_another_lesson_once_its_name_is_free_there(catalog: Catalog, root: Path) -> None:
    write_lesson(root / "course" / "two", CELL.replace(":name: one", ":name: again\n:was: one#one"))
    catalog.reload()
    assert _problems(catalog) == [
        "two/lesson.md:7: 'was' has 'one#one', which one/lesson.md:9 has; work under that name can go to one place only"
    ]
    assert list(renames_of(catalog.every())) == []

    write_lesson(root / "course" / "one", "Words.\n")
    catalog.reload()
    assert _problems(catalog) == [], "it is not lost"
    assert list(renames_of(catalog.every())) == [Rename("course/one", "course/two", "one", "again")]


def test_a_cell_that_leaves_a_lesson_as_it_is_renamed_is_not_lost(catalog: Catalog, root: Path) -> None:
    course = root / "course"
    (course / "one").rename(course / "first")
    (course / "course.toml").write_text((course / "course.toml").read_text().replace('"one"', '"first"'))
    write_lesson(course / "first", "Words.\n", header=f"{FRONT_MATTER}was: [one]\n")
    catalog.reload()
    (warning,) = _problems(catalog)
    assert warning.startswith("first/lesson.md:1: warning: the cell 'one' was published and is gone")
    assert warning.endswith("write ':was: one' there, or ':was: first#one' if it is in another lesson now")

    write_lesson(course / "two", CELL.replace(":name: one", ":name: again\n:was: first#one"))
    catalog.reload()
    assert _problems(catalog) == []
    moved = [Rename("course/first", "course/two", "one", "again"), Rename("course/one", "course/two", "one", "again")]
    assert list(renames_of(catalog.every())) == [*moved, Rename("course/one", "course/first")]


def test_a_former_name_with_its_own_lesson_takes_no_work_from_a_cell_there(catalog: Catalog, root: Path) -> None:
    write_lesson(root / "course" / "one", CELL + CELL.replace(":name: one", ":name: again\n:was: [one#one, one#past]"))
    catalog.reload()

    assert "work under that name can go to one place only" in _problems(catalog)[0]
    assert list(renames_of(catalog.every())) == [Rename("course/one", "course/one", "past", "again")]


def test_a_cell_that_moves_back_to_its_lesson_keeps_what_it_has_there(catalog: Catalog, root: Path) -> None:
    """A name that moved to itself would lose its work: of two entries under one name, only one is kept."""
    back = CELL.replace(":name: one", ":name: one\n:was: [one#one, two#again]")
    write_lesson(root / "course" / "one", back)
    catalog.reload()
    assert list(renames_of(catalog.every())) == [Rename("course/two", "course/one", "again", "one")]


def test_a_cell_moves_from_a_lesson_that_was_renamed_before(catalog: Catalog, root: Path) -> None:
    """A server that reads both changes at once has its work under the lesson's former name."""
    header = FRONT_MATTER.replace("status:", "was: [zero]\nstatus:")
    write_lesson(root / "course" / "one", CELL.replace(":name: one", ":name: late\n:was: two#late"), header=header)
    write_lesson(root / "course" / "two", CELL.replace(":name: one", ":name: again\n:was: one#one"))
    catalog.reload()
    moves = [Rename("course/one", "course/two", "one", "again"), Rename("course/zero", "course/two", "one", "again")]
    lesson = Rename("course/zero", "course/one")
    back = Rename("course/two", "course/one", "late", "late")
    assert list(renames_of(catalog.every())) == [back, *moves, lesson]

    extra = CELL.replace(":name: one", ":name: other\n:was: zero#one")
    write_lesson(root / "course" / "two", CELL.replace(":name: one", ":name: again\n:was: one#one") + "\n" + extra)
    catalog.reload()
    assert list(renames_of(catalog.every())) == [
        back,
        moves[0],
        Rename("course/zero", "course/two", "one", "other"),
        lesson,
    ], "the former name leads elsewhere"


def test_bytes_that_are_no_text_hurt_nobody_else(catalog: Catalog, root: Path) -> None:
    (root / "course" / "one" / "lesson.md").write_bytes(b"---\n\xff\n")
    catalog.reload()

    assert _problems(catalog) == ["one/lesson.md:2: the byte 0xff is not UTF-8; save the file as UTF-8"]
    assert catalog.lesson("course", "one", "en").title == "The lesson"


def test_a_failure_of_the_reader_itself_is_a_mistake_of_one_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(source: str, *rest: Any) -> object:
        if "of one" in source:
            raise KeyError("a bug")
        return read_document(source, *rest)

    monkeypatch.setattr("app.lessons.snapshot.parse_document", read)
    catalog = Catalog(root, quiet=True)
    catalog.reload()

    assert [problem.path.parent.name for problem in catalog.problems] == ["one"]
    assert catalog.lesson("course", "two", "en").title == "The lesson"


def test_an_unchanged_file_is_not_read_again(catalog: Catalog, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = []

    def read(source: str, *rest: Any) -> object:
        sources.append(source)
        return read_document(source, *rest)

    monkeypatch.setattr("app.lessons.snapshot.parse_document", read)
    catalog.reload()
    assert sources == []

    write_lesson(root / "course" / "two", "Other words.\n")
    catalog.reload()
    assert len(sources) == 1


def test_the_digest_changes_with_the_content_and_with_nothing_else(catalog: Catalog, root: Path) -> None:
    before = catalog.digest
    catalog.reload()
    assert catalog.digest == before

    write_lesson(root / "course" / "two", "Other words.\n")
    catalog.reload()
    assert catalog.digest != before


def test_a_folder_without_courses_is_an_error(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "missing"):
        catalog = Catalog(root, quiet=True)
        catalog.reload()
        assert [problem.text for problem in catalog.problems] == [
            "there is no course here; add a folder with a course.toml"
        ]


@contextmanager
def unreadable(folder: Path) -> Iterator[None]:
    """Nobody may look into the folder, and this process is not root meanwhile."""
    user = os.geteuid()
    folder.chmod(0)
    if user == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


@pytest.fixture
def open_root(root: Path) -> Iterator[Path]:
    """The folder where another user can read it: pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="lockstep-") as place:
        Path(place).chmod(0o755)
        copy = shutil.copytree(root, Path(place) / "lessons")
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield copy


def test_a_folder_that_cannot_be_read_is_named_and_the_last_lessons_stay(open_root: Path) -> None:
    catalog = Catalog(open_root, quiet=True)
    catalog.reload()
    with unreadable(open_root):
        catalog.reload()
        allow = f"the folder cannot be read: Permission denied; allow it for user {os.geteuid()}"
    assert [str(problem) for problem in catalog.problems] == [f"{open_root}:1: {allow}"]
    assert catalog.lesson("course", "two", "en")


def test_a_course_that_cannot_be_read_is_named_and_its_last_lessons_stay(open_root: Path) -> None:
    catalog = Catalog(open_root, quiet=True)
    catalog.reload()
    with unreadable(open_root / "course"):
        catalog.reload()
    denied = "the file cannot be read: Permission denied; check its permissions"
    assert [str(problem) for problem in catalog.problems] == [f"{open_root}/course/course.toml:1: {denied}"]
    assert catalog.lesson("course", "two", "en")


def test_a_folder_of_the_system_is_no_course(open_root: Path) -> None:
    (open_root / "lost+found").mkdir()
    catalog = Catalog(open_root, quiet=True)
    with unreadable(open_root / "lost+found"):
        catalog.reload()
    assert catalog.problems == ()


async def test_a_changed_file_is_noticed(catalog: Catalog, root: Path) -> None:
    watching = asyncio.create_task(catalog.watch())
    try:
        for look in range(300):
            if "Noticed." in str(catalog.lesson("course", "two", "en").blocks[0]):
                break
            if look % 20 == 0:  # again: it may not watch yet
                write_lesson(root / "course" / "two", "Noticed.\n")
            await asyncio.sleep(0.1)
        else:
            pytest.fail("it was not noticed")
    finally:
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching


class Later(datetime):
    """The clock of an hour later."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + timedelta(hours=1)


async def test_a_scheduled_lesson_appears_when_its_time_has_come(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    write_lesson(root / "course" / "two", "Words.\n", header=f"{FRONT_MATTER}publish_at: {soon.isoformat()}\n")
    catalog = Catalog(root, quiet=True)
    catalog.reload()
    assert catalog.hidden == {"course/two"}
    for module in ("catalog", "snapshot"):
        monkeypatch.setattr(f"app.lessons.{module}.datetime", Later)
    watching = asyncio.create_task(catalog.watch())
    try:
        async with asyncio.timeout(60):
            while catalog.hidden:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert [lesson.total for lesson in catalog.every()] == [2, 2]
    finally:
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
