"""``lockstep lesson diff``: what has changed in the English lessons and courses since they were translated."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.cli.lesson_report import shown_path
from app.cli.lesson_target import belongs_to
from app.cli.translation_diff import (
    ChangedParagraphs,
    CourseText,
    changed_paragraphs,
    compare_paragraphs,
    course_texts,
)
from app.i18n import DEFAULT_LANGUAGE, LANGUAGE_CODES
from app.lessons.course_file import parse_course
from app.settings import Settings

_TextName = tuple[str, str]
"""The slug of a module, or "", and a key."""
_CourseTexts = Mapping[_TextName, CourseText]

_Versions = Iterator[tuple[str, str]]
"""The text of each version of a file, and a name for the version."""

_GIT_TIMEOUT_S = 60


def diff_translations(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[LESSON|COURSE|PATH]", help="What to compare, by name or path. Default: all lessons."),
    ] = None,
    language: Annotated[str | None, typer.Option(help="The language of the translations. Default: all.")] = None,
    since: Annotated[
        str,
        typer.Option(metavar="REVISION", help="The revision of Git to compare with. Default: the translation's last."),
    ] = "",
) -> None:
    """Show which paragraphs of English lessons have changed since their translations were written.

    The English text is compared with the one in the last commit that changed the translation. Without Git, it is
    compared with the copy of what the server has shown last. The texts of course.toml are compared in the same way, one
    by one, and those that are not translated are listed. The exit status is 1 if anything is shown.
    """
    if language is not None and language not in LANGUAGE_CODES[1:]:
        fail(f"There are no translations into '{language}'. Use one of {', '.join(LANGUAGE_CODES[1:])}.", USAGE_ERROR)
    settings = read_settings()
    root = settings.lessons_dir
    languages = [language] if language is not None else list(LANGUAGE_CODES[1:])
    found = changed = missing = 0
    for translation in _translations(root, languages):
        if target is None or belongs_to(translation, root, target):
            found += 1
            changed += _show_lesson(settings, translation, since)
    for path in sorted(root.glob("*/course.toml")):
        if target is None or belongs_to(path, root, target):
            for compared in _compare_course(settings, path, languages, since):
                found += 1
                changed += compared.changed
                missing += compared.missing
    if not found:
        fail(f"There is no translation of '{target or 'a lesson'}'.", USAGE_ERROR)
    untranslated = f", {missing} text{'s' * (missing != 1)} not translated" if missing else ""
    typer.echo(
        f"{found} translation{'s' * (found != 1)} compared, {changed} change{'s' * (changed != 1)}{untranslated}."
    )
    if changed or missing:
        raise typer.Exit(1)


def _show_lesson(settings: Settings, translation: Path, since: str) -> int:
    """Show what its translation has to follow; returns how many changes those are."""
    english = translation.with_name("lesson.md")
    before = _english_before(translation, since) or _kept(settings, english)
    if before is None:
        _show_no_base(translation)
        return 0
    text, where = before
    changes = list(changed_paragraphs(text, english.read_text(encoding="utf-8", errors="replace")))
    for one in changes:
        _show(english, one, f"changed since {where}; see {translation.name}")
    return len(changes)


@dataclass(slots=True)
class _ComparedCourse:
    """What the translation of a course into one language has to follow."""

    changed: int = 0
    missing: int = 0


def _compare_course(settings: Settings, path: Path, languages: list[str], since: str) -> Iterator[_ComparedCourse]:
    """Show which texts of a course have changed, or are not translated, for each language that it has anything in."""
    texts = _course_texts(path, path.read_text(encoding="utf-8", errors="replace"))
    if texts is None:
        fail(f"{shown_path(path)} is not valid TOML. Run 'lockstep lesson check' for details.", USAGE_ERROR)
    versions = _course_versions(settings, path, since)
    for language in languages:
        lessons = any(path.parent.glob(f"*/lesson.{language}.md"))
        if lessons or any(language in text.entries for text in texts.values()):
            versions, same = tee(versions)  # read only as far back as needed, and once for all languages
            yield _compare_language(same, path, texts, language, since)


def _compare_language(
    versions: _Versions, path: Path, texts: _CourseTexts, language: str, since: str
) -> _ComparedCourse:
    compared = _ComparedCourse()
    translated = {name: text for name, text in texts.items() if language in text.entries}
    before = _course_before(versions, path, translated, language, since)
    for (module, key), text in texts.items():
        place = f" of the module {module!r}" * bool(module)
        now = text.paragraphs()
        if (module, key) not in translated:
            compared.missing += 1
            _show(
                path,
                ChangedParagraphs((), now, text.line),
                f"not translated; write {key}.{language} beside {key}.{DEFAULT_LANGUAGE}{place}",
            )
        elif (module, key) in before:
            english, where = before[module, key]
            for one in compare_paragraphs(english.paragraphs(), now, text.line):
                compared.changed += 1
                _show(path, one, f"changed since {where}; see {key}.{language}{place}")
    return compared


def _translations(root: Path, languages: list[str]) -> Iterator[Path]:
    for path in sorted(path for code in languages for path in root.glob(f"*/*/lesson.{code}.md")):
        if path.with_name("lesson.md").is_file():
            yield path


def _english_before(translation: Path, since: str) -> tuple[str, str] | None:
    """The English text that the translation was made from, and a name for that version; None if Git has neither."""
    folder = translation.parent
    revision = since or _git(folder, "log", "-1", "--format=%H", "--", translation.name).strip()
    if not revision:
        return None
    text = _git(folder, "show", "--end-of-options", f"{revision}:./lesson.md")
    if not text and since:
        fail(f"Git cannot read lesson.md at '{since}' in {folder}.", USAGE_ERROR)
    return (text, since or f"the translation was written, in {revision[:10]}") if text else None


def _course_before(
    versions: _Versions, path: Path, now: _CourseTexts, language: str, since: str
) -> Mapping[_TextName, tuple[CourseText, str]]:
    """The texts that the translations in ``now`` were made from, and names for those versions.

    A translation was made in the commit since which it is as it is now. One that was changed since the last commit is
    up to date, and left out.
    """
    before: dict[_TextName, tuple[CourseText, str]] = {}
    left = dict(now)
    for text, where in versions if now else ():
        then = _course_texts(path, text)
        if then is None:  # a commit that broke the file says nothing of when its texts were written
            continue
        if not since:
            left = {
                name: one
                for name, one in left.items()
                if name in then and then[name].entries.get(language) == one.entries[language]
            }
        before |= {name: (then[name], where) for name in left if name in then}
        if not left:
            break
    return before


def _course_versions(settings: Settings, path: Path, since: str) -> _Versions:
    """Earlier versions of the file of a course, the latest first, and names for them."""
    revisions = [since] if since else _git(path.parent, "log", "--format=%H", "--", path.name).split()
    for revision in revisions:
        text = _git(path.parent, "show", "--end-of-options", f"{revision}:./{path.name}")
        if not text and since:
            fail(f"Git cannot read {path.name} at '{since}' in {path.parent}.", USAGE_ERROR)
        yield text, since or f"the translation was written, in {revision[:10]}"
    if revisions:
        return
    kept = _kept(settings, path)
    if kept is not None:
        yield kept
    else:
        _show_no_base(path)


def _course_texts(path: Path, toml: str) -> _CourseTexts | None:
    course, _ = parse_course(toml, path.parent.name)
    return course_texts(course, toml) if course is not None else None


def _kept(settings: Settings, path: Path) -> tuple[str, str] | None:
    """The text of the copy of what was served, and a name for that version."""
    try:
        copy = settings.last_good_courses / path.relative_to(settings.lessons_dir)
        return copy.read_text(encoding="utf-8"), "it was served"
    except (OSError, UnicodeDecodeError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    """What Git prints; nothing if it fails."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_GIT_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def _show(path: Path, one: ChangedParagraphs, what: str) -> None:
    typer.echo(f"{shown_path(path)}:{one.line}: {what}")
    typer.echo("".join(f"    {row}\n" for row in _rows(one)))


def _show_no_base(path: Path) -> None:
    print_message(f"{shown_path(path)}: not in Git, and nothing was served yet: there is no earlier text.")


def _rows(one: ChangedParagraphs) -> Iterator[str]:
    for mark, paragraphs in (("-", one.before), ("+", one.now)):
        for number, paragraph in enumerate(paragraphs):
            if number:
                yield ""
            for row in paragraph.text.split("\n"):
                yield f"{mark} {row}"
