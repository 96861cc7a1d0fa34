"""The files of an import, and the assets of the lessons made from them.

Only regular files below the root are read: a path or a symbolic link that leads out of it does not exist for an import,
and neither does a hidden file, such as ``.git/config``, which may hold a password.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, unquote_to_bytes

from app.imports.report import CannotImport
from app.imports.source import CONTROLS, decode
from app.lessons.assets import MAX_ASSET_BYTES

MAX_TOTAL_BYTES = 500_000_000
"""Of all pictures and other files that one import copies."""
MAX_TEXT_BYTES = 50_000
"""Of a file that a cell writes for those below it."""
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""How a file begins that only says where Git LFS keeps the content."""
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w=.-]+)*),(.*)", re.DOTALL | re.ASCII)


class UnusableFile(Exception):
    """A file that a lesson cannot have as an asset. ``str()`` is the reason."""


@dataclass(slots=True)
class SourceTree:
    """The folder that an import reads."""

    root: Path
    copied_bytes: int = 0

    def find(self, folder: PurePosixPath, reference: str) -> Path | None:
        """The file that a document in ``folder`` refers to, by a relative path or one that starts at the root."""
        path = unquote(reference.partition("#")[0].partition("?")[0])
        if not path or "\0" in path:
            return None
        start = "" if path.startswith("/") else str(folder)
        relative = posixpath.normpath(posixpath.join(start, path.lstrip("/")))
        if relative.startswith(".."):
            return None
        return self.file(PurePosixPath(relative))

    def file(self, relative: PurePosixPath) -> Path | None:
        """The regular file at this path; None if there is none, or if it is hidden or outside the root."""
        try:
            root = self.root.resolve()
            file = (root / relative).resolve()
            if not file.is_relative_to(root) or any(part.startswith(".") for part in file.relative_to(root).parts):
                return None
            return file if file.is_file() else None
        except (OSError, RuntimeError, ValueError):  # a loop of links, or a name that no file can have
            return None

    def read_asset(self, file: Path) -> bytes:
        """The content of a file.

        Raises:
            UnusableFile: it is too large, or only a pointer to the content.
            CannotImport: the import has too many files.
        """
        content = _read(file, MAX_ASSET_BYTES)
        self.copied_bytes += len(content)
        if self.copied_bytes > MAX_TOTAL_BYTES:
            raise CannotImport(f"its pictures and files have more than {MAX_TOTAL_BYTES:,} bytes; import it in parts")
        return content

    def module_files(self, folder: PurePosixPath, module: str, *, beside_only: bool) -> dict[str, PurePosixPath]:
        """The files of a module or package that a document in ``folder`` imports, by their paths for its code.

        Python looks beside the document. Notebooks also add a folder above it, or its ``src``, to ``sys.path``.
        ``beside_only`` is for modules that are installed: only what would take their place is found.
        """
        places = [start for above in (folder, *folder.parents) for start in (above, above / "src")]
        for start in [folder] if beside_only else places:
            if self.file(start / f"{module}.py") is not None:
                return {f"{module}.py": start / f"{module}.py"}
            is_package = not beside_only or self.file(start / module / "__init__.py") is not None
            if is_package and (files := self._python_files(start / module)):
                return {str(path.relative_to(start)): path for path in files}
        return {}

    def _python_files(self, package: PurePosixPath) -> list[PurePosixPath]:
        """The files of a package that can be imported, without empty ones. Folders without any are not searched."""
        found: list[PurePosixPath] = []
        left = [package]
        while left:
            folder = left.pop()
            try:
                children = sorted(child for child in (self.root / folder).iterdir() if child.stem.isidentifier())
            except OSError:
                continue
            inside = [folder / child.name for child in children if child.suffix == ".py"]
            found += [path for path in inside if (file := self.file(path)) is not None and file.stat().st_size]
            if inside:
                below = [child for child in children if child.name.isidentifier() and not child.is_symlink()]
                left += [folder / child.name for child in reversed(below) if child.is_dir()]
        return found

    def read_text(self, folder: PurePosixPath, reference: str) -> str | None:
        """The text that a cell of a document in ``folder`` reads by this path; None if there is no such file.

        Raises:
            UnusableFile: it is not text, or too large for a cell.
        """
        file = self.find(folder, reference)
        if file is None:
            return None
        content = _read(file, MAX_TEXT_BYTES)
        try:
            text = decode(content)
        except CannotImport as e:
            raise UnusableFile("it is not text") from e
        if not text.strip() or CONTROLS.search(text):
            raise UnusableFile("it is not text")
        return text


def _read(file: Path, most: int) -> bytes:
    try:
        size = file.stat().st_size
        if size > most:
            raise UnusableFile(f"it has {size:,} bytes, and the limit is {most:,}")
        content = file.read_bytes()
    except OSError as e:
        raise UnusableFile(f"it cannot be read: {e.strerror}") from e
    if content.startswith(LFS_POINTER):
        raise UnusableFile("it is only a pointer of Git LFS; run git lfs pull, and import the folder")
    return content


@dataclass(slots=True)
class AssetFolder:
    """The folder ``assets`` of one lesson. The same content is stored once."""

    files: dict[str, bytes] = field(default_factory=dict)

    def add(self, name: str, content: bytes) -> str:
        """Store a file, and return its path in the lesson."""
        stem, dot, ending = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.").rpartition(".")
        stem = stem.lstrip("_.-")[:60] if dot else ""
        ending = ending[:10]
        base = stem or "file"
        plain = f"{base}.{ending}" if ending and dot else (ending or base)
        number = 1
        candidate = plain
        while self.files.get(candidate, content) != content:
            number += 1
            candidate = f"{base}-{number}.{ending}" if ending and dot else f"{plain}-{number}"
        self.files[candidate] = content
        return f"assets/{candidate}"


def decode_data_url(url: str) -> tuple[str, bytes]:
    """The file that a ``data:`` address contains, with a name.

    Raises:
        UnusableFile: it cannot be decoded.
    """
    match = _DATA_URL.match(url)
    if match is None:
        raise UnusableFile("its data: address cannot be read")
    return named_data("picture", match[1] or "text/plain", match[3], is_base64=";base64" in match[2])


def named_data(stem: str, media_type: str, text: str, *, is_base64: bool = True) -> tuple[str, bytes]:
    """Decode a picture that a notebook contains; its name has the ending of its type.

    Raises:
        UnusableFile: it is not a picture, or cannot be decoded.
    """
    if not media_type.startswith("image/"):
        raise UnusableFile(f"it is not a picture but {media_type[:40]}")
    try:
        content = base64.b64decode(unquote(text)) if is_base64 else unquote_to_bytes(text)
    except (binascii.Error, ValueError) as e:
        raise UnusableFile("its data is not base64") from e
    if len(content) > MAX_ASSET_BYTES:
        raise UnusableFile(f"it has {len(content):,} bytes, and the limit is {MAX_ASSET_BYTES:,}")
    ending = mimetypes.guess_extension(media_type) or ".bin"
    return (stem if stem.lower().endswith(ending) else f"{stem}{ending}"), content
