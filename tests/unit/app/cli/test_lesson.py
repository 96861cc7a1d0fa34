"""``lockstep lesson``, with a scripted supervisor."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.lesson import app
from app.lessons.catalog import Catalog
from app.settings import Settings
from tests.factories.exercises import write_exercise_lesson
from tests.factories.lesson_source import CELL, FOR_JUPYTER, FRONT_MATTER, write_lesson, write_toml
from tests.factories.scripted_supervisor import ScriptedSupervisor


@pytest.fixture
def lessons(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("data_dir", "lessons_dir", "runner_socket"):
        monkeypatch.setenv(f"LOCKSTEP_{name.upper()}", str(getattr(settings, name)))
    return settings.lessons_dir


@pytest.fixture
def answering(socket_path: Path) -> Iterator[ScriptedSupervisor]:
    """A supervisor on its own event loop, whose runs end at once."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    supervisor = ScriptedSupervisor(socket_path)
    supervisor.answer = ["said\n"]
    asyncio.run_coroutine_threadsafe(supervisor.start(), loop).result(10)
    yield supervisor
    asyncio.run_coroutine_threadsafe(supervisor.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


HEADER = FRONT_MATTER + FOR_JUPYTER


def _lockstep(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_the_list_is_json_for_programs(lessons: Path) -> None:
    write_lesson(
        lessons / "small" / "first",
        "```{code-cell} python\n:name: hello\n```\n```{code-cell} python\n:name: alone\n```\n",
        name="lesson.ko.md",
        header="title: 첫\nsummary: 요약\n",
    )
    result = _lockstep("list", "--json")

    assert result.exit_code == 0
    assert json.loads(result.stdout) == [
        {
            "course": "small",
            "slug": "first",
            "title": "The first lesson",
            "url": "/en/courses/small/first",
            "languages": ["en", "ko"],
            "minutes": 5,
            "status": "published",
            "publish_at": None,
            "exercises": [],
            "predictions": [],
            "quizzes": [],
        }
    ]


def test_the_list_names_exercises_predictions_and_quizzes(lessons: Path) -> None:
    write_exercise_lesson(lessons)
    row = next(row for row in json.loads(_lockstep("list", "--json").stdout) if row["slug"] == "one")

    assert (row["exercises"], row["quizzes"]) == (["mean"], ["what-divides"])
    assert row["predictions"] == ["which-number", "printed", "order", "choice"]


def test_the_list_says_when_a_scheduled_lesson_is_published(lessons: Path) -> None:
    scheduled = f"{HEADER}publish_at: 2999-01-01T09:00+09:00\n"
    write_lesson(lessons / "small" / "first", CELL, header=scheduled)

    assert "small " in (text := _lockstep("list").stdout)
    assert "(scheduled for 2999-01-01 00:00 UTC)" in text


def test_a_draft_that_jupyterlab_would_damage_is_a_warning(lessons: Path) -> None:
    write_lesson(lessons / "small" / "first", CELL, header=FRONT_MATTER.replace("published", "draft"))
    result = _lockstep("check", "first", "--static")

    assert result.exit_code == 0
    assert "warning: saving this file in JupyterLab would delete its front matter" in result.stdout


@pytest.mark.parametrize(("status", "warned"), [("published", True), ("draft", False)])
def test_sentences_of_the_template_are_named_when_learners_read_them(lessons: Path, status: str, warned: bool) -> None:
    summary = "Write here, in a sentence or two, what the lesson is about."
    header = HEADER.replace("published", status).replace("It teaches.", summary)
    write_lesson(lessons / "small" / "first", CELL, header=header)
    result = _lockstep("check", "first", "--static")

    assert result.exit_code == 0
    assert ("lesson.md:3: warning: learners read 'Write here, in a sentence" in result.stdout) == warned


def test_a_mistake_in_a_wrong_answer_belongs_to_its_lesson(lessons: Path) -> None:
    folder = write_exercise_lesson(lessons)
    (folder / "wrong" / "mean--x.py").write_text("x = 1\n")
    result = _lockstep("check", "--static", "one")

    assert result.exit_code == 1
    assert "wrong/mean--x.py:1: the first line must be" in result.stdout
    assert "mean--x.py" not in _lockstep("check", "--static", "first").stdout


def test_several_lessons_are_checked_at_once(lessons: Path) -> None:
    write_lesson(write_toml(lessons, "other", course="second") / "other", "#### Deep\n")
    write_lesson(write_toml(lessons, "third", course="third") / "third", "#### Deep\n")

    result = _lockstep("check", "--static", "third", "small/first", "other")
    assert "3 lessons read" in result.stdout
    assert "second/other/lesson.md:" in result.stdout
    assert "third/third/lesson.md:" in result.stdout
    unknown = _lockstep("check", "--static", "first", "thrid")
    assert unknown.exit_code == 2
    assert "There is no lesson or course 'thrid'" in unknown.stderr


def test_a_missing_folder_of_lessons_is_a_mistake_with_status_1(
    lessons: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_LESSONS_DIR", str(tmp_path / "nowhere"))
    result = _lockstep("list")

    assert result.exit_code == 1
    assert "nowhere" in result.stderr


def test_an_error_is_reported_with_its_place_and_the_status_is_1(lessons: Path) -> None:
    write_lesson(lessons / "small" / "first", "```{cod-cell}\nx\n```\n\n[x](assets/none.csv)\n", header=HEADER)
    result = _lockstep("check", "--static")

    assert result.exit_code == 1
    assert "first/lesson.md:9: unknown directive {cod-cell}" in result.stdout
    assert "first/lesson.md:13: there is no file assets/none.csv" in result.stdout
    assert "2 errors." in result.stdout


def test_a_warning_is_shown_with_its_place_and_the_status_stays_0(lessons: Path) -> None:
    write_lesson(lessons / "small" / "first", "#### Deep\n\n<b>\n", header=HEADER)
    result = _lockstep("check", "first", "--static")

    assert result.exit_code == 0, result.stdout
    assert "first/lesson.md:9: warning: a heading of level 4" in result.stdout
    assert "first/lesson.md:11: warning: raw HTML is reduced" in result.stdout
    assert "1 lesson read, 0 errors, 2 warnings." in result.stdout


def test_a_good_course_is_checked_with_status_0(lessons: Path) -> None:
    result = _lockstep("check", "first", "--static")

    assert (result.exit_code, result.stdout) == (0, "1 lesson read, 0 errors.\n")


def test_an_unknown_lesson_is_refused_with_those_there_are(lessons: Path) -> None:
    result = _lockstep("check", "second", "--static")

    assert result.exit_code == 2
    assert "There is no lesson or course 'second'. Lessons: first." in result.stderr


def test_cells_run_in_order_in_one_session_for_each_machine(lessons: Path, answering: ScriptedSupervisor) -> None:
    result = _lockstep("check")

    assert result.exit_code == 0, result.output
    runs = [answering.runs[run].request for run in answering.submitted]
    assert [(run.code, run.spec.topology) for run in runs] == [('print("hello")', "gpu:4"), ('print("alone")', "cpu")]
    assert runs[0].session != runs[1].session
    assert answering.sessions == {}, "the sessions are ended"
    assert "hello" in result.stdout
    assert "0 unexpected outcomes." in result.stdout


def test_a_lesson_that_jupyterlab_would_damage_fails_the_check(lessons: Path) -> None:
    write_lesson(lessons / "small" / "first", CELL)
    result = _lockstep("check", "--static")

    assert result.exit_code == 1
    assert "first/lesson.md:1: saving this file in JupyterLab would delete its front matter; write" in result.stdout


def test_a_cell_that_should_have_raised_fails_the_check(lessons: Path, answering: ScriptedSupervisor) -> None:
    cell = CELL.replace(":name: one", ":name: one\n:tags: [raises-exception]")
    write_lesson(lessons / "small" / "first", cell, header=FRONT_MATTER + FOR_JUPYTER)
    result = _lockstep("check", "small/first")

    assert result.exit_code == 1
    assert "first/lesson.md:13: cell 'one' ended with 'ok', but its tag raises-exception" in result.stdout
    assert "1 unexpected outcome." in result.stdout


def test_a_cell_that_prints_what_it_should_not_fails_the_check(lessons: Path, answering: ScriptedSupervisor) -> None:
    answering.answer = ["\x1b[31mloss", " 0.52\x1b[0m\n"]
    cell = CELL.replace(":name: one", ":name: one\n:expect: [loss 0.52, loss <0.5]")
    write_lesson(lessons / "small" / "first", cell, header=FRONT_MATTER + FOR_JUPYTER)
    result = _lockstep("check", "small/first")

    assert result.exit_code == 1
    assert "lesson.md:13: cell 'one' did not print 'loss <0.5'; the closest line is 'loss 0.52'" in result.stdout
    assert "did not print 'loss 0.52'" not in result.stdout
    assert "1 unexpected outcome." in result.stdout


def test_lessons_that_run_at_the_same_time_are_shown_one_after_the_other(
    lessons: Path, answering: ScriptedSupervisor
) -> None:
    write_toml(lessons, "first", "second", "third", course="small")
    cell = CELL.replace(":name: one", ":name: one\n:tags: [raises-exception]")
    for name in ("second", "third"):
        write_lesson(lessons / "small" / name, cell, header=FRONT_MATTER + FOR_JUPYTER)
    one_by_one, together = _lockstep("check"), _lockstep("check", "--jobs=3")

    assert one_by_one.exit_code == together.exit_code == 1
    assert _without_times(together.stdout) == _without_times(one_by_one.stdout)
    message = "cell 'one' ended with 'ok', but its tag raises-exception says that it raises\n"
    again = "".join(f"small/{name}  one\nsmall/{name}/lesson.md:13: {message}" for name in ("second", "third"))
    assert re.sub(r"(?m)^\S*/(?=small/)", "", together.stdout).endswith(f"\n{again}\n2 unexpected outcomes.\n")
    assert answering.sessions == {}


def _without_times(text: str) -> str:
    return re.sub(r"\d+\.\d\d s", "", text)


def test_an_error_is_reported_once_and_counted_after_the_cells(lessons: Path, answering: ScriptedSupervisor) -> None:
    write_lesson(lessons / "small" / "first", "```{code-cell} python\n:name: one\n:topology: gpu:9\n\n1\n```\n")
    result = _lockstep("check")

    assert result.exit_code == 1
    (told,) = (line for line in result.stdout.splitlines() if "too large: 'gpu:9'" in line)
    assert "first/lesson.md:9: 'topology'" in told
    assert len(told.partition("lesson.md")[2]) < 160
    assert result.stdout.endswith("0 unexpected outcomes, and 1 error listed above the first cell.\n")


def test_no_runner_is_said_in_a_sentence(lessons: Path) -> None:
    result = _lockstep("check")

    assert result.exit_code == 1
    assert "is not responding" in result.stderr


def _git(folder: Path, *arguments: str) -> None:
    own = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *own, *arguments], check=True, capture_output=True)


@pytest.fixture
def history(lessons: Path) -> Path:
    """The course in a repository with one commit."""
    write_lesson(
        lessons / "small" / "first",
        "말.\n\n```{code-cell} python\n:name: hello\n```\n```{code-cell} python\n:name: alone\n```\n",
        name="lesson.ko.md",
        header=f"title: 첫\nsummary: 요약\n{FOR_JUPYTER}",
    )
    _git(lessons, "init", "--quiet")
    _git(lessons, "add", ".")
    _git(lessons, "commit", "--quiet", "--message", "Begin")
    return lessons


def _change(lessons: Path, old: str, new: str) -> None:
    for path in (lessons / "small" / "first").glob("lesson*.md"):
        path.write_text(path.read_text().replace(old, new))


def test_the_check_names_what_learners_would_lose(history: Path) -> None:
    _change(history, ":name: hello", ":name: greet")
    gone = "lesson.md:1: warning: the cell 'hello' was published and is gone, so learners lose what they did in it"

    result = _lockstep("check", "--static", "--since", "HEAD")
    assert gone in result.stdout
    assert result.exit_code == 0
    assert gone not in _lockstep("check", "--static").stdout, "nothing was served, and no revision is named"
    _change(history, ":name: greet", ":name: greet\n:was: hello")
    assert gone not in _lockstep("check", "--static", "--since", "HEAD").stdout
    refused = _lockstep("check", "--static", "--since", "nowhere")
    assert (refused.exit_code, "Git cannot read 'nowhere'" in refused.stderr) == (2, True)


def test_the_check_compares_with_what_was_served(lessons: Path, settings: Settings) -> None:
    Catalog(lessons, quiet=True, kept=settings.last_good_courses).reload()
    (lessons / "small" / "first").rename(lessons / "small" / "start")
    toml = lessons / "small" / "course.toml"
    toml.write_text(toml.read_text().replace('"first"', '"start"'))

    gone = "course.toml:1: warning: the lesson 'first' was published and is gone"
    assert gone in _lockstep("check", "--static").stdout
    lesson = lessons / "small" / "start" / "lesson.md"
    lesson.write_text(lesson.read_text().replace("status:", "was: [first]\nstatus:"))
    assert gone not in _lockstep("check", "--static").stdout


def test_the_check_names_what_a_running_server_has_lost(lessons: Path, settings: Settings) -> None:
    served = Catalog(lessons, quiet=True, kept=settings.last_good_courses)
    served.reload()
    _change(lessons, ":name: hello", ":name: greet")
    served.reload()

    gone = "lesson.md:1: warning: the cell 'hello' was published and is gone, so learners lose what they did in it"
    assert _lockstep("check", "--static").stdout.count(gone) == 1
    assert gone in _lockstep("check", "--static", "first").stdout
    again = Catalog(lessons, quiet=True, kept=settings.last_good_courses)
    again.reload()
    assert gone in _lockstep("check", "--static").stdout, "the server was started again"
    assert [one.text.partition(",")[0] for one in again.problems] == ["the cell 'hello' was published and is gone"]

    _change(lessons, ":name: greet", ":name: greet\n:was: hello")
    assert gone not in _lockstep("check", "--static").stdout
    again.reload()
    assert list(again.problems) == []


def test_servers_forget_nothing_that_another_one_has_lost(lessons: Path, settings: Settings) -> None:
    one, two = (Catalog(lessons, quiet=True, kept=settings.last_good_courses) for _ in range(2))
    one.reload()
    _change(lessons, ":name: hello", ":name: greet")
    for server in (one, two):
        server.reload()
    _change(lessons, ":name: greet", ":name: meet")
    for server in (two, one):
        server.reload()

    said = _lockstep("check", "--static").stdout
    assert [said.count(f"the cell '{name}' was published and is gone") for name in ("hello", "greet")] == [1, 1]


@pytest.mark.parametrize("damaged", ['[[["small/first", "cell", "x"], "2026-11-28T10:00:00"]]', '[["', "{}"])
def test_a_damaged_list_of_lost_names_stops_nobody(lessons: Path, settings: Settings, damaged: str) -> None:
    settings.last_good_courses.mkdir(parents=True)
    (settings.last_good_courses / "lost-names.json").write_text(damaged)

    Catalog(lessons, quiet=True, kept=settings.last_good_courses).reload()
    assert "is gone" not in _lockstep("check", "--static").stdout


@pytest.mark.parametrize("target", ["first", "small/first", "small", "PATH", "PATH/small/first/lesson.md"])
def test_a_lesson_is_named_by_slug_course_or_path(lessons: Path, target: str) -> None:
    write_lesson(write_toml(lessons, "other", course="second") / "other", "#### Deep\n")

    result = _lockstep("check", "--static", target.replace("PATH", str(lessons)))
    everything = target == "PATH"
    assert f"{1 + everything} lesson" in result.stdout or everything
    assert ("second/other/lesson.md" in result.stdout) is everything


def test_a_report_for_programs_is_all_of_the_output(lessons: Path, answering: ScriptedSupervisor) -> None:
    result = _lockstep("check", "--format", "json")

    read = json.loads(result.stdout)
    assert [case["name"] for case in read["cases"]] == ["hello", "alone"]
    assert "small/first" in result.stderr
    assert _lockstep("check", "--static", "--format", "github").stdout.strip() == ""


def test_changed_paragraphs_are_shown_for_each_translation(history: Path) -> None:
    assert _lockstep("diff", "first").stdout == "1 translation compared, 0 changes.\n"
    lesson = history / "small" / "first" / "lesson.md"
    lesson.write_text(lesson.read_text().replace("Some prose.", "Other prose."))

    result = _lockstep("diff", "first", "--language", "ko")
    assert result.exit_code == 1
    assert "lesson.md:21: changed since the translation was written, in " in result.stdout
    assert "    - Some prose.\n    + Other prose.\n" in result.stdout
    _git(history, "commit", "--quiet", "--all", "--message", "Change")
    assert _lockstep("diff", "first").exit_code == 1
    assert _lockstep("diff", "first", "--since", "HEAD").exit_code == 0
    assert _lockstep("diff", "--language", "fr").exit_code == 2


_TRANSLATED = """\
title.en = "A course"
title.ko = "강좌"
summary.en = "All of it."
summary.ko = "전부."
outcomes.en = ["Do one thing", "Do another"]
outcomes.ko = ["하나 하기", "또 하나 하기"]

[[modules]]
slug = "only"
title.en = "The only module"
lessons = ["first"]
"""


def test_texts_of_the_course_are_compared_too_and_missing_ones_are_named(history: Path) -> None:
    course = history / "small" / "course.toml"

    def write(*changes: tuple[str, str], commit: bool = True) -> None:
        text = course.read_text() if changes else _TRANSLATED
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        course.write_text(text)
        if commit:
            _git(history, "commit", "--quiet", "--all", "--message", "Change")

    write()
    result = _lockstep("diff", "small")
    assert result.stdout.endswith(
        "course.toml:10: not translated; write title.ko beside title.en of the module 'only'\n    + The only module\n\n"
        "2 translations compared, 0 changes, 1 text not translated.\n"
    )
    assert result.exit_code == 1

    write(('"The only module"', '"The only module"\ntitle.ko = "하나뿐인 모듈"'))
    write(('"Do another"', '"Do the other"'), ('"All of it."', '"Everything."'))
    result = _lockstep("diff", "small", "--language", "ko")
    assert "course.toml:3: changed since the translation was written, in " in result.stdout
    assert "; see summary.ko\n    - All of it.\n    + Everything.\n" in result.stdout
    assert "; see outcomes.ko\n    - Do another\n    + Do the other\n" in result.stdout
    assert result.stdout.endswith("2 translations compared, 2 changes.\n")

    write(('"전부."', '"모두."'), commit=False)
    assert "2 translations compared, 1 change.\n" in _lockstep("diff", "small").stdout
    write(('"또 하나 하기"', '"나머지 하나 하기"'))
    assert _lockstep("diff", "small").exit_code == 0
    assert "2 translations compared, 2 changes.\n" in _lockstep("diff", "small", "--since", "HEAD~2").stdout

    write(("A course", "The course"))
    write(('slug = "only"', 'slug = "only'))
    result = _lockstep("diff", "small")
    assert (result.exit_code, "course.toml is not valid TOML. Run" in result.stderr) == (2, True)
    write(('slug = "only', 'slug = "only"'))
    result = _lockstep("diff", "small")
    assert "; see title.ko\n    - A course\n    + The course\n" in result.stdout, "a broken commit hides no older one"


def test_without_git_texts_of_a_course_are_compared_with_those_served(lessons: Path, settings: Settings) -> None:
    course = lessons / "small" / "course.toml"
    course.write_text(_TRANSLATED.replace("summary.en", 'title.zh = "课程"\nsummary.en'))
    assert _lockstep("diff", "small").stderr.count("there is no earlier text") == 1, "once for all languages"
    course.write_text(_TRANSLATED.replace("lessons =", 'title.ko = "모듈"\nlessons ='))
    result = _lockstep("diff", "small")
    assert (result.exit_code, "course.toml: not in Git, and nothing was served yet" in result.stderr) == (0, True)

    kept = settings.last_good_courses / "small" / "course.toml"
    kept.parent.mkdir(parents=True)
    kept.write_text(course.read_text())
    course.write_text(course.read_text().replace("All of it.", "Everything.").replace('"A course"', '"The course"'))
    course.write_text(course.read_text().replace("강좌", "그 강좌"))
    result = _lockstep("diff")
    assert "course.toml:3: changed since it was served; see summary.ko\n" in result.stdout
    assert result.stdout.endswith("1 translation compared, 1 change.\n")
