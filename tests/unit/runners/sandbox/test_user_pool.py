"""Which user each session runs as."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runners.config.settings import RunnerSettings
from runners.sandbox.user_pool import NoUserAvailable, NoUserRange, UserPool, claim_users, session_users


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
    assert session_users(settings) == range(70_002, 70_002 + 40 + 6 + 64)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not session_users(settings)


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions have users of their own."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.parametrize(("sessions", "first"), [(112, 61_000), (113, 65_536), (200, 65_536)])
def test_no_session_is_a_user_that_systemd_gives_to_services(
    as_root: None, tmp_path: Path, sessions: int, first: int
) -> None:
    settings = claim_users(RunnerSettings(max_sessions=sessions), tmp_path / "claims")
    assert settings.service_uid == first
    assert not set(session_users(settings)) & {*range(61_184, 65_520), 65_534, 65_535}


@contextmanager
def another_supervisor(users: range, claims: Path) -> Iterator[None]:
    """Another process that has claimed these users."""
    code = f"import fcntl; f = open({str(claims)!r}, 'w'); fcntl.lockf(f, fcntl.LOCK_EX, {len(users)}, {users[0]})"
    command = [sys.executable, "-c", f"{code}; print('claimed', flush=True); __import__('sys').stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdin
        other.stdout.readline()
        yield
        other.stdin.close()


def test_two_supervisors_have_no_user_in_common(as_root: None, tmp_path: Path) -> None:
    settings = RunnerSettings(service_uid=70_000, max_sessions=30)  # 102 users with the supervisor's and the zygotes'
    with another_supervisor(range(70_100, 70_200), tmp_path / "claims"):
        assert claim_users(settings, tmp_path / "claims").service_uid == 70_000 + 2 * 102
    assert claim_users(settings, tmp_path / "claims").service_uid == 70_000


@pytest.mark.parametrize(
    ("file", "line", "first"),
    [
        ("passwd", "ada:x:70050:100:Ada:/home/ada:/bin/sh", 70_051),
        ("group", "staff:x:70101:ada,bob", 70_102),
        ("subuid", "ada:70100:65536", 135_636),
        ("subgid", "ada:65536:4500", 70_036),
        ("passwd", "lockstep:x:70000:70000::/:/sbin/nologin", 70_000),
        ("group", "lockstep:x:70000:", 70_000),
        ("subuid", "ada:100000:65536", 70_000),
        ("passwd", "# of NIS\n+::::::", 70_000),
    ],
)
def test_no_session_is_a_user_of_an_account_of_the_machine(
    as_root: None, tmp_path: Path, file: str, line: str, first: int
) -> None:
    (tmp_path / file).write_text(f"root:x:0:0:root:/root:/bin/sh\n{line}\n")
    settings = RunnerSettings(service_uid=70_000, max_sessions=30)  # to 70_101

    assert claim_users(settings, tmp_path / "claims", etc=tmp_path).service_uid == first


def test_accounts_with_very_many_numbers_are_passed_by(as_root: None, tmp_path: Path) -> None:
    (tmp_path / "subuid").write_text("".join(f"user{n}:{100_000 + 65_536 * n}:65536\n" for n in range(300)))
    settings = RunnerSettings(service_uid=100_000, max_sessions=30)

    assert claim_users(settings, tmp_path / "claims", etc=tmp_path).service_uid == 100_000 + 65_536 * 300


def test_where_too_few_users_exist_it_says_what_to_do(as_root: None, tmp_path: Path) -> None:
    mapped = tmp_path / "uid_map"
    mapped.write_text("0 100000 65536\n")
    with pytest.raises(NoUserRange, match=r"^Sessions need 269 .* set LOCKSTEP_SERVICE_UID .* or lower"):
        claim_users(RunnerSettings(max_sessions=197), tmp_path / "claims", mapped)
