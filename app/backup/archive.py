"""The format of a backup: a gzipped tar archive of plain files, whose last one, the manifest, has a hash of each other.

An archive is read as if an attacker had written it: only plain files with the expected names, in memory one at a time.
``tarfile`` would also accept links, devices and headers of any size, so only its reader of a single header is used.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from io import BytesIO
from types import TracebackType
from typing import IO, Self

FORMAT = 1
MANIFEST = "manifest.json"
MAX_MEMBERS = 100_000
_LIMITS_MB = {"database": 64, "lessons": 256, "courses": 256, "secrets": 1, MANIFEST: 32}
"""The largest file of each folder, in MiB. Database files are split long before."""
MAX_LESSONS_MB = 4096
"""All lessons and added courses together, in MiB: three megabytes of zeros, compressed, would otherwise fill a disk."""
_MOST_ROWS = 2**63 - 1
_LONGEST_FACT = 200
"""Characters of a text in the manifest."""
_MAX_TRAILER_BYTES = 64 * 1024
"""After the last file, tar fills its last record with zeros: 10 KiB at most."""
_CONTENT = ("lessons/", "courses/")
_COMPRESSION = 6
_BLOCK = 512
_READ_BYTES = 2**20
_PATH = r"(/(?!\.{1,2}(/|$))[^/\\\x00-\x1f\x7f\ud800-\udfff]+)+"
_NAME = re.compile(
    rf"{re.escape(MANIFEST)}"
    r"|database/[a-z][a-z0-9_]{0,62}/[0-9]{6}\.jsonl"
    r"|secrets/[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
    rf"|lessons{_PATH}"
    rf"|courses/(?P<course>[a-z0-9-]{{1,100}})/(source\.json|(?P=course){_PATH})"
)
"""An added course has the file about its source, and a folder with its own name."""


class BackupError(Exception):
    """A backup cannot be made, read or restored. ``str()`` is a sentence about why, and what to do."""


class DamagedArchive(BackupError):
    """The archive is not as this program wrote it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"This backup cannot be used: {why}. Use another one.")


@dataclass(frozen=True, slots=True)
class MemberSummary:
    """What the manifest says about one file."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in a backup, and who made it."""

    version: str
    """Of Lockstep."""
    revision: str
    """The schema of its database."""
    created_at: str
    database: str
    """``sqlite`` or ``postgresql``. A backup can be restored to either."""
    rows: Mapping[str, int]
    """The number of rows of each table."""
    members: Mapping[str, MemberSummary] = field(default_factory=dict)
    format: int = FORMAT

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a manifest.

        Raises:
            DamagedArchive: it is not one.
        """
        try:
            told = json.loads(data)
            if told["format"] != FORMAT:
                other = _shown(str(told["format"])).strip("'")
                raise DamagedArchive(f"it has format {other}, and this version of Lockstep reads {FORMAT}")
            members = {str(n): MemberSummary(int(m["size"]), str(m["sha256"])) for n, m in told["members"].items()}
            rows = {str(table): int(count) for table, count in told["rows"].items()}
            version, revision, created_at, database = (
                str(told[name]) for name in ("version", "revision", "created_at", "database")
            )
            facts = (version, revision, created_at, database)  # commands print them: nothing that a terminal obeys
            if not all(fact.isprintable() and len(fact) <= _LONGEST_FACT for fact in facts):
                raise ValueError("a fact that cannot be shown")
            if not all(0 <= count <= _MOST_ROWS for count in rows.values()):
                raise ValueError("a number of rows that no table has")
            return cls(*facts, rows, members)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise DamagedArchive("its manifest is damaged") from None


class ArchiveWriter:
    """Writes an archive to a file, which stays open; the manifest follows the last member."""

    def __init__(self, file: IO[bytes]) -> None:
        self._gzip = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=_COMPRESSION)
        self._tar = tarfile.TarFile(fileobj=self._gzip, mode="w", format=tarfile.USTAR_FORMAT)
        self.members: dict[str, MemberSummary] = {}
        self._content = 0
        """Bytes of lessons and added courses."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what ended the writing may also keep its buffer from being written
            self._gzip.close()

    def add(self, name: str, data: bytes) -> None:
        """Add a file.

        Raises:
            BackupError: a backup cannot hold it.
        """
        if not _NAME.fullmatch(name) or name in self.members:
            raise BackupError(f"A backup cannot hold a file with the name {name!r}. Rename it.")
        if len(data) > (most := _max_bytes(name)):
            raise BackupError(f"{name} is too large for a backup, which allows {most >> 20} MiB. Make it smaller.")
        if len(self.members) >= MAX_MEMBERS:
            raise BackupError(f"A backup holds {MAX_MEMBERS:,} files at most. Use the database's own tools.")
        content = self._content + (len(data) if name.startswith(_CONTENT) else 0)
        if content > MAX_LESSONS_MB << 20:
            raise BackupError(f"A backup holds {MAX_LESSONS_MB:,} MiB of lessons at most. Keep large files elsewhere.")
        self._write(name, data)
        self._content = content
        self.members[name] = MemberSummary(len(data), hashlib.sha256(data).hexdigest())

    def finish(self, manifest: Manifest) -> None:
        """Add the manifest, and end the archive."""
        self._write(MANIFEST, json.dumps(asdict(manifest), ensure_ascii=False, indent=1).encode())
        self._tar.close()
        self._gzip.close()

    def _write(self, name: str, data: bytes) -> None:
        header = tarfile.TarInfo(name)
        header.size, header.mode = len(data), 0o600
        try:
            self._tar.addfile(header, BytesIO(data))
        except ValueError:  # a name of more than 255 bytes, or one that cannot be divided at a slash
            raise BackupError(f"The name of {name} is too long for a backup. Shorten it.") from None


class ArchiveReader:
    """Reads an archive from a file, member by member, and checks every byte of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._gzip = gzip.GzipFile(fileobj=file, mode="rb")
        self._manifest: Manifest | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._gzip.close()

    @property
    def manifest(self) -> Manifest:
        """The manifest, once all members have been read."""
        assert self._manifest is not None
        return self._manifest

    def members(self) -> Iterator[tuple[str, bytes]]:
        """The name and content of each file but the manifest.

        Raises:
            DamagedArchive: the archive has an unexpected file, or is incomplete, or a file is not what the manifest
                says, which is known after the last one.
        """
        found: dict[str, MemberSummary] = {}
        content = 0
        while self._manifest is None:
            name, data = self._member()
            if name == MANIFEST:
                self._manifest = Manifest.parse(data)
                break
            if name in found or len(found) >= MAX_MEMBERS:
                raise DamagedArchive(f"it has {name} twice" if name in found else "it has too many files")
            found[name] = MemberSummary(len(data), hashlib.sha256(data).hexdigest())
            content += len(data) if name.startswith(_CONTENT) else 0
            if content > MAX_LESSONS_MB << 20:
                raise DamagedArchive(f"its lessons have more than {MAX_LESSONS_MB:,} MiB")
            yield name, data
        self._expect_end()
        expected = self._manifest.members
        for name in sorted(found.keys() | expected.keys()):
            if found.get(name) != expected.get(name):
                raise DamagedArchive(f"{name} is not what the manifest says")

    def _member(self) -> tuple[str, bytes]:
        try:
            header = tarfile.TarInfo.frombuf(self._read(_BLOCK), "utf-8", "strict")
        except (tarfile.HeaderError, ValueError):
            raise DamagedArchive("it is incomplete, or not a backup of Lockstep") from None
        name = header.name
        if header.type != tarfile.REGTYPE:
            raise DamagedArchive(f"{_shown(name)} is a link, a folder or a device, and backups have only files")
        if not _NAME.fullmatch(name):
            raise DamagedArchive(f"it has a file with the unexpected name {_shown(name)}")
        if not 0 <= header.size <= _max_bytes(name):
            raise DamagedArchive(f"{name} is too large")
        data = self._read(header.size)
        self._read(-header.size % _BLOCK)
        return name, data

    def _expect_end(self) -> None:
        """Read to the end, where gzip's checksum is; there may be only zeros."""
        for _ in range(0, _MAX_TRAILER_BYTES, _BLOCK):
            block = self._read_some(_BLOCK)
            if not block:
                return
            if block.strip(b"\0"):
                break
        raise DamagedArchive("something follows its last file")

    def _read(self, size: int) -> bytes:
        data = bytearray()  # grows with what is there, not with what a header promises
        while len(data) < size:
            piece = self._read_some(min(size - len(data), _READ_BYTES))
            if not piece:
                raise DamagedArchive("it is incomplete, or not a backup of Lockstep")
            data += piece
        return bytes(data)

    def _read_some(self, size: int) -> bytes:
        try:
            return self._gzip.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DamagedArchive("it is incomplete, or not a backup of Lockstep") from None


def _max_bytes(name: str) -> int:
    return _LIMITS_MB[name.partition("/")[0]] << 20


def _shown(name: str) -> str:
    return repr(name[:100])
