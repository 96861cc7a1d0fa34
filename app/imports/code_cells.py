"""Writes the code cells of a lesson: a name that stays, tags that Lockstep knows, and magics that its kernel knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from app.imports.packages import imported_modules, is_missing
from app.imports.report import Report
from app.imports.source import slug, yaml_text
from app.imports.source_tree import UnusableFile
from app.lessons.cell_names import CELL_NAME_PATTERN, unique_name
from app.lessons.model import CellTag
from app.lessons.python_source import find_syntax_issue
from runners.wire.protocol import MAX_CODE_BYTES

_MAX_NAME = 40
_MAX_MODULE_FILES = 12
"""Of a package beside a document that cells write."""
_FORM_TITLE = re.compile(r"^\s*#\s*@title\s+(.{1,200}?)\s*(?:\{.*\})?\s*$", re.MULTILINE)
_UNKNOWN_MAGIC = re.compile(
    r"^\s*%(?:tensorflow_version|conda|mamba|uv|shell|load_ext\s+google\.colab|unload_ext\s+google\.colab)\b"
)
_PLOT_BACKEND = re.compile(r"^(\s*)%matplotlib\s+(?:notebook|widget|ipympl|qt\d?|tk|gtk\d?|osx|nbagg)\b.*$")
_FOREIGN_CELL = re.compile(r"%%(?:bigquery|shell|R|julia|cython|sql|script|ruby|perl|cuda|cu|gcc|cpp|c|js|svg)\b")
_HELP = re.compile(r"^(\s*)([A-Za-z_][\w.]*(?:\[[^\]]*\])?)(\?\??)\s*$")
_SHELL = re.compile(r"^\s*(?:!|%(?:sh|system|sx)\b|%%(?:bash|sh)\b)\s*(.*)$", re.MULTILINE)
_NETWORK = re.compile(r"\b(?:wget|curl|git\s+clone|gdown|apt(?:-get)?|kaggle|gsutil|gcloud|npm|conda)\b")
_NO_BREAK_SPACE = "\u00a0"
_FILE_NAME = re.compile(r"(?<![\w./\\-])(?:\./)?\w[\w./-]{0,100}\.[a-z]{2,5}\b", re.ASCII)
_WRITTEN = re.compile(r"^%%writefile[ \t]+(?:-a[ \t]+)?(?:\./)?(\S+)", re.MULTILINE)
_MODULE = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE | re.ASCII)
_KERAS_2 = re.compile(
    r"^(?!\s*#).*\b(reset_states\(\)|optimizers\.legacy\b|keras\.experimental\b|TF_USE_LEGACY_KERAS)", re.MULTILINE
)
_TAG_WORDS = {"hide-cell": "hide-input", "hide-code": "hide-input", "remove-input": "hide-input"}
"""The closest tag, for one that the reader of lessons does not know."""


@dataclass(slots=True)
class CellWriter:
    """Writes the cells of one lesson, in order."""

    report: Report
    heading: str
    """The text of the heading that the next cell is below, or the lesson's title."""
    read_text: Callable[[str], str | None]
    """The text of a file beside the document. Raises ``UnusableFile``."""
    module_files: Callable[[str], Mapping[str, PurePosixPath]]
    """The files of a module that comes with the document, by their paths for its code."""
    own_modules: set[str] = field(default_factory=set)
    """The modules that come with the document."""
    written: set[str] = field(default_factory=set)
    """The files that a cell writes for those below it."""
    looked_for: set[str] = field(default_factory=set)
    """The files that have been looked for beside the document."""
    names: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    """The last number of each name that more than one cell would have."""
    count: int = 0
    keras_2_name: str = ""
    """What the code uses that Keras 3 lacks, if it is known to."""

    def write(
        self,
        code: str,
        place: str,
        *,
        name: str = "",
        caption: str = "",
        tags: Iterable[str] = (),
        options: Iterable[str] = (),
    ) -> list[str]:
        """The lines of a cell. ``options`` are lines that are kept as they are."""
        code = code.strip("\n")
        if not code.strip():
            self.report.note(place, "empty cell dropped")
            return []
        if len(code.encode()) > MAX_CODE_BYTES:
            self.report.note(place, f"cell kept as a code block: it has more than {MAX_CODE_BYTES:,} bytes; split it")
            return _fenced(code, "python")
        files = self._files(code, place)
        old = _KERAS_2.search(code)
        self.keras_2_name = self.keras_2_name or (old[1] if old is not None else "")
        code = self._runnable(code, place)
        kept = self._tags(tags, place)
        if _FOREIGN_CELL.match(code.lstrip()):
            magic = code.lstrip().split()[0]
            self.report.note(place, f"cell tagged skip-execution: {magic} does not run in the sandbox")
            kept.append(CellTag.skip_execution)
        if not {CellTag.skip_execution, CellTag.raises_exception}.intersection(kept):
            self._find_missing_modules(code, place)
        issue = find_syntax_issue(code)
        if issue is not None and _NO_BREAK_SPACE in code:
            self.report.note(place, "no-break spaces in the code replaced by spaces")
            code = code.replace(_NO_BREAK_SPACE, " ")
            issue = find_syntax_issue(code)
        if issue is not None and CellTag.raises_exception not in kept:
            reason = f"line {issue.line} is not Python 3 ({issue.reason})"
            self.report.note(place, f"cell tagged raises-exception: {reason}; correct it and remove the tag")
            kept.append(CellTag.raises_exception)
        form = _FORM_TITLE.search(code)
        caption = " ".join((caption or (form[1] if form else "")).split())[:120]
        self.count += 1
        lines = [f":name: {self._name(name, caption, code, place)}"]
        if caption:
            lines.append(f":caption: {yaml_text(caption)}")
        if kept:
            lines.append(f":tags: [{', '.join(dict.fromkeys(kept))}]")
        return [*files, *_fenced(code, "{code-cell} ipython3", [*lines, *options, ""])]

    # --- files ---

    def _files(self, code: str, place: str) -> list[str]:
        """Cells that write the text files and modules that this code reads: a sandbox has none of them."""
        lines: list[str] = []
        sources = [code]
        for source in sources:  # which grows by the modules that it imports
            self.written.update(_WRITTEN.findall(source))
            names = {name: name for name in _FILE_NAME.findall(source)}
            for module in _MODULE.findall(source):
                names |= self._module(module, place)
            for name, reference in names.items():
                if (text := self._text_to_write(name, reference, place)) is not None:
                    lines += self._writing(name, text, place)
                    if name.endswith(".py"):
                        sources.append(text)
        return lines

    def _text_to_write(self, name: str, reference: str, place: str) -> str | None:
        """The text of a file that no cell has written yet; None if there is none, or if a cell cannot read it."""
        if name in self.written or name in self.looked_for:
            return None
        self.looked_for.add(name)
        try:
            text = self.read_text(reference)
        except UnusableFile as e:
            self.written.add(name)
            self.report.note(place, f"kept, but it may fail: a cell cannot read '{name[:60]}' ({e})")
            return None
        if text is not None:
            self.written.add(name)
            self.report.note(place, f"a cell above it writes '{name[:60]}', which a sandbox lacks")
        return text

    def _module(self, module: str, place: str) -> dict[str, str]:
        """The files of a module that comes with the document, and where they are below the root of the import."""
        if module in self.own_modules or f"{module}.py" in self.written:
            return {}
        files = self.module_files(module)
        if files:
            self.own_modules.add(module)
        if len(files) > _MAX_MODULE_FILES:
            self.report.note(
                place,
                f"kept, but it will fail: '{module}' beside it has {len(files)} files, and cells write up to "
                f"{_MAX_MODULE_FILES}; install it where code runs, see docs/operate/packages.md",
            )
            return {}
        return {name: f"/{path}" for name, path in files.items()}

    def _writing(self, name: str, text: str, place: str) -> Iterator[str]:
        """The cell that writes a file, below one that makes its folder."""
        folder = PurePosixPath(name).parent
        made = [f"import os\nos.makedirs('{folder}', exist_ok=True)"] if folder.parts else []
        for code in (*made, f"%%writefile {name}\n{text.rstrip()}"):
            self.count += 1
            head = [f":name: {self._name('', name, code, place)}", f":caption: {name}", ":tags: [hide-input]", ""]
            yield from [*_fenced(code, "{code-cell} ipython3", head), ""]

    def _find_missing_modules(self, code: str, place: str) -> None:
        for module in dict.fromkeys(imported_modules(code)):
            if module not in self.own_modules and f"{module}.py" not in self.written and is_missing(module):
                self.report.missing_modules.setdefault(module, []).append(place)

    # --- names ---

    def _name(self, given: str, caption: str, code: str, place: str) -> str:
        """The author's name for the cell, or one from its title, what it defines, or its section."""
        wanted = slug(given, _MAX_NAME)
        if given and CELL_NAME_PATTERN.fullmatch(given) and len(given) <= _MAX_NAME and given not in self.names:
            self.names.add(given)
            return given
        words = wanted or slug(caption, _MAX_NAME) or _defined(code) or slug(self.heading, _MAX_NAME) or "cell"
        base = words if words[0].isalpha() else f"cell-{words}"[:_MAX_NAME].rstrip("-")
        name = unique_name(base, self.names, self.numbers)
        self.names.add(name)
        if given and name != given:
            self.report.note(place, f"cell renamed from '{given[:60]}' to '{name}'")
        return name

    # --- tags ---

    def _tags(self, tags: Iterable[str], place: str) -> list[str]:
        kept: list[str] = []
        known = set(CellTag) - {CellTag.exercise}
        for tag in tags:
            plain = tag.strip().replace("_", "-")
            replaced = plain if plain in known else _TAG_WORDS.get(plain, "")
            if replaced in known:
                kept.append(replaced)
                if replaced != plain:
                    self.report.note(place, f"tag '{tag[:40]}' replaced by '{replaced}'")
            elif plain:
                self.report.note(place, f"tag '{tag[:40]}' dropped")
        return kept

    # --- magics ---

    def _runnable(self, code: str, place: str) -> str:
        """The code with what only Colab or a desktop knows commented out, line by line."""
        lines = []
        for line in _joined_magics(code):
            if _UNKNOWN_MAGIC.match(line):
                self.report.note(place, f"commented out: {line.strip()[:60]}, which this kernel does not have")
                line = f"# {line}"
            elif backend := _PLOT_BACKEND.match(line):
                self.report.note(place, f"{line.strip()[:60]} replaced by %matplotlib inline")
                line = f"{backend[1]}%matplotlib inline"
            elif asked := _HELP.match(line):
                line = f"{asked[1]}{asked[3]}{asked[2]}"
                self.report.note(place, f"{asked[2]}{asked[3]} written as {asked[3]}{asked[2]}")
            lines.append(line)
        code = "\n".join(lines)
        if any(_NETWORK.search(command) for command in _SHELL.findall(code)) or (
            code.lstrip().startswith(("%%bash", "%%sh")) and _NETWORK.search(code)
        ):
            self.report.note(place, "kept, but it will fail: it loads from the network, which a sandbox lacks")
        if re.search(r"^\s*(?:from|import)\s+google\.colab\b", code, re.MULTILINE):
            self.report.note(place, "kept, but it will fail: only Colab has google.colab")
        return code


def _joined_magics(code: str) -> list[str]:
    """The lines; a shell command that goes on behind a backslash is one line. The bodies of cell magics stay."""
    lines = code.split("\n")
    if code.lstrip().startswith("%%"):
        return lines
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1].endswith("\\") and joined[-1].lstrip()[:1] in ("!", "%"):
            joined[-1] = f"{joined[-1][:-1].rstrip()} {line.strip()}"
        else:
            joined.append(line)
    return joined


def _defined(code: str) -> str:
    """The name of the only function or class that a cell defines; empty otherwise."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)]
    if len(names) != 1:
        return ""
    return slug(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", names[0]).replace("_", "-"), _MAX_NAME)


def _fenced(code: str, info: str, head: Iterable[str] = ()) -> list[str]:
    runs = [len(run) for run in re.findall(r"^\s*(`{3,})", code, re.MULTILINE)]
    fence = "`" * max([3, *(run + 1 for run in runs)])
    return [f"{fence}{info}", *head, *code.split("\n"), fence]
