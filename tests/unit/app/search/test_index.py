"""The full-text index of lessons."""

from __future__ import annotations

import pytest

from app.lessons.catalog import Catalog
from app.search.index import LessonIndex, LessonIndexes
from app.search.passages import lesson_passages
from app.web.excerpt import query_words
from tests.factories.shipped_lessons import shipped_catalog

INDEXES = LessonIndexes()
"""Of all tests, because filling one takes half a second."""


@pytest.fixture
def catalog() -> Catalog:
    return shipped_catalog()


def index(catalog: Catalog, language: str) -> LessonIndex:
    return INDEXES.get(catalog, language)


def first(catalog: Catalog, language: str, query: str) -> tuple[str, str]:
    """The slug of the best lesson, and the anchor of its best passage."""
    best = index(catalog, language).find(query_words(query))[0]
    return best.lesson.slug, best.passages[0].anchor


def test_a_title_comes_before_mentions(catalog: Catalog) -> None:
    assert first(catalog, "en", "Mixed precision")[0] == "mixed-precision"
    assert first(catalog, "en", "PARAMETER servers")[0] == "parameter-servers"


def test_code_is_found_with_its_cell(catalog: Catalog) -> None:
    for match in index(catalog, "en").find(query_words("experimental_distribute_dataset")):
        for passage in match.passages:
            assert "experimental_distribute_dataset" in passage.code + passage.text
    assert any(
        passage.anchor.startswith("cell-")
        for match in index(catalog, "en").find(query_words("experimental_distribute_dataset"))
        for passage in match.passages
    )


def test_parts_of_words_and_short_words_are_found_in_every_language(catalog: Catalog) -> None:
    assert index(catalog, "en").find(query_words("gradi"))
    assert index(catalog, "ko").find(query_words("전략"))
    assert index(catalog, "zh").find(query_words("梯度"))
    assert index(catalog, "zh").find(query_words("梯度 replica")) == index(catalog, "zh").find(
        query_words("replica 梯度")
    )


def test_all_words_must_be_in_the_same_passage(catalog: Catalog) -> None:
    assert index(catalog, "en").find(query_words("strategy"))
    assert index(catalog, "en").find(query_words("strategy zebra")) == []


@pytest.mark.parametrize("query", ['"', "' OR 1=1", "a* NEAR(b)", "title:x", "%", "_", "\\", "-", "\0", "\ud800", "😀"])
def test_no_query_is_an_error(catalog: Catalog, query: str) -> None:
    for match in index(catalog, "en").find(query_words(query)):
        assert all(match.passages)


def test_passages_have_anchors_of_the_page_and_no_answers(catalog: Catalog) -> None:
    for lesson in catalog.every():
        anchors = {"", *(heading.id for heading in lesson.toc), *(f"cell-{cell.name}" for cell in lesson.shown_cells)}
        passages = list(lesson_passages(lesson))
        assert {passage.anchor for passage in passages} <= anchors
        for cell in lesson.exercises:
            shown = next(passage for passage in passages if passage.anchor == f"cell-{cell.name}")
            assert shown.code == cell.code
            assert cell.exercise is not None
            assert cell.exercise.solution not in shown.code


def test_text_is_plain(catalog: Catalog) -> None:
    for lesson in catalog.every():
        for passage in lesson_passages(lesson):
            assert "&#" not in passage.text
            assert type(passage.text) is str


def test_an_index_is_kept_until_the_lessons_change(catalog: Catalog) -> None:
    indexes = LessonIndexes()
    before = indexes.get(catalog, "en")
    assert indexes.get(catalog, "en") is before
    assert indexes.get(catalog.with_drafts, "en") is not before
