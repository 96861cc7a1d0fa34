"""Cached pages: only of the current edition, and not too many."""

from __future__ import annotations

from app.web.page_cache import PageCache


class Editions:
    """An edition that a test can change."""

    now = "1"

    def __call__(self) -> str:
        return self.now


def test_a_page_is_found_under_its_path_until_the_edition_changes() -> None:
    editions = Editions()
    cache = PageCache(editions)
    kept = cache.put("/en/", lambda: "first")

    assert cache.find("/en/") is kept
    assert cache.find("/ko/") is None
    editions.now = "2"
    assert cache.find("/en/") is None
    cache.put("/en/", lambda: "second")
    assert (found := cache.find("/en/"))
    assert found.body == b"second"


def test_a_page_rendered_while_the_edition_changes_is_not_taken_for_the_new_one() -> None:
    editions = Editions()
    cache = PageCache(editions)

    def render() -> str:
        editions.now = "2"
        return "half old"

    cache.put("/en/", render)

    assert cache.find("/en/") is None


def test_the_page_that_was_asked_for_least_lately_makes_room() -> None:
    cache = PageCache(Editions(), 2)
    for path in ("/a", "/b"):
        cache.put(path, str)
    cache.find("/a")
    cache.put("/c", str)

    assert [path for path in ("/a", "/b", "/c") if cache.find(path)] == ["/a", "/c"]


def test_a_shelf_without_room_keeps_nothing() -> None:
    cache = PageCache(Editions(), 0)

    assert cache.put("/en/", lambda: "page").body == b"page"
    assert cache.find("/en/") is None
