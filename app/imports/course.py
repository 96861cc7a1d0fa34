"""Turns the documents of an import into a course's folder, which appears at once and complete, or not at all."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import structlog
import yaml

from app.imports.book import CoursePlan, ModulePlan
from app.imports.code_cells import CellWriter
from app.imports.notebook import read_notebook
from app.imports.outline import Page, index_pages, make_page
from app.imports.packages import how_to_install, is_installed
from app.imports.prose import TextRewriter
from app.imports.references import References
from app.imports.report import CannotImport, Change, Report
from app.imports.source import MAX_FILE_BYTES, CodeSegment, SourceDocument, TextSegment, read_markdown, slug
from app.imports.source_tree import AssetFolder, SourceTree
from app.lessons.document import MAX_SOURCE_BYTES
from app.lessons.front_matter import SLUG_PATTERN
from app.lessons.jupyter_metadata import JUPYTEXT
from app.lessons.snapshot import Snapshot, load_snapshot
from runners.wire.jupyter_kernels import JupyterKernel
from runners.wire.protocol import Topology, UnknownTopology

_log = structlog.get_logger(__name__)

_EMBEDDED = re.compile(r"data:image/[\w.+-]+;base64,[A-Za-z0-9+/=%\s]*", re.ASCII)
_CITATION = re.compile(r"\{cite[\w:]*\}`")
_MAX_SUMMARY = 200


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the importer chooses for all lessons."""

    topology: str = "gpu:4"
    status: str = "draft"


@dataclass(slots=True)
class ImportedLesson:
    """A lesson's files, not yet written."""

    slug: str
    text: str
    assets: AssetFolder
    cells: int
    bibliographies: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportedCourse:
    """What an import has written."""

    folder: Path
    lessons: int
    cells: int


def course_slug(plan: CoursePlan, tree: SourceTree) -> str:
    """A name for the folder of a course that has none yet."""
    return slug(plan.title) or slug(tree.root.name) or "imported"


def import_course(
    tree: SourceTree, plan: CoursePlan, target: Path, report: Report, options: ImportOptions, *, replace: bool = False
) -> ImportedCourse:
    """Convert the documents of a plan, and write the course to ``target``.

    Raises:
        CannotImport: nothing could be imported, or something else is where the course belongs.
    """
    _check_target(target, replace)
    pages, modules = _read_pages(tree, plan, report)
    index = index_pages(pages)
    lessons = []
    for page in pages:
        lesson = _convert(page, index, tree, plan, report, options)
        if lesson is None:
            modules = [(title, [other for other in module if other is not page]) for title, module in modules]
        else:
            lessons.append(lesson)
    if not lessons:
        raise CannotImport("no document could be imported: " + "; ".join(map(str, report.failures[:3])))
    title = plan.title or pages[0].title
    summary = plan.summary or f"Imported from {tree.root.name or title}."
    toml = _course_toml(title, summary, [(name, [p.slug for p in module]) for name, module in modules if module])
    _write(target, toml, lessons, report, replace)
    for module, places in report.missing_modules.items():
        others = f" (the first of {len(places)} cells)" if len(places) > 1 else ""
        text = f"imports {module}, which is not installed: {how_to_install(module)}"
        report.warnings.append(Change(f"{places[0]}{others}", text))
    return ImportedCourse(target, len(lessons), sum(lesson.cells for lesson in lessons))


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_pages(tree: SourceTree, plan: CoursePlan, report: Report) -> tuple[list[Page], list[tuple[str, list[Page]]]]:
    pages: list[Page] = []
    modules: list[tuple[str, list[Page]]] = []
    taken: set[str] = set()
    for module in plan.modules:
        made: list[Page] = []
        for path in module.documents:
            page = _read_page(tree, path, report)
            if page is not None:
                page.slug = _lesson_slug(page, taken)
                made.append(page)
        pages += made
        modules.append((_module_title(module, made, plan), made))
    return pages, modules


def _read_page(tree: SourceTree, path: PurePosixPath, report: Report) -> Page | None:
    file = tree.file(path)
    try:
        if file is None:
            raise CannotImport("it is not a file of this folder; a link that leads out of it is not followed")
        size = file.stat().st_size
        if size > MAX_FILE_BYTES:
            raise CannotImport(f"the file has {size:,} bytes, and the limit is {MAX_FILE_BYTES:,}")
        content = file.read_bytes()
        read = read_notebook if path.suffix.lower() == ".ipynb" else read_markdown
        document: SourceDocument = read(path, content, report)
        if not document.segments or all(
            isinstance(part, TextSegment) and not part.text.strip() for part in document.segments
        ):
            raise CannotImport("it is empty")
        _check_length(document)
        page = make_page(document)
        page.title = page.title or " ".join(re.split(r"[\s_-]+", path.stem)).strip().capitalize()
        return page
    except CannotImport as e:
        report.fail(str(path), f"left out: {e}")
    except OSError as e:
        report.fail(str(path), f"left out: it cannot be read: {e.strerror}")
    except Exception:  # one document must not end the import of the others
        _log.exception("import_failed", path=str(path))
        report.fail(str(path), "left out: Lockstep failed on this file; please report it")
    return None


def _check_length(document: SourceDocument) -> None:
    """Refuse what cannot become a lesson before it takes minutes to parse. Pictures in the text do not count."""
    texts = (part.text if isinstance(part, TextSegment) else part.code for part in document.segments)
    size = sum(len(_EMBEDDED.sub("", text).encode()) for text in texts)
    if size > MAX_SOURCE_BYTES:
        raise CannotImport(f"without outputs it has {size:,} bytes, and the limit is {MAX_SOURCE_BYTES:,}; split it")


def _lesson_slug(page: Page, taken: set[str]) -> str:
    path = page.document.path
    stem = "" if path.stem.lower() in ("index", "readme") else slug(path.stem)
    base = stem or slug(page.title) or slug(path.parent.name) or "lesson"
    made, number = base, 2
    while made in taken:
        made = f"{base[:55].rstrip('-')}-{number}"
        number += 1
    taken.add(made)
    return made


def _module_title(module: ModulePlan, pages: list[Page], plan: CoursePlan) -> str:
    return module.title or (pages[0].title if pages and len(plan.modules) > 1 else "") or "Lessons"


# --- converting ------------------------------------------------------------------------------------------------------


def _convert(
    page: Page,
    index: Mapping[PurePosixPath, Page],
    tree: SourceTree,
    plan: CoursePlan,
    report: Report,
    options: ImportOptions,
) -> ImportedLesson | None:
    file = page.document.file
    try:
        references = References(page, index, tree, report)
        folder = page.document.path.parent
        cells = CellWriter(
            report,
            page.title,
            partial(tree.read_text, folder),
            lambda module: tree.module_files(folder, module, beside_only=is_installed(module)),
        )
        rewriter = TextRewriter(page, references, cells, {h.at: level for h, level in page.new_levels()})
        body = "\n".join(_body(page, rewriter, references, cells))
        if plan.bibliographies and _CITATION.search(body) and "{bibliography}" not in body:
            report.note(file, "{bibliography} added at the end, because the text cites works")
            body += "\n```{bibliography}\n```\n"
        summary = page.document.summary or rewriter.summary
        text = _front_matter(page, summary, cells, options, report) + body
        if len(text.encode()) > MAX_SOURCE_BYTES:
            raise CannotImport(
                f"without outputs it has {len(text.encode()):,} bytes, and the limit is {MAX_SOURCE_BYTES:,}; split it"
            )
        return ImportedLesson(
            page.slug, text, references.assets, cells.count, _bibliographies(text, tree, plan, report)
        )
    except CannotImport as e:
        report.fail(file, f"left out: {e}")
    except Exception:
        _log.exception("import_failed", path=file)
        report.fail(file, "left out: Lockstep failed on this file; please report it")
    return None


def _body(page: Page, rewriter: TextRewriter, references: References, cells: CellWriter) -> Iterator[str]:
    """The lines of the lesson below its front matter. As jupytext writes it, ``+++`` is between two texts."""
    after_text = False
    for number, segment in enumerate(page.document.segments):
        references.place = segment.place(1) if isinstance(segment, TextSegment) else segment.place
        if isinstance(segment, CodeSegment):
            lines = cells.write(
                segment.code, segment.place, name=segment.name, caption=segment.caption, tags=segment.tags
            )
            after_text = after_text and not lines
            yield from ["", *lines] if lines else []
            continue
        text = rewriter.rewrite(number, page.texts[number])
        if text.strip():
            yield from ["", "+++", "", text] if after_text else ["", text]
            after_text = True
    yield ""


def _front_matter(page: Page, summary: str, cells: CellWriter, options: ImportOptions, report: Report) -> str:
    document = page.document
    topology, keras = _machine(document, cells, options, report)
    kernel = JupyterKernel(Topology.parse(topology), keras)
    title = " ".join(page.title.split())[:200]
    if not summary:
        report.note(document.file, "the summary is the title, because there is no paragraph; write one")
    elif not document.summary:
        report.note(document.file, "the summary is the first paragraph; write one or two sentences")
    values: dict[str, Any] = {
        "title": title,
        "summary": _shortened(summary) or f"{title}.",
        "status": options.status,
        "topology": topology,
    }
    if keras != 3:
        values["keras"] = keras
    if document.tags:
        values["tags"] = list(document.tags)
    values["jupytext"] = JUPYTEXT
    values["kernelspec"] = {"display_name": kernel.title, "language": "python", "name": kernel.name}
    return f"---\n{yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=100_000)}---\n"


def _machine(document: SourceDocument, cells: CellWriter, options: ImportOptions, report: Report) -> tuple[str, int]:
    named = document.machine.get("topology", "")
    keras = 2 if document.machine.get("keras") == "2" else 3
    if "keras" not in document.machine and cells.keras_2_name:
        report.note(document.file, f"keras: 2 chosen, because Keras 3 has no {cells.keras_2_name}")
        keras = 2
    try:
        return str(Topology.parse(named or options.topology)), keras
    except UnknownTopology:
        report.note(document.file, f"machine '{named[:40]}' replaced by {options.topology}")
        return options.topology, keras


def _shortened(text: str) -> str:
    """The first sentences that fit."""
    flat = " ".join(text.split())
    if len(flat) <= _MAX_SUMMARY:
        return flat
    sentences = re.match(rf"(.{{1,{_MAX_SUMMARY}}}[.!?。！？])(?=\s|$)", flat)
    return sentences[1] if sentences else flat[: _MAX_SUMMARY - 1].rsplit(" ", 1)[0].rstrip(",;:") + "…"


def _bibliographies(text: str, tree: SourceTree, plan: CoursePlan, report: Report) -> dict[str, bytes]:
    """The ``.bib`` files of the folder, for a lesson that cites."""
    if "{cite" not in text and "{bibliography}" not in text:
        return {}
    found: dict[str, bytes] = {}
    for path in plan.bibliographies:
        file = tree.file(path)
        if file is not None:
            found.setdefault(path.name, tree.read_asset(file))
    return found


# --- writing ---------------------------------------------------------------------------------------------------------


def _course_toml(title: str, summary: str, modules: list[tuple[str, list[str]]]) -> str:
    lines = [f"title.en = {_toml(title)}", f"summary.en = {_toml(summary)}"]
    taken: set[str] = set()
    for number, (name, lessons) in enumerate(modules, 1):
        base = slug(name, 40) or f"module-{number}"
        made = base if base not in taken else f"{base}-{number}"
        taken.add(made)
        listed = ", ".join(map(_toml, lessons))
        lines += ["", "[[modules]]", f"slug = {_toml(made)}", f"title.en = {_toml(name)}", f"lessons = [{listed}]"]
    return "\n".join([*lines, ""])


def _toml(text: str) -> str:
    """A TOML string; JSON's is one, except for one character."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False).replace("\x7f", "\\u007f")


def _check_target(target: Path, replace: bool) -> None:
    if not SLUG_PATTERN.fullmatch(target.name):
        raise CannotImport(f"'{target.name}' cannot name a course; use lowercase letters, digits, and hyphens")
    if not target.exists():
        return
    if not replace:
        raise CannotImport(f"{target} exists; choose another folder with --into, or replace it with --force")
    if target.is_symlink() or not (target / "course.toml").is_file():
        raise CannotImport(f"{target} is not the folder of a course, so --force does not replace it; choose another")


def _write(target: Path, toml: str, lessons: list[ImportedLesson], report: Report, replace: bool) -> None:
    """Write into a temporary folder beside the target, read it as the site will, and move it into place."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".import-", dir=target.parent) as temporary:
            folder = Path(temporary) / target.name
            folder.mkdir()
            for lesson in lessons:
                _write_lesson(folder / lesson.slug, lesson)
            (folder / "course.toml").write_text(toml, encoding="utf-8")
            for mistake in load_snapshot(Path(temporary), Snapshot()).mistakes:
                place = f"{mistake.path.relative_to(temporary)}:{mistake.line}"
                found = report.warnings if mistake.warning else report.failures
                found.append(Change(place, mistake.message))
            before = Path(temporary) / "before"
            if replace and target.exists():
                target.rename(before)
            try:
                folder.rename(target)
            except OSError:
                if before.exists():
                    before.rename(target)
                raise
    except OSError as e:
        raise CannotImport(f"{target} cannot be written: {e.strerror}; choose another folder with --into") from e


def _write_lesson(folder: Path, lesson: ImportedLesson) -> None:
    folder.mkdir()
    (folder / "lesson.md").write_text(lesson.text, encoding="utf-8")
    for name, content in lesson.bibliographies.items():
        (folder / name).write_bytes(content)
    if lesson.assets.files:
        (folder / "assets").mkdir()
        for name, content in lesson.assets.files.items():
            (folder / "assets" / name).write_bytes(content)
