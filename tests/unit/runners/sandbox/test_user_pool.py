"""Which user each session runs as."""

from __future__ import annotations

import os

import pytest

from runners.config.settings import RunnerSettings
from runners.sandbox.user_pool import NoUserAvailable, UserPool, session_users


def test_no_two_sandboxes_are_of_one_user() -> None:
    users = UserPool(range(10, 13))
    assert [users.acquire(), users.acquire(), users.acquire()] == [10, 11, 12]
    with pytest.raises(NoUserAvailable, match="10 to 12"):
        users.acquire()


def test_a_user_is_lent_again_only_once_given_back_the_longest_rested_first() -> None:
    users = UserPool(range(10, 13))
    first, second = users.acquire(), users.acquire()
    users.release(second)
    users.release(first)
    assert [users.acquire(), users.acquire(), users.acquire()] == [12, second, first]


def test_where_there_are_no_users_to_lend_sessions_run_as_the_supervisor() -> None:
    users = UserPool(range(0))
    assert users.acquire() is None
    users.release(None)
    assert users.acquire() is None


def test_root_lends_the_users_after_the_zygotes_own(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = RunnerSettings(service_uid=70_000, max_sessions=40, warm_kernels=2)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert session_users(settings) == range(70_001, 70_001 + 40 + 6 + 64)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not session_users(settings)
