"""A full-text index of lessons: SQLite's FTS5 with trigrams, in memory.

Trigrams find parts of words, in languages with and without spaces between them. Words of one or two characters, which
are common in Korean and Chinese, have no trigram and are compared with every passage.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.lessons.catalog import CatalogView
from app.lessons.model import Lesson
from app.search.passages import Passage, lesson_passages

_TRIGRAM = 3
_MAX_ROWS = 80
_MAX_LESSONS = 10
_MAX_PASSAGES = 4
"""Per lesson."""
_WEIGHTS = "0.3, 6.0, 1.0, 1.5"
"""Of the lesson's title, the passage's own title, its text, and its code."""


@dataclass(frozen=True, slots=True)
class LessonMatches:
    """A lesson and its best passages for a query."""

    lesson: Lesson
    passages: tuple[Passage, ...]


class LessonIndex:
    """An index of lessons in one language; safe from any thread."""

    def __init__(self, lessons: Iterable[Lesson]) -> None:
        self._passages = [passage for lesson in lessons for passage in lesson_passages(lesson)]
        self._lock = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("CREATE VIRTUAL TABLE passages USING fts5(lesson, title, text, code, tokenize = 'trigram')")
        self._db.executemany(
            "INSERT INTO passages (rowid, lesson, title, text, code) VALUES (?, ?, ?, ?, ?)",
            ((n, p.lesson.title, p.title, p.text, p.code) for n, p in enumerate(self._passages)),
        )

    def find(self, words: Sequence[str]) -> list[LessonMatches]:
        """The passages that contain all words, by lesson, the best first."""
        if not words:
            return []
        with self._lock:
            rows = self._db.execute(*_statement(words)).fetchall()
        by_lesson: dict[str, list[Passage]] = {}
        for (row,) in rows:
            passage = self._passages[row]
            by_lesson.setdefault(passage.lesson.key, []).append(passage)
        return [
            LessonMatches(found[0].lesson, tuple(found[:_MAX_PASSAGES]))
            for found in list(by_lesson.values())[:_MAX_LESSONS]
        ]


def _statement(words: Sequence[str]) -> tuple[str, list[str]]:
    """The query and its parameters. Passages whose titles have the most words come first, lessons before headings."""
    long = [word for word in words if len(word) >= _TRIGRAM]
    conditions, values = [], []
    if long:
        conditions.append("passages MATCH ?")
        values.append(" AND ".join('"{}"'.format(word.replace('"', '""')) for word in long))
    for word in words:
        if len(word) < _TRIGRAM:
            conditions.append("instr(lower(lesson || ' ' || title || ' ' || text || ' ' || code), ?) > 0")
            values.append(word)
    in_title = " + ".join(["(instr(lower(title), ?) > 0)"] * len(words))
    order = [f"{in_title} DESC", "title = lesson DESC", f"bm25(passages, {_WEIGHTS})" if long else "rowid"]
    sql = f"SELECT rowid FROM passages WHERE {' AND '.join(conditions)} ORDER BY {', '.join(order)} LIMIT {_MAX_ROWS}"  # noqa: S608 - only the texts above
    return sql, [*values, *words]


class LessonIndexes:
    """The index of each language, made when it is first searched and again when the lessons have changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[bool, str], tuple[str, LessonIndex]] = {}

    def get(self, catalog: CatalogView, language: str) -> LessonIndex:
        """The current index. Takes up to a second for hundreds of lessons: call it in a thread."""
        key = (catalog.shows_drafts, language)
        with self._lock:
            digest = catalog.digest
            made = self._made.get(key)
            if made is None or made[0] != digest:
                lessons = [
                    entry.lesson
                    for course in catalog.courses(language)
                    for entry in catalog.outline(course.slug, language).lessons
                    if entry.lesson is not None
                ]
                made = self._made[key] = (digest, LessonIndex(lessons))
            return made[1]
