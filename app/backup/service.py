"""Backs up a site to one archive, restores it, and copies a database to one of another kind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from sqlalchemy import Table
from sqlalchemy.ext.asyncio import AsyncConnection

from app import migrate
from app.backup.archive import ArchiveReader, ArchiveWriter, BackupError, DamagedArchive, Manifest
from app.backup.new_database import new_database
from app.backup.rows import (
    Progress,
    RowWriter,
    Schema,
    consistent_view,
    count_rows,
    decode_batch,
    encode_batch,
    read_rows,
    reflect,
    schema_at,
)
from app.backup.site_files import RestoredCourse, RestoredFiles, course_files, lesson_files, secret_files
from app.db import Database
from app.imports.course_store import CourseStore
from app.lessons.added_courses import SOURCE_FILE, AddedCourse, parse_source
from app.settings import Settings
from app.version import described_version


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """What a backup holds."""

    version: str
    revision: str
    created_at: str
    rows: int
    tables: int
    secrets: int
    lessons: int
    """Files of lessons."""
    courses: tuple[AddedCourse, ...] = ()
    """The added courses."""


@dataclass(frozen=True, slots=True)
class RestoreSummary:
    backup: BackupSummary
    lessons: Path | None
    """Where the backup's lessons are, if their folder did not have all of them already."""
    courses: tuple[RestoredCourse, ...]
    """The added courses that were not there."""


async def write_backup(settings: Settings, file: IO[bytes], progress: Progress) -> None:
    """Write a backup of the site to a file. Others may go on writing to the database.

    Raises:
        BackupError: there is nothing to back up, or a backup cannot hold it.
        migrate.UnsupportedRevision: this version does not know the database's schema.
    """
    with ArchiveWriter(file) as writer:
        kind, revision, written = await _add_tables(settings, writer, progress)
        await asyncio.to_thread(_add_files, settings, writer)
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        writer.finish(Manifest(described_version(), revision, made_at, kind, written, writer.members))


async def _add_tables(settings: Settings, writer: ArchiveWriter, progress: Progress) -> tuple[str, str, dict[str, int]]:
    """Add all rows. Returns the database's kind, its revision and the number of rows of each table."""
    db = Database(settings.database, pooled=settings.database_transaction_pooling)
    try:
        async with consistent_view(db) as connection:
            revision, schema, tables = await _examine(connection)
            totals = await count_rows(connection, tables)
            written = dict.fromkeys(totals, 0)
            for table in tables:
                number = 0
                async with aclosing(read_rows(connection, table, schema)) as batches:
                    async for batch in batches:
                        number += 1
                        data = encode_batch(batch)
                        await asyncio.to_thread(writer.add, f"database/{table.name}/{number:06}.jsonl", data)
                        written[table.name] += len(batch.rows)
                        progress(sum(written.values()), sum(totals.values()))
            return connection.dialect.name, revision, written
    finally:
        await db.close()


def _add_files(settings: Settings, writer: ArchiveWriter) -> None:
    for name, data in secret_files(settings.data_dir):
        writer.add(name, data)
    for name, path in lesson_files(settings.lessons_dir):
        writer.add(name, path.read_bytes())
    with CourseStore(settings.added_courses_dir).reading() as courses:
        for course, copy in courses:
            for name, path in course_files(course, copy):
                writer.add(name, path.read_bytes())


async def verify_backup(file: IO[bytes]) -> BackupSummary:
    """Read a whole backup, and check every byte and every count of it.

    Raises:
        BackupError: it is damaged, or of a newer version.
    """
    manifest, seen, rows, courses = await asyncio.to_thread(_read_through, file)
    if manifest.revision not in migrate.known_revisions():
        raise BackupError(
            f"The backup is from a newer version of Lockstep ({manifest.version}, at revision {manifest.revision}). "
            "Restore it with that version."
        )
    schema = schema_at(manifest.revision)
    if manifest.rows.keys() != schema.keys():
        raise DamagedArchive("its tables are not those of its revision")
    for table in sorted(rows.keys() | schema.keys()):
        if rows[table] != manifest.rows.get(table):
            raise DamagedArchive(
                f"it has {rows[table]} rows of the table {table} instead of {manifest.rows.get(table)}"
            )
    return BackupSummary(
        manifest.version,
        manifest.revision,
        manifest.created_at,
        sum(manifest.rows.values()),
        len(schema),
        seen["secrets"],
        seen["lessons"],
        courses,
    )


def _read_through(file: IO[bytes]) -> tuple[Manifest, Counter[str], Counter[str], tuple[AddedCourse, ...]]:
    """Compare every file with the manifest; count the files in each folder, and the rows of each table."""
    file.seek(0)
    seen: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    sources: dict[str, AddedCourse | None] = {}
    with ArchiveReader(file) as reader:
        for name, data in reader.members():
            folder, *more = name.split("/")
            seen[folder] += 1
            if folder == "database":
                rows[more[0]] += data.count(b"\n") - 1  # the first line has the columns
            elif folder == "courses":
                sources.setdefault(more[0], None)
                if more[1:] == [SOURCE_FILE]:
                    sources[more[0]] = _source(more[0], data)
        found = reader.manifest.members
        courses = tuple(course for course in sources.values() if course is not None)
        there = [course for course in courses if f"courses/{course.slug}/{course.slug}/course.toml" in found]
        if len(there) < len(sources):
            raise DamagedArchive("it has only a part of an added course")
        return reader.manifest, seen, rows, courses


def _source(slug: str, data: bytes) -> AddedCourse:
    """Where a course comes from."""
    try:
        course = parse_source(data)
    except ValueError:
        course = None
    if course is None or course.slug != slug:
        raise DamagedArchive(f"it does not say where the course {slug} comes from")
    return course


async def restore_backup(
    settings: Settings, file: IO[bytes], progress: Progress, *, replace: bool = False
) -> RestoreSummary:
    """Restore the database, the secrets and the lessons, or change nothing; then the added courses.

    Raises:
        BackupError: the backup cannot be used, or the database has rows and ``replace`` is false.
    """
    summary = await verify_backup(file)
    schema = schema_at(summary.revision)
    file.seek(0)
    with RestoredFiles(settings.data_dir) as files, ArchiveReader(file) as reader:
        async with new_database(settings.database, summary.revision, replace=replace) as connection:
            writer = RowWriter(connection, await reflect(connection, schema))
            await writer.begin()
            for name, data in reader.members():
                if name.startswith("database/"):
                    await writer.write(decode_batch(name.split("/")[1], data, schema))
                    progress(sum(writer.written.values()), summary.rows)
                else:
                    files.add(name, data)
            await _finish(connection, writer, reader.manifest.rows)
            files.put_secrets_in_place()
        files.keep_secrets()
        spare = settings.data_dir / f"lessons-of-backup-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        lessons = files.put_lessons_in_place(settings.lessons_dir, spare)
        store = CourseStore(settings.added_courses_dir)
        return RestoreSummary(summary, lessons, tuple(files.put_courses_in_place(store, summary.courses)))


async def copy_database(source: str, target: str, progress: Progress) -> dict[str, int]:
    """Copy all rows to an empty database of any kind. Returns the number of rows of each table.

    Raises:
        BackupError: the target has rows, or refuses one.
        migrate.UnsupportedRevision: this version does not know the source's schema.
    """
    db = Database(source)
    try:
        async with consistent_view(db) as there:
            revision, schema, tables = await _examine(there)
            totals = await count_rows(there, tables)
            async with new_database(target, revision, replace=False) as connection:
                writer = RowWriter(connection, await reflect(connection, schema))
                await writer.begin()
                for table in tables:
                    async with aclosing(read_rows(there, table, schema)) as batches:
                        async for batch in batches:
                            await writer.write(batch)
                            progress(sum(writer.written.values()), sum(totals.values()))
                await _finish(connection, writer, totals)
        return totals
    finally:
        await db.close()


async def _examine(connection: AsyncConnection) -> tuple[str, Schema, list[Table]]:
    """The revision, schema and tables of a database with rows to read."""
    revision = await connection.run_sync(migrate.revision_of)
    migrate.check_revision(revision)
    if revision is None:
        raise BackupError("The database is empty: there is nothing to read. Check LOCKSTEP_DATABASE_URL.")
    if revision not in migrate.known_revisions():
        raise BackupError("The database is from before the first version. Run 'lockstep db upgrade' first.")
    schema = schema_at(revision)
    return revision, schema, await reflect(connection, schema)


async def _finish(connection: AsyncConnection, writer: RowWriter, expected: Mapping[str, int]) -> None:
    """Check references, and that every row has arrived, and upgrade the schema."""
    await writer.finish()
    tables = await reflect(connection, dict.fromkeys(expected, frozenset()))
    found = await count_rows(connection, tables)
    for table, count in found.items():
        if count != expected[table]:
            raise BackupError(f"The table {table} has {count} rows instead of {expected[table]}. Nothing was changed.")
    await connection.run_sync(migrate.upgrade_connection)
