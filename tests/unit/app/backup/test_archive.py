"""The format of a backup: what was written is read, and nothing else is accepted."""

from __future__ import annotations

import gzip
import json
import tarfile
import tracemalloc
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.backup.archive import ArchiveReader, ArchiveWriter, BackupError, DamagedArchive, Manifest

FILES = {"database/runs/000001.jsonl": b'["id"]\n["a"]\n', "secrets/sign-in": b"\0" * 32, "lessons/ä/b c.md": b""}


def archive(files: dict[str, bytes] = FILES, **changes: Any) -> bytes:
    """An archive as the program writes it; ``changes`` are made to the manifest."""
    file = BytesIO()
    with ArchiveWriter(file) as writer:
        for name, data in files.items():
            writer.add(name, data)
        facts: dict[str, Any] = {"rows": {"runs": 1}, "members": writer.members} | changes
        told = {"version": "1", "revision": "r", "created_at": "2026-11-24T00:00:00+00:00", "database": "sqlite"}
        writer.finish(Manifest(**(told | facts)))
    return file.getvalue()


def read(data: bytes) -> dict[str, bytes]:
    with ArchiveReader(BytesIO(data)) as reader:
        return dict(reader.members())


def foreign(add: Callable[[tarfile.TarFile], None], kind: int = tarfile.USTAR_FORMAT) -> bytes:
    """An archive that another program has made."""
    file = BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", format=kind) as tar:
        add(tar)
    return file.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, **facts: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    for fact, value in facts.items():
        setattr(info, fact, value)
    return info


def test_what_was_written_is_read() -> None:
    assert read(archive()) == FILES
    with ArchiveReader(BytesIO(archive())) as reader:
        list(reader.members())
        assert reader.manifest.rows == {"runs": 1}
        assert reader.manifest.version == "1"


def test_an_added_course_has_a_source_and_a_folder() -> None:
    files = {"courses/it/source.json": b"{}", "courses/it/it/lesson/assets/b c.png": b""}

    assert read(archive(files)) == files


def test_other_programs_can_list_it() -> None:
    with tarfile.open(fileobj=BytesIO(archive())) as tar:
        assert tar.getnames() == [*FILES, "manifest.json"]
        assert {info.mode for info in tar} == {0o600}


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../secrets/sign-in",
        "secrets/../../x",
        "secrets/.hidden",
        "secrets/a/b",
        "secrets",
        "lessons/../x",
        "lessons/a/../../x",
        "lessons/./x",
        "lessons//x",
        "lessons/a\\..\\x",
        "lessons/a\nb",
        "lessons/",
        "database/runs/../x.jsonl",
        "database/runs/1.jsonl",
        "database/Runs; DROP TABLE runs/000001.jsonl",
        "courses/a/b/lesson.md",
        "courses/a/a/../../../x",
        "courses/../x",
        "courses/a/a",
        "courses/.copies/source.json",
        "elsewhere/x",
        "x",
    ],
)
def test_a_file_with_an_unexpected_name_is_refused_and_never_written(name: str) -> None:
    with pytest.raises(DamagedArchive, match=r"unexpected name|a link, a folder or a device"):
        read(foreign(lambda tar: tar.addfile(member(name))))
    with pytest.raises(BackupError), ArchiveWriter(BytesIO()) as writer:
        writer.add(name, b"")


@pytest.mark.parametrize(
    "info",
    [
        member("secrets/sign-in", tarfile.SYMTYPE, linkname="/etc/shadow"),
        member("secrets/sign-in", tarfile.LNKTYPE, linkname="/etc/shadow"),
        member("lessons/device", tarfile.BLKTYPE, devmajor=8),
        member("lessons/device", tarfile.CHRTYPE, devmajor=1),
        member("lessons/pipe", tarfile.FIFOTYPE),
        member("lessons/folder", tarfile.DIRTYPE),
        member("lessons/old", tarfile.AREGTYPE),
        member("lessons/sparse", tarfile.GNUTYPE_SPARSE),
    ],
    ids=lambda info: str(info.type),
)
def test_anything_but_a_plain_file_is_refused(info: tarfile.TarInfo) -> None:
    with pytest.raises(DamagedArchive, match="a link, a folder or a device"):
        read(foreign(lambda tar: tar.addfile(info)))


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_headers_that_change_the_next_name_are_refused(kind: int) -> None:
    with pytest.raises(DamagedArchive):
        read(foreign(lambda tar: tar.addfile(member("lessons/" + "é/" * 200 + "x")), kind))


@pytest.mark.parametrize(
    "info",
    [
        member("secrets/sign-in", size=2**21),
        member("manifest.json", size=2**33 - 1),
        member("lessons/x", size=2**60),
        member("lessons/x", size=-1),
    ],
    ids=["secret", "manifest", "exabyte", "negative"],
)
def test_a_size_beyond_the_limit_is_refused(info: tarfile.TarInfo) -> None:
    header = info.tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(DamagedArchive, match=r"too large|incomplete"):
        read(gzip.compress(header + bytes(1024)))


def test_a_header_that_promises_much_takes_no_memory() -> None:
    header = member("lessons/x", size=250 * 2**20).tobuf(tarfile.USTAR_FORMAT)
    tracemalloc.start()
    try:
        with pytest.raises(DamagedArchive, match="incomplete"):
            read(gzip.compress(header + bytes(2048)))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


def test_a_bomb_behind_the_last_file_is_not_unpacked() -> None:
    with gzip.open(BytesIO(archive())) as plain:
        whole = plain.read()
    with pytest.raises(DamagedArchive, match="something follows its last file"):
        read(gzip.compress(whole + bytes(50 * 2**20), 9))
    with pytest.raises(DamagedArchive, match="something follows its last file"):
        read(archive() + archive())


def test_a_file_that_is_there_twice_or_missing_or_changed_is_named() -> None:
    def twice(tar: tarfile.TarFile) -> None:
        for _ in range(2):
            tar.addfile(member("secrets/sign-in"))

    with pytest.raises(DamagedArchive, match="it has secrets/sign-in twice"):
        read(foreign(twice))

    def swapped(tar: tarfile.TarFile) -> None:
        for name, data in (FILES | {"secrets/sign-in": b"1" * 32}).items():
            tar.addfile(member(name, size=len(data)), BytesIO(data))
        with tarfile.open(fileobj=BytesIO(archive())) as old:
            manifest = old.extractfile("manifest.json")
            assert manifest
            data = manifest.read()
        tar.addfile(member("manifest.json", size=len(data)), BytesIO(data))

    with pytest.raises(DamagedArchive, match="secrets/sign-in is not what the manifest says"):
        read(foreign(swapped))
    with pytest.raises(DamagedArchive, match=r"database/runs/000001\.jsonl is not what the manifest says"):
        read(archive(members={}))


@pytest.mark.parametrize(
    "manifest",
    [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, json.dumps({"format": 1, "members": [], "rows": 1}).encode()],
    ids=["empty", "list", "object", "bytes", "deep", "types"],
)
def test_a_manifest_that_is_none_is_refused(manifest: bytes) -> None:
    with pytest.raises(DamagedArchive, match="its manifest is damaged"):
        read(foreign(lambda tar: tar.addfile(member("manifest.json", size=len(manifest)), BytesIO(manifest))))


def test_a_format_of_the_future_is_named() -> None:
    with pytest.raises(DamagedArchive, match="it has format 2, and this version of Lockstep reads 1"):
        read(archive(format=2))


@pytest.mark.parametrize("fact", ["version", "revision", "created_at", "database"])
@pytest.mark.parametrize("text", ["\x1b]0;title\x07", "1\n2", "\u202e1", "\x9b2J", "1" * 201])
def test_a_manifest_with_what_a_terminal_obeys_is_refused(fact: str, text: str) -> None:
    with pytest.raises(DamagedArchive, match="its manifest is damaged"):
        read(archive(FILES, **{fact: text}))


@pytest.mark.parametrize("count", [-1, 2**63, 10**400])
def test_a_number_of_rows_that_no_table_has_is_refused(count: int) -> None:
    with pytest.raises(DamagedArchive, match="its manifest is damaged"):
        read(archive(rows={"runs": count}))


def test_all_lessons_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    two = {f"lessons/{name}": bytes(600 << 10) for name in "ab"}
    bomb = archive(two)
    monkeypatch.setattr("app.backup.archive.MAX_LESSONS_MB", 1)
    with pytest.raises(DamagedArchive, match="its lessons have more than 1 MiB"):
        read(bomb)
    with pytest.raises(BackupError, match="A backup holds 1 MiB of lessons at most"):
        archive(two)
    assert read(archive({"lessons/a": bytes(1 << 20), "database/runs/000001.jsonl": bytes(1 << 20)}))


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_changes_nothing(place: int, change: int) -> None:
    data = bytearray(archive())
    data[place % len(data)] ^= change
    try:
        assert read(bytes(data)) == FILES  # a byte of gzip's header, such as the system that it was made on
    except DamagedArchive:
        return


@given(st.integers(0, 10**6))
def test_an_archive_that_is_cut_off_is_refused(length: int) -> None:
    data = archive()
    with pytest.raises(DamagedArchive, match="incomplete, or not a backup"):
        read(data[: length % len(data)])


@given(st.binary(max_size=2000))
def test_bytes_of_any_kind_are_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(DamagedArchive):
        read(data)
    with pytest.raises(DamagedArchive):
        read(gzip.compress(data))


def test_a_file_that_is_too_large_is_refused_when_it_is_written() -> None:
    too_large = "secrets/x is too large for a backup, which allows 1 MiB"
    with pytest.raises(BackupError, match=too_large), ArchiveWriter(BytesIO()) as writer:
        writer.add("secrets/x", bytes(2**20 + 1))
    with pytest.raises(BackupError, match="too long for a backup"), ArchiveWriter(BytesIO()) as writer:
        writer.add("lessons/" + "x" * 300, b"")
