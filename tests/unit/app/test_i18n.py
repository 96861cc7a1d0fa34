"""The choice and use of languages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app import i18n


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("ko", "ko"),
        ("ko-KR,ko;q=0.9,en;q=0.8", "ko"),
        ("zh-TW,zh;q=0.9", "zh"),
        ("zh-Hans-CN", "zh"),
        ("fr-FR,fr;q=0.9,ko;q=0.5,en;q=0.4", "ko"),
        ("en;q=0.1,zh;q=0.9", "zh"),
        ("ko;q=0,en", "en"),
        ("fr", "en"),
        ("*", "en"),
        (";;;q=,,=", "en"),
        ("ko;q=high", "en"),
        ("x" * 10_000, "en"),
    ],
)
def test_the_best_language_there_is_gets_chosen(header: str, language: str) -> None:
    assert i18n.negotiate(header) == language


def test_a_language_is_spoken_inside_its_block_only() -> None:
    with i18n.use_language("ko"):
        assert i18n.current_language() == "ko"
        with i18n.use_language("zh"):
            assert i18n.current_language() == "zh"
        assert i18n.current_language() == "ko"
    assert i18n.current_language() == "en"


def test_an_unknown_message_stays_english() -> None:
    with i18n.use_language("ko"):
        assert i18n.gettext("no such message") == "no such message"
        assert i18n.ngettext("one", "many", 3) == "many"


def test_dates_and_numbers_follow_the_language() -> None:
    day = datetime(2026, 11, 21, 15, 4, tzinfo=UTC)

    assert i18n.number(12345.6) == "12,345.6"
    assert i18n.percent(0.25) == "25%"
    assert i18n.date(day) == "Nov 21, 2026"
    with i18n.use_language("ko"):
        assert i18n.date(day) == "2026. 11. 21."
        assert i18n.date_and_time(day) == "2026. 11. 21. 오후 3:04:00"
    with i18n.use_language("zh"):
        assert i18n.date_and_time(day) == "2026年11月21日 15:04:00"


def test_one_moment_is_shown_by_the_clock_of_each_zone() -> None:
    here = datetime(2026, 11, 21, 23, 30, tzinfo=UTC)
    there = here.astimezone(ZoneInfo("Asia/Seoul"))
    assert here == there

    assert (i18n.date_and_time(here), i18n.date_and_time(there)) == (
        "Nov 21, 2026, 11:30:00\u202fPM",
        "Nov 22, 2026, 8:30:00\u202fAM",
    )
    assert (i18n.date(here), i18n.date(there)) == ("Nov 21, 2026", "Nov 22, 2026")


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        (timedelta(), "1 second ago"),
        (timedelta(seconds=40), "40 seconds ago"),
        (timedelta(minutes=59, seconds=20), "59 minutes ago"),
        (timedelta(hours=5, minutes=50), "6 hours ago"),
        (timedelta(days=3, hours=11, minutes=50), "3 days ago"),
    ],
)
def test_how_long_ago_something_was(passed: timedelta, said: str) -> None:
    assert i18n.relative_time(datetime.now(UTC) - passed) == said
    with i18n.use_language("ko"):
        assert i18n.relative_time(datetime.now(UTC) - passed).endswith("전")
    assert i18n.relative_time(datetime.now(UTC) - passed) == said
