"""``lockstep lesson diff``: what has changed in the English lessons since they were translated."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from app.cli.console import USAGE_ERROR, fail, print_message, read_settings
from app.cli.lesson_report import shown_path
from app.cli.lesson_target import belongs_to
from app.cli.translation_diff import ChangedParagraphs, changed_paragraphs
from app.i18n import LANGUAGE_CODES

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
    compared with the copy of what the server has shown last. The exit status is 1 if a paragraph has changed.
    """
    if language is not None and language not in LANGUAGE_CODES[1:]:
        fail(f"There are no translations into '{language}'. Use one of {', '.join(LANGUAGE_CODES[1:])}.", USAGE_ERROR)
    settings = read_settings()
    root = settings.lessons_dir
    found = changed = 0
    for translation in _translations(root, language):
        if target is not None and not belongs_to(translation, root, target):
            continue
        found += 1
        english = translation.with_name("lesson.md")
        kept = settings.last_good_courses / english.relative_to(root)
        compared = _english_before(translation, since) or _kept(kept)
        if compared is None:
            print_message(
                f"{shown_path(translation)}: not in Git, and nothing was served yet: there is no earlier text."
            )
            continue
        before, where = compared
        for one in changed_paragraphs(before, english.read_text(encoding="utf-8", errors="replace")):
            changed += 1
            typer.echo(f"{shown_path(english)}:{one.line}: changed since {where}; see {translation.name}")
            typer.echo("".join(f"    {row}\n" for row in _rows(one)))
    if not found:
        fail(f"There is no translation of '{target or 'a lesson'}'.", USAGE_ERROR)
    typer.echo(f"{found} translation{'s' * (found != 1)} compared, {changed} change{'s' * (changed != 1)}.")
    if changed:
        raise typer.Exit(1)


def _translations(root: Path, language: str | None) -> Iterator[Path]:
    languages = [language] if language is not None else list(LANGUAGE_CODES[1:])
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


def _kept(path: Path) -> tuple[str, str] | None:
    """The text of the copy of what was served."""
    try:
        return path.read_text(encoding="utf-8"), "it was served"
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


def _rows(one: ChangedParagraphs) -> Iterator[str]:
    for mark, paragraphs in (("-", one.before), ("+", one.now)):
        for number, paragraph in enumerate(paragraphs):
            if number:
                yield ""
            for row in paragraph.text.split("\n"):
                yield f"{mark} {row}"
