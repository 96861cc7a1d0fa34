"""What the doctor says about running a site: pure judgements, and a real mail server and database."""

from __future__ import annotations

import pytest

from app.cli import operating_checks
from app.cli.operating_checks import (
    GiB,
    check_mail,
    check_operation,
    judge_clock,
    judge_disk,
    judge_memory,
    judge_pool,
    judge_proxy,
)
from app.db import Database
from app.settings import Settings
from runners.wire.protocol import Health, Safeguard
from tests.factories.http_server import free_port
from tests.factories.smtp_server import SmtpMailbox, serve_smtp

PUBLIC = "https://learn.example.org"


@pytest.mark.parametrize(
    ("free", "total", "ok"), [(50 * GiB, 100 * GiB, True), (1 * GiB, 4 * GiB, False), (30 * GiB, 1000 * GiB, False)]
)
def test_a_disk_that_is_nearly_full_is_named(free: int, total: int, ok: bool) -> None:
    assert judge_disk(free, total).ok is ok


@pytest.mark.parametrize(
    ("synchronized", "ahead_s", "ok"),
    [(True, None, True), (None, 1.0, True), (False, None, False), (True, 3600.0, False), (True, -60.0, False)],
)
def test_a_clock_that_is_wrong_is_named(synchronized: bool | None, ahead_s: float | None, ok: bool) -> None:
    assert judge_clock(synchronized, ahead_s).ok is ok


@pytest.mark.parametrize(
    ("url", "trusted", "ok"),
    [
        ("", "", True),
        ("http://localhost:8000", "", True),
        (PUBLIC, "172.18.0.2", True),
        (PUBLIC, "", False),
        (PUBLIC, "*", False),
        ("http://learn.example.org", "172.18.0.2", False),
    ],
)
def test_a_proxy_that_is_not_named_or_not_encrypted_is_pointed_out(url: str, trusted: str, ok: bool) -> None:
    assert judge_proxy(url, {"FORWARDED_ALLOW_IPS": trusted}).ok is ok


def test_a_pool_leaves_connections_to_others() -> None:
    assert judge_pool(15, 97).ok
    assert not judge_pool(95, 97).ok


@pytest.mark.parametrize(("limit", "ok"), [("2048", True), ("65536", False), ("", True)])
def test_a_session_that_could_use_up_the_machine_is_named(limit: str, ok: bool) -> None:
    health = Health(status="ready", max_sessions=27, settings={"LOCKSTEP_LIMITS__MEMORY_MB": limit})
    assert judge_memory(health, 16 * GiB).ok is ok
    assert judge_memory(None, 16 * GiB).ok


def test_a_limit_of_memory_that_is_only_watched_is_not_called_the_most() -> None:
    watched = Safeguard(kind="limit", name="memory", in_force=False, detail="only watched", essential=True)
    told = {"LOCKSTEP_LIMITS__MEMORY_MB": "2048"}
    found = judge_memory(Health(status="ready", max_sessions=2, settings=told, safeguards=[watched]), 16 * GiB)

    assert (found.ok, "a session can take more" in found.detail) == (False, True)


async def test_a_mail_server_is_asked_without_sending_anything() -> None:
    def sending_by(url: str) -> Settings:
        return Settings(smtp_url=url, mail_from="learn@example.org", public_url=PUBLIC)

    postbox = SmtpMailbox()
    with serve_smtp(postbox) as address:
        assert (await check_mail(sending_by(f"smtp://{address}?tls=off"))).ok
        encrypted = await check_mail(sending_by(f"smtp://{address}"))
    down = await check_mail(sending_by(f"smtp://u:secret@127.0.0.1:{free_port()}?tls=off"))
    assert (encrypted.ok, down.ok, postbox.mails) == (False, False, [])
    assert "STARTTLS" in encrypted.detail
    assert "secret" not in down.detail
    assert (await check_mail(Settings())).ok


async def test_every_part_is_looked_at_on_both_databases(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operating_checks, "_is_synchronized", lambda: True)
    url = database.engine.url.render_as_string(hide_password=False)
    found = await check_operation(settings.model_copy(update={"database_url": url}), None)
    assert [check.name for check in found] == ["settings", "disk", "clock", "mail", "proxy", "pool", "memory"]
    assert [check.name for check in found if not check.ok and check.name != "disk"] == []


def test_linux_says_whether_something_keeps_the_clock_right() -> None:
    assert operating_checks._is_synchronized() in (True, False, None)
