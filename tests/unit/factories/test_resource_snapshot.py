from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.factories.resource_snapshot import MAX_GROWTH, ResourceSnapshot

BEFORE = ResourceSnapshot(
    warm_kernels=1,
    zygotes=((10, 1.0),),
    processes=0,
    sandboxes=0,
    cgroups=0,
    supervisor_descriptors=Counter({"socket:[N]": 6}),
    zygote_descriptors=Counter({"/dev/null": 1}),
    supervisor_threads=3,
    zygote_threads=1,
    mounts=Counter({"/proc": 1}),
    files=(),
    supervisor_bytes=100 * 2**20,
    zygote_bytes=600 * 2**20,
)


def test_nothing_is_left_where_nothing_changed() -> None:
    assert BEFORE.left_behind(BEFORE) == []


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"zygotes": ((11, 2.0),)}, "zygotes"),
        ({"processes": 1}, "processes: 0 -> 1"),
        ({"sandboxes": 1}, "sandboxes"),
        ({"cgroups": 3}, "cgroups"),
        ({"supervisor_descriptors": Counter({"socket:[N]": 7})}, "socket:[N] 6 -> 7"),
        ({"supervisor_descriptors": Counter({"socket:[N]": 6, "pipe:[N]": 1})}, "pipe:[N] 0 -> 1"),
        ({"zygote_descriptors": Counter({"/dev/null": 2})}, "/dev/null 1 -> 2"),
        ({"supervisor_threads": 4}, "supervisor_threads"),
        ({"zygote_threads": 2}, "zygote_threads"),
        ({"mounts": Counter({"/proc": 2})}, "mounts"),
        ({"files": ("/tmp/left",)}, "/tmp/left"),
        ({"supervisor_bytes": BEFORE.supervisor_bytes + MAX_GROWTH["supervisor_bytes"] + 1}, "supervisor_bytes"),
        ({"zygote_bytes": BEFORE.zygote_bytes + MAX_GROWTH["zygote_bytes"] + 1}, "zygote_bytes"),
    ],
)
def test_whatever_is_more_than_before_is_named(more: dict[str, Any], word: str) -> None:
    (said,) = replace(BEFORE, **more).left_behind(BEFORE)
    assert word in said


def test_what_was_only_there_for_a_moment_is_no_measure() -> None:
    busy = replace(BEFORE, supervisor_threads=5, supervisor_descriptors=Counter({"socket:[N]": 6, "pipe:[N]": 1}))
    assert busy.least(BEFORE) == BEFORE
    assert BEFORE.least(busy) == BEFORE
