"""The log entries of a request, and what no entry may contain."""

from __future__ import annotations

import json
import logging
import re
import secrets

import pytest
import structlog

from app.main import create_app
from app.observability import configure_logging, redact_path
from app.settings import Settings
from tests.factories.accounts import signed_in_browser, store_account

_SEQUENCES = ("\x1b]0;title\x07", "\x9b2J", "\r", "\u202e", "\udc80")
"""Escape sequences in 7 and 8 bits, a return to the start of the line, text that runs backward, half a character."""


def test_the_token_of_a_mails_link_is_not_logged() -> None:
    assert redact_path(f"/en/email-link/{secrets.token_urlsafe(32)}") == "/en/email-link/…"
    assert redact_path(f"/en/unsubscribe/{'a1' * 16}.reply.65ab12cd.{secrets.token_urlsafe(32)}") == "/en/unsubscribe/…"


@pytest.mark.parametrize("damage", [".", "%3E", "=", ",and more", "/", "\n", "/x"])
@pytest.mark.parametrize(
    "prefix",
    [
        *("/en/email-link/", "/en/unsubscribe/", "//en/email-link/", "/EN/Email-Link/", "/en/email-link"),
        *("/en/groups/join/", "/EN/GROUPS/JOIN/", "/en/groups/reminders/", "/en/groups%2Fjoin", "/en/groups%252Fjoin"),
    ],
)
def test_a_damaged_link_of_a_mail_is_not_logged_either(prefix: str, damage: str) -> None:
    token = secrets.token_urlsafe(32)

    assert redact_path(f"{prefix}{token}{damage}") == f"{prefix}…"
    assert redact_path(f"{prefix}{damage}{token}") in (f"{prefix}…", f"{prefix}/…")


@pytest.mark.parametrize("damage", [".", "%2F", "%3E", "=", ","])
def test_a_token_is_not_logged_wherever_it_stands(damage: str) -> None:
    token = f"A{secrets.token_urlsafe(32)[1:]}"

    for path in (
        f"/{damage}{token}",
        f"/{token}{damage}",
        f"/x{damage}{token}{damage}/y",
        f"/x{damage}lockstep_{token}",
    ):
        assert token[5:] not in redact_path(path)


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_no_entry_holds_control_characters(log_format: str, capfd: pytest.CaptureFixture[str]) -> None:
    configure_logging(Settings(log_format=log_format))
    sent = "".join(_SEQUENCES)

    structlog.get_logger().info(f"an event {sent}", path=f"/{sent}", nested={"name": sent})
    logging.getLogger("a library").warning("a message %s", sent)
    try:
        raise ValueError(sent)
    except ValueError:
        structlog.get_logger().exception("it failed")
        logging.getLogger("a library").exception("it failed there")

    log = capfd.readouterr().err
    assert log.count("ValueError: ") == 2
    assert not [each for each in log if not each.isprintable() and each != "\n"]


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_nobody_can_add_a_line_to_the_log(log_format: str, capfd: pytest.CaptureFixture[str]) -> None:
    configure_logging(Settings(log_format=log_format))

    structlog.get_logger().info("request\nsecond", path="/\n2026-01-01T00:00:00Z [info] sign_in")

    assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/en/courses/distributed-tensorflow/distribution-strategies", "/runs/01a2/events"),
        *(f"/en/courses/c/{'a-very-long-name' * 4}", "/en/groups/01a2/learners/01a2/reminder"),
        *("/en/courses/c/how-to-unsubscribe-from-a-dataset", "/en/courses/process-groups/joining-late"),
    ],
)
def test_other_paths_are_logged_as_they_are(path: str) -> None:
    assert redact_path(path) == path


async def _log_of_a_page(settings: Settings, capfd: pytest.CaptureFixture[str]) -> dict[str, object]:
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        account = await store_account(app.state.db, email="ada.byron@example.org")
        async with await signed_in_browser(app, account) as browser:
            capfd.readouterr()
            await browser.get("/en/settings")
    entries = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    (entry,) = [entry for entry in entries if entry["event"] == "request"]
    assert not re.search("ada.byron|example", str(entry), re.IGNORECASE), "the digits of an ID may be ada"
    return {name: entry.get(name) == value for name, value in {"account": account.id, "address": "127.0.0.1"}.items()}


@pytest.mark.parametrize("named", [False, True])
async def test_the_access_log_names_account_and_address_only_where_that_is_set(
    settings: Settings, capfd: pytest.CaptureFixture[str], named: bool
) -> None:
    chosen = settings.model_copy(update={"log_format": "json", "log_clients": named})

    assert await _log_of_a_page(chosen, capfd) == {"account": named, "address": named}
