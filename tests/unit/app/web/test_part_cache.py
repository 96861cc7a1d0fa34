"""Kept parts: under their key only, within a limit of memory, and no longer than they last."""

from __future__ import annotations

import time

import pytest

from app.settings import Settings
from app.web.gzip_parts import KeptPart
from app.web.part_cache import PartCache, part_cache_bytes


def test_a_part_is_found_under_its_own_key_only() -> None:
    cache = PartCache[KeptPart]()
    part = KeptPart(b"for Ada")
    cache.keep(("en", "ada"), part)

    assert cache.find(("en", "ada")) is part
    assert cache.find(("en", "bob")) is None
    assert cache.find(("ko", "ada")) is None


def test_the_least_recently_used_are_dropped_when_there_is_no_room() -> None:
    cache = PartCache[KeptPart](KeptPart(b"x" * 10).size * 2)
    for name in "ab":
        cache.keep(name, KeptPart(b"x" * 10))
    cache.find("a")
    cache.keep("c", KeptPart(b"x" * 10))
    cache.keep("too large", KeptPart(b"x" * 100))
    cache.keep("c", KeptPart(b"y" * 10))  # replaced: its room is counted once

    assert [name for name in ("a", "b", "c", "too large") if cache.find(name)] == ["a", "c"]


def test_a_part_whose_time_is_over_is_rendered_by_one_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = PartCache[KeptPart]()
    old, new = KeptPart(b"5 seconds ago"), KeptPart(b"8 seconds ago")
    at = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: at)
    cache.keep("list", old, lasts_s=2)
    assert cache.find("list") is old
    at += 3

    assert cache.find("list") is None
    assert cache.find("list") is old  # others get it while the first renders
    at += 6
    assert cache.find("list") is None  # the first has failed: another one tries
    cache.keep("list", new, lasts_s=2)
    assert cache.find("list") is new


def test_in_development_nothing_is_kept_because_templates_change() -> None:
    assert part_cache_bytes(Settings(environment="development")) == 0
    assert part_cache_bytes(Settings()) > 0
