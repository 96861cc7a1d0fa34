"""``lockstep lesson new``: a lesson to start from, which passes ``lockstep lesson check`` as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from app.cli.console import USAGE_ERROR, fail, read_settings
from app.cli.lesson_report import shown_path
from app.lessons.course_file import parse_course
from app.lessons.document import LessonDecodeError, decode_source
from app.lessons.errors import LessonFileError
from app.lessons.front_matter import MAX_SLUG_LENGTH, SLUG_PATTERN
from app.lessons.jupyter_metadata import JUPYTEXT
from app.lessons.model import Lesson
from app.settings import Settings
from runners.wire.jupyter_kernels import JupyterKernel
from runners.wire.protocol import Topology

_TOPOLOGY = "gpu:4"
_MAX_TITLE = 200
_SLUG_RULE = f"use lowercase letters, digits, and hyphens, at most {MAX_SLUG_LENGTH} characters, as in first-steps"

_COURSE_SUMMARY = "Write here what this course is about."
_LESSON_SUMMARY = "Write here, in a sentence or two, what the lesson is about."
_FIRST_SENTENCE = "Write here what readers will be able to do after this lesson."
_TEXT = (
    f"\n{_FIRST_SENTENCE}"
    + """ Then show it:

```{code-cell} ipython3
:name: replicas
:caption: How many replicas?
:expect: 'Replicas: 4'

import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
print("Replicas:", strategy.num_replicas_in_sync)
```

Explain what they saw, and let them try it:

```{exercise} The global batch size
:label: global-batch

Each of `replicas` replicas gets `per_replica` examples per step. Return how many examples all of them get together.
```

```{code-cell} ipython3
:name: global-batch
:caption: 'Your turn: the global batch size'
:tags: [exercise]
:xp: 10

def global_batch_size(per_replica, replicas):
    ### BEGIN SOLUTION
    #: # How many examples do all replicas get together?
    #: return per_replica
    return per_replica * replicas
    ### END SOLUTION


print(global_batch_size(32, 4), "should be 128")
```

```{solution} global-batch
Every replica gets a batch of its own, so the global batch is the sum of all of them.
```
"""
)
_CHECKS = '''"""Checks of the exercise. They run in the judge, on inputs that no learner has seen."""

from runners.checks import Work, check, equal


@check(
    "global-batch",
    "The batches of all replicas are counted",
    xp=10,
    hints=["Two replicas with 32 examples each get 64 examples together."],
)
def counts_all_replicas(work: Work) -> None:
    per_replica, replicas = (int(number) for number in work.rng.integers(3, 100, size=2))
    equal(
        work.call("global_batch_size", per_replica, replicas),
        work.reference("global_batch_size", per_replica, replicas),
        mistakes={
            "This is the batch of one replica.": per_replica,
            "Add up the examples of the replicas, not the number of replicas.": per_replica + replicas,
        },
    )
'''
_WRONG_NAME = "global-batch--one-replica.py"
_WRONG = """# diagnosis: the batch of one replica
def global_batch_size(per_replica, replicas):
    return per_replica
"""


def new_lesson(
    slug: Annotated[str, typer.Argument(metavar="SLUG", help="The name of the lesson's folder, and in its address.")],
    course: Annotated[
        str, typer.Option(help="The course's folder; a new name makes a new course. Default: the only course.")
    ] = "",
    title: Annotated[str, typer.Option(help="The title. Default: the words of the slug.")] = "",
) -> None:
    """Write a new lesson with a cell and an exercise to start from, and add it to the end of a course.

    It is a draft, which only instructors see, and passes `lockstep lesson check` as it is.
    """
    settings = read_settings()
    for name in (slug, course or "course"):
        if not SLUG_PATTERN.fullmatch(name) or len(name) > MAX_SLUG_LENGTH:
            fail(f"'{name[:80]}' cannot name a folder of lessons: {_SLUG_RULE}.", USAGE_ERROR)
    title = " ".join(title.split()) or _words(slug)
    if len(title) > _MAX_TITLE or not title.isprintable():
        fail(f"The title must be one line of at most {_MAX_TITLE} characters.", USAGE_ERROR)
    folder = _course_folder(settings, course)
    if (folder / slug).exists():
        fail(f"{shown_path(folder / slug)} exists already. Choose another name.", USAGE_ERROR)
    toml = _course_with(folder, slug)
    try:
        _write(folder, slug, title, toml)
    except OSError as e:
        fail(f"{shown_path(folder / slug)} cannot be written: {e.strerror}.")
    typer.echo(f"Wrote {shown_path(folder / slug / 'lesson.md')}, with checks.py and wrong/{_WRONG_NAME} beside it.")
    typer.echo(f"Look at it:   lockstep lesson preview {folder.name}/{slug}")
    typer.echo(f"Check it:     lockstep lesson check {folder.name}/{slug}")


def with_lesson(text: str, slug: str) -> str | None:
    """The text of ``course.toml`` with a lesson at the end of its last module, and everything else as it was.

    None if no place for it is found. Pure.
    """
    wanted: dict[str, Any] = tomllib.loads(text)
    wanted["modules"][-1].setdefault("lessons", []).append(slug)
    for opening in reversed(list(re.finditer(r"\blessons\s*=\s*\[", text))):
        for closing in re.finditer(r"\]", text[opening.end() :]):
            head, listed = text[: opening.end()], text[opening.end() : opening.end() + closing.start()].rstrip()
            rest = text[opening.end() + len(listed) :]
            for written in (f"{head}{longer}{rest}" for longer in _longer_lists(listed, json.dumps(slug))):
                with suppress(tomllib.TOMLDecodeError):
                    if tomllib.loads(written) == wanted:
                        return written
    return None


def _longer_lists(listed: str, item: str) -> Iterator[str]:
    """What the list may look like with the item: as it is laid out, after a comma that is there or not. Pure."""
    if "\n" not in listed:
        yield from (f"{listed} {item}", f"{listed}, {item}") if listed else (item,)
        return
    last = listed.rpartition("\n")[2]
    margin = last[: len(last) - len(last.lstrip())]
    yield from (f"{listed}{comma}\n{margin}{item}," for comma in ("", ","))


def _words(slug: str) -> str:
    return slug.replace("-", " ").capitalize()


def _course_folder(settings: Settings, course: str) -> Path:
    """The folder of the course, which need not exist if it was named."""
    root = settings.lessons_dir
    if root != Path("lessons").absolute() and not os.environ.get("LOCKSTEP_LESSONS_DIR"):  # those of Lockstep itself
        fail("There is no folder 'lessons' here. Make one with 'mkdir lessons', or set LOCKSTEP_LESSONS_DIR.")
    if not root.is_dir():
        fail(f"There is no folder {root}. Make it, or set LOCKSTEP_LESSONS_DIR to the folder of your courses.")
    if course:
        if not (root / course).exists() and (settings.added_courses_dir / course).exists():
            fail(f"The course '{course}' is kept in a repository elsewhere. Add the lesson there.", USAGE_ERROR)
        return root / course
    found = sorted(file.parent.name for file in root.glob("*/course.toml"))
    if len(found) != 1:
        known = f"There are several: {', '.join(found)}." if found else "There is none yet."
        fail(f"Say which course the lesson belongs to, with --course. {known}", USAGE_ERROR)
    return root / found[0]


def template_texts(lessons: Iterable[Lesson]) -> Iterator[LessonFileError]:
    """Warn of sentences of the template that these lessons and their courses still have."""
    files = {path: None for lesson in lessons for path in (lesson.source_path, _course_file(lesson))}
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            found = next((text for text in (_COURSE_SUMMARY, _LESSON_SUMMARY, _FIRST_SENTENCE) if text in line), None)
            if found:
                text = f"learners read '{found}', which is the template's; write your own text"
                yield LessonFileError(path, number, text, blocks=False, warning=True)


def _course_file(lesson: Lesson) -> Path:
    return lesson.source_path.parent.parent / "course.toml"


def _course_with(folder: Path, slug: str) -> str:
    """The text of the course's file with the new lesson."""
    file = folder / "course.toml"
    if not folder.exists():
        title = json.dumps(_words(folder.name))
        head = f"title.en = {title}\nsummary.en = {json.dumps(_COURSE_SUMMARY)}\n"
        return f'{head}\n[[modules]]\nslug = "start"\ntitle.en = "Start"\nlessons = [{json.dumps(slug)}]\n'
    if not file.is_file():
        fail(f"{shown_path(folder)} is not a course: it has no course.toml. Choose another with --course.", USAGE_ERROR)
    try:
        content = file.read_bytes()
        _, found = parse_course(decode_source(content), folder.name)
        faults = [fault for fault in found if fault.blocks]
        text = content.decode("utf-8-sig")
    except LessonDecodeError as e:
        text, faults = "", [e.fault]
    except OSError as e:
        fail(f"{shown_path(file)} cannot be read: {e.strerror}.")
    if faults:
        fail(f"{shown_path(file)}:{faults[0].line}: {faults[0].text}")
    written = with_lesson(text, slug)
    if written is None:
        fail(f"{shown_path(file)}: found no place for the lesson. Give the last module a line lessons = []")
    return written


def _write(folder: Path, slug: str, title: str, toml: str) -> None:
    """Write the lesson, then the course that lists it, each in one step: a server may be reading them."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as temporary:
        made = Path(temporary, slug)
        (made / "wrong").mkdir(parents=True)
        (made / "lesson.md").write_text(f"{_front_matter(title)}{_TEXT}", encoding="utf-8")
        (made / "checks.py").write_text(_CHECKS, encoding="utf-8")
        (made / "wrong" / _WRONG_NAME).write_text(_WRONG, encoding="utf-8")
        listing = Path(temporary, "course.toml")
        if (folder / "course.toml").exists():
            shutil.copy2(folder / "course.toml", listing)  # for its mode
        listing.write_bytes(toml.encode())
        made.rename(folder / slug)
        listing.replace(folder / "course.toml")


def _front_matter(title: str) -> str:
    kernel = JupyterKernel(Topology.parse(_TOPOLOGY))
    values = {
        "title": title,
        "summary": _LESSON_SUMMARY,
        "status": "draft",
        "topology": _TOPOLOGY,
        "jupytext": JUPYTEXT,
        "kernelspec": {"display_name": kernel.title, "language": "python", "name": kernel.name},
    }
    return f"---\n{yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=100_000)}---\n"
