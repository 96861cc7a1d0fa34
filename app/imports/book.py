"""Which documents of a folder become lessons, in which modules: a Jupyter Book's ``_toc.yml``, or all there are.

The two formats of ``_toc.yml`` (a list of files in Jupyter Book 0.6 to 0.10; ``format: jb-book`` and ``jb-article``
since) and the ``toc`` of ``myst.yml`` are all nested entries with a file, a title and further entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from app.imports.report import CannotImport, Report
from app.imports.source_tree import SourceTree

MAX_DOCUMENTS = 500
MAX_FILES = 20_000
"""Files that the folder may have besides."""
_MAX_DEPTH = 12
_MAX_BIBLIOGRAPHIES = 20
_MAX_YAML_BYTES = 1_000_000
SUFFIXES = (".ipynb", ".md")
_NOT_LESSONS = ("readme", "license", "contributing", "changelog", "code_of_conduct", "security", "conduct", "authors")
_CHILDREN = ("chapters", "sections", "entries", "children")
_GROUPS = ("parts", "subtrees")


@dataclass(slots=True)
class ModulePlan:
    """A module and its documents; the title may be empty."""

    title: str
    documents: list[PurePosixPath] = field(default_factory=list)


@dataclass(slots=True)
class CoursePlan:
    """What becomes of a folder or a file."""

    title: str
    modules: list[ModulePlan]
    summary: str = ""
    bibliographies: tuple[PurePosixPath, ...] = ()

    @property
    def documents(self) -> list[PurePosixPath]:
        return [document for module in self.modules for document in module.documents]


@dataclass(slots=True)
class _Entry:
    """One entry of a table of contents, whatever its format."""

    file: PurePosixPath | None
    title: str
    children: list[_Entry]

    def documents(self) -> Iterator[PurePosixPath]:
        if self.file is not None:
            yield self.file
        for child in self.children:
            yield from child.documents()


def plan_file(tree: SourceTree, path: PurePosixPath) -> CoursePlan:
    """A course of one lesson, which may cite works of the ``.bib`` files in its folder and in the folders in that."""
    found = [*sorted(tree.root.glob("*.bib")), *sorted(tree.root.glob("*/*.bib"))]
    bibliographies = tuple(PurePosixPath(file.relative_to(tree.root).as_posix()) for file in found)
    return CoursePlan("", [ModulePlan("", [path])], bibliographies=bibliographies[:_MAX_BIBLIOGRAPHIES])


def plan_folder(tree: SourceTree, name: str, report: Report) -> CoursePlan:
    """The course that a folder becomes. ``name`` is the folder's name.

    Raises:
        CannotImport: it has no documents, too many, or a table of contents that cannot be read.
    """
    files = _list_files(tree.root)
    if PurePosixPath("course.toml") in files:
        raise CannotImport("this is a course of Lockstep already; serve it with lockstep course add")
    book = _find_book(files)
    plan = _read_book(tree, book, files, report) if book is not None else _plan_all(files, report)
    plan.title = plan.title or " ".join(re.split(r"[\s_-]+", name)).strip().capitalize()
    plan.bibliographies = tuple(file for file in files if file.suffix == ".bib")[:_MAX_BIBLIOGRAPHIES]
    if not plan.documents:
        raise CannotImport("there is no notebook (.ipynb) and no Markdown file (.md) here")
    if len(plan.documents) > MAX_DOCUMENTS:
        raise CannotImport(f"it has more than {MAX_DOCUMENTS} documents; import it in parts")
    return plan


def _list_files(root: Path) -> list[PurePosixPath]:
    """The files below a folder, sorted as people count; without hidden folders, builds and links to folders."""
    found: list[PurePosixPath] = []
    pending = [root]
    while pending:
        for child in sorted(pending.pop().iterdir(), key=lambda path: path.name):
            if child.name.startswith((".", "_build", "node_modules", "__pycache__")):
                continue
            if child.is_dir() and not child.is_symlink():
                pending.append(child)
            elif child.is_file():
                found.append(PurePosixPath(child.relative_to(root).as_posix()))
            if len(found) > MAX_FILES or len(pending) > MAX_FILES:
                raise CannotImport(f"the folder has more than {MAX_FILES:,} files; import a smaller one")
    return sorted(found, key=_natural)


def _natural(path: PurePosixPath) -> tuple[list[tuple[int, str]], bool, list[tuple[int, str]]]:
    """Sorts ``2`` before ``10``, and an index before its neighbors."""
    is_index = path.stem.lower() in ("index", "intro", "introduction")
    return _numbers(str(path.parent) if len(path.parts) > 1 else ""), not is_index, _numbers(path.name)


def _numbers(text: str) -> list[tuple[int, str]]:
    pieces = re.findall(r"[0-9]{1,18}|[^0-9]+", text.lower())
    return [(int(piece), "") if piece[0].isdigit() and piece.isascii() else (-1, piece) for piece in pieces]


def _find_book(files: list[PurePosixPath]) -> PurePosixPath | None:
    """The table of contents that is nearest to the root."""
    tables = [file for file in files if file.name in ("_toc.yml", "_toc.yaml", "myst.yml")]
    return min(tables, key=lambda file: (len(file.parts), file.name != "_toc.yml"), default=None)


def _plan_all(files: list[PurePosixPath], report: Report) -> CoursePlan:
    """One module for each folder."""
    modules: dict[str, ModulePlan] = {}
    for file in files:
        if file.suffix.lower() not in SUFFIXES:
            continue
        if file.suffix.lower() == ".md" and file.stem.lower() in _NOT_LESSONS:
            report.note(str(file), "left out: it is about the folder")
            continue
        folder = "" if len(file.parts) == 1 else str(file.parent)
        title = " ".join(re.split(r"[\s_-]+", file.parent.name)).strip().capitalize()
        modules.setdefault(folder, ModulePlan(title)).documents.append(file)
    return CoursePlan("", list(modules.values()))


def _read_book(tree: SourceTree, table: PurePosixPath, files: list[PurePosixPath], report: Report) -> CoursePlan:
    found = _read_yaml(tree, table)
    config: Any = {}
    if table.name == "myst.yml":
        project = found.get("project") if isinstance(found, dict) else None
        config = project if isinstance(project, dict) else {}
        found = config.get("toc")
        if found is None:
            plan = _plan_all(files, report)
            return CoursePlan(_words(config.get("title")), plan.modules, _words(config.get("description")))
    elif (tree.root / table.parent / "_config.yml").is_file():
        config = _read_yaml(tree, table.parent / "_config.yml")
    reader = _TableReader(table, {str(file): file for file in files}, report)
    modules = reader.modules(found)
    title = _words(config.get("title")) if isinstance(config, dict) else ""
    summary = _words(config.get("description")) if isinstance(config, dict) else ""
    return CoursePlan(title, [module for module in modules if module.documents], summary)


def _read_yaml(tree: SourceTree, path: PurePosixPath) -> Any:
    file = tree.file(path)
    if file is None:
        raise CannotImport(f"{path} is not a file of this folder")
    content = file.read_bytes()
    if len(content) > _MAX_YAML_BYTES:
        raise CannotImport(f"{path} has {len(content):,} bytes, and the limit is {_MAX_YAML_BYTES:,}")
    try:
        return yaml.safe_load(content)
    except yaml.MarkedYAMLError as e:
        line = e.problem_mark.line + 1 if e.problem_mark else 1
        raise CannotImport(f"{path}:{line}: this is not YAML: {e.problem}; correct it") from e
    except (yaml.YAMLError, RecursionError, ValueError) as e:
        raise CannotImport(f"{path}: this is not YAML; correct it") from e


@dataclass(slots=True)
class _TableReader:
    table: PurePosixPath
    files: dict[str, PurePosixPath]
    report: Report
    count: int = 0

    def modules(self, found: Any) -> list[ModulePlan]:
        """Parts are modules. Without parts, chapters with sections are, and the others are one together."""
        groups, chapters = [], []
        if isinstance(found, dict):
            root = self._entry({"file": found["root"]}, 0) if "root" in found else None
            chapters += [root] if root is not None else []
            groups = [part for key in _GROUPS for part in _list(found.get(key))]
            chapters += [e for key in _CHILDREN for item in _list(found.get(key)) for e in self._entries(item, 0)]
        elif isinstance(found, list):
            below_header: list[Any] | None = None  # a header's chapters follow it; a part has its own
            for item in found:
                if isinstance(item, dict) and "header" in item:
                    below_header = []
                    groups.append({"caption": item["header"], "chapters": below_header})
                elif isinstance(item, dict) and "part" in item:
                    below_header = None
                    groups.append(item)
                elif below_header is not None:
                    below_header.append(item)
                else:
                    chapters += self._entries(item, 0)
        else:
            raise CannotImport(f"{self.table}: this is not a table of contents; write a list of 'file: …' entries")
        return [*self._modules_of_chapters(chapters, bool(groups)), *map(self._module_of_part, groups)]

    def _module_of_part(self, part: Any) -> ModulePlan:
        part = part if isinstance(part, dict) else {}
        title = next((_words(part[key]) for key in ("caption", "part", "header", "title") if key in part), "")
        entries = [e for key in _CHILDREN for item in _list(part.get(key)) for e in self._entries(item, 0)]
        return ModulePlan(title, [document for entry in entries for document in entry.documents()])

    def _modules_of_chapters(self, chapters: list[_Entry], has_parts: bool) -> list[ModulePlan]:
        if has_parts or not any(chapter.children for chapter in chapters):
            return [ModulePlan("", [document for chapter in chapters for document in chapter.documents()])]
        modules: list[ModulePlan] = []
        for chapter in chapters:
            if chapter.children:
                modules.append(ModulePlan(chapter.title, list(chapter.documents())))
            elif modules and not modules[-1].title:
                modules[-1].documents += chapter.documents()
            else:
                modules.append(ModulePlan("", list(chapter.documents())))
        return modules

    def _entries(self, item: Any, depth: int) -> Iterator[_Entry]:
        if isinstance(item, dict) and isinstance(item.get("glob"), str):
            pattern = str(self.table.parent / item["glob"])
            for name in list(self.files):
                if fnmatch(name, pattern) or fnmatch(name.rpartition(".")[0], pattern):
                    entry = self._entry({"file": str(PurePosixPath(name).relative_to(self.table.parent))}, depth)
                    if entry is not None:
                        yield entry
            return
        entry = self._entry(item, depth)
        if entry is not None:
            yield entry

    def _entry(self, item: Any, depth: int) -> _Entry | None:
        self.count += 1
        if depth > _MAX_DEPTH or self.count > 4 * MAX_DOCUMENTS:
            raise CannotImport(f"{self.table}: the table of contents is nested too deeply or has too many entries")
        if isinstance(item, str):
            item = {"file": item}
        if not isinstance(item, dict):
            return None
        title = _words(item.get("title"))
        if "url" in item:
            self.report.note(str(self.table), f"entry dropped: {_words(item['url'])[:80]} is a page of another site")
            return None
        file = self._find(_words(item["file"])) if "file" in item else None
        children = [e for key in _CHILDREN for inner in _list(item.get(key)) for e in self._entries(inner, depth + 1)]
        return _Entry(file, title, children) if file is not None or children else None

    def _find(self, name: str) -> PurePosixPath | None:
        base = str(self.table.parent / name.lstrip("/"))
        for candidate in (base, *(f"{base}{suffix}" for suffix in SUFFIXES)):
            file = self.files.get(candidate)
            if file is not None and file.suffix.lower() in SUFFIXES:
                return self.files.pop(candidate)
        reason = "is not a notebook or Markdown" if base in self.files or f"{base}.rst" in self.files else "is missing"
        self.report.fail(str(self.table), f"left out: '{name[:80]}' {reason}, or is listed twice")
        return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _words(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
