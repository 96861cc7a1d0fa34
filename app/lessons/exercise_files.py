"""The files of a lesson's exercises: ``checks.py``, its translations, and the wrong answers in ``wrong/``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.i18n import DEFAULT_LANGUAGE, LANGUAGE_CODES
from app.lessons.checks_file import ChecksFile, parse_checks, parse_translations
from app.lessons.directives import LessonError
from app.lessons.document import Document, LessonDecodeError, decode_source
from app.lessons.errors import LessonFileError
from app.lessons.exercise_cells import is_exercise
from app.lessons.model import WrongAnswer
from app.lessons.python_source import find_syntax_issue
from runners.wire.protocol import MAX_CODE_BYTES

CHECKS_FILE, WRONG_FOLDER = "checks.py", "wrong"
_DIAGNOSIS = "# diagnosis:"


@dataclass(frozen=True, slots=True)
class ExerciseFiles:
    """The contents of the files, and their errors. ``text`` changes whenever a file changes."""

    checks: ChecksFile = field(default_factory=ChecksFile)
    translations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By language."""
    wrong_answers: Mapping[str, tuple[WrongAnswer, ...]] = field(default_factory=dict)
    """By exercise."""
    mistakes: tuple[LessonFileError, ...] = ()
    text: str = ""

    @property
    def blocks(self) -> bool:
        """Whether errors in the files keep the lesson from being shown."""
        return any(mistake.blocks for mistake in self.mistakes)


NO_EXERCISE_FILES = ExerciseFiles()
"""For a lesson without such files."""


def load_exercise_files(folder: Path) -> ExerciseFiles:
    """Read the existing files in a lesson's folder."""
    texts: dict[Path, str] = {}
    mistakes: list[LessonFileError] = []
    for path in _paths(folder):
        try:
            texts[path] = decode_source(path.read_bytes())
        except LessonDecodeError as e:
            mistakes.append(_at(path, e.fault, blocks=path.name == CHECKS_FILE))
        except FileNotFoundError:
            continue
        except OSError as e:
            fault = LessonError(1, f"the file cannot be read: {e.strerror}; check its permissions")
            mistakes.append(_at(path, fault, blocks=path.name == CHECKS_FILE))
    checks_path = folder / CHECKS_FILE
    checks = parse_checks(texts[checks_path]) if checks_path in texts else ChecksFile()
    mistakes += [_at(checks_path, fault) for fault in checks.faults]
    translations: dict[str, Mapping[str, str]] = {}
    wrong_answers: dict[str, tuple[WrongAnswer, ...]] = {}
    for path, text in texts.items():
        if path.suffix == ".toml":
            sentences, faults = parse_translations(text)
            translations[path.name.split(".")[1]] = sentences
            mistakes += [_at(path, fault, blocks=False) for fault in faults]
            mistakes += _translation_errors(path, text, sentences, checks) if not faults and not checks.faults else ()
        elif path.parent.name == WRONG_FOLDER:
            cell, answer, faults = _read_wrong_answer(path, text)
            mistakes += [_at(path, fault, blocks=False) for fault in faults]
            if not faults:
                wrong_answers[cell] = (*wrong_answers.get(cell, ()), answer)
    mistakes += _missing_translations(folder, checks)
    whole = "\0".join(f"{path.name}\0{text}" for path, text in texts.items()) + "".join(map(str, mistakes))
    return ExerciseFiles(checks, translations, wrong_answers, tuple(mistakes), whole)


def _paths(folder: Path) -> Iterator[Path]:
    yield folder / CHECKS_FILE
    for language in LANGUAGE_CODES:
        if language != DEFAULT_LANGUAGE:
            yield folder / f"checks.{language}.toml"
    yield from sorted((folder / WRONG_FOLDER).glob("*.py"))


def _at(path: Path, fault: LessonError, *, blocks: bool = True) -> LessonFileError:
    return LessonFileError(path, fault.line, fault.text, blocks and fault.blocks)


def _read_wrong_answer(path: Path, text: str) -> tuple[str, WrongAnswer, list[LessonError]]:
    cell, dashes, _what = path.stem.partition("--")
    first, _, code = text.partition("\n")
    faults = []
    diagnosis = first.removeprefix(_DIAGNOSIS).strip() if first.startswith(_DIAGNOSIS) else ""
    if not dashes:
        faults.append(LessonError(1, f"the name must be CELL--WHAT.py; rename it to {path.stem}--what-is-wrong.py"))
    if not diagnosis:
        text = f"the first line must be '{_DIAGNOSIS} …' with words of the message that this answer has to get"
        faults.append(LessonError(1, text))
    if len(code.encode("utf-8", "surrogatepass")) > MAX_CODE_BYTES:
        faults.append(LessonError(1, f"the code is longer than the limit of {MAX_CODE_BYTES:,} bytes; shorten it"))
    issue = find_syntax_issue(code) if diagnosis else None  # without one, the first line may belong to the code
    if issue is not None:
        faults.append(LessonError(issue.line + 1, f"this is not Python: {issue.reason}; correct it"))
    return cell, WrongAnswer(path, diagnosis, code), faults


def _missing_translations(folder: Path, checks: ChecksFile) -> Iterator[LessonFileError]:
    for language in LANGUAGE_CODES:
        path = folder / f"checks.{language}.toml"
        if checks.checks and not path.exists() and (folder / f"lesson.{language}.md").is_file():
            text = f"the file is missing; translate the sentences of {CHECKS_FILE} for lesson.{language}.md"
            yield LessonFileError(path, 1, text, blocks=False)


def _translation_errors(
    path: Path, text: str, sentences: Mapping[str, str], checks: ChecksFile
) -> Iterator[LessonFileError]:
    for sentence, line in checks.sentences.items():
        if sentence not in sentences:
            what = f"{CHECKS_FILE}:{line} says {sentence[:80]!r}, which has no translation here; add it"
            yield LessonFileError(path, 1, what, blocks=False)
    lines = text.split("\n")
    for sentence in sentences:
        if sentence not in checks.sentences and sentence not in checks.source:
            at = next((number for number, line in enumerate(lines, 1) if sentence[:40] in line), 1)
            what = f"{CHECKS_FILE} never says {sentence[:80]!r}; remove it, or correct it"
            yield LessonFileError(path, at, what, blocks=False)


# --- between the lesson and its files --------------------------------------------------------------------------


def exercises_without_checks(document: Document, files: ExerciseFiles) -> Iterator[LessonError]:
    """Yield errors for exercises of an English lesson without checks; none while ``checks.py`` has errors."""
    if files.blocks:
        return
    for cell in document.cells:
        if is_exercise(cell) and not files.checks.of(cell.name):
            text = f"the exercise '{cell.name}' has no check; add @check(\"{cell.name}\", …) to {CHECKS_FILE} beside it"
            yield LessonError(cell.fence_line, text)


def files_without_exercise(document: Document, files: ExerciseFiles, folder: Path) -> Iterator[LessonFileError]:
    """Yield errors for checks and wrong answers whose cell is not an exercise of the English lesson."""
    exercises = [cell.name for cell in document.cells if is_exercise(cell)]
    known = f"use one of {', '.join(exercises)}" if exercises else "the lesson has no cell with the tag exercise"
    for check in files.checks.checks:
        if check.exercise not in exercises:
            text = f"there is no exercise '{check.exercise[:40]}' in the lesson; {known}"
            yield LessonFileError(folder / CHECKS_FILE, check.line, text, blocks=False)
    for cell, answers in files.wrong_answers.items():
        for answer in answers:
            if cell not in exercises:
                text = f"there is no exercise '{cell[:40]}' in the lesson; {known}"
                yield LessonFileError(answer.path, 1, text, blocks=False)
