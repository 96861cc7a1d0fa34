"""Secrets come from files, and a file that cannot be used is named without its content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.secret_files import read_secret_files
from app.settings import InvalidSettings, Settings

URL = "postgresql+asyncpg://me:hush@host/lockstep"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(f"{URL}\n")
    return file


def test_a_secret_comes_from_the_file_that_its_variable_names(monkeypatch: pytest.MonkeyPatch, secret: Path) -> None:
    monkeypatch.setenv("LOCKSTEP_DATABASE_URL_FILE", str(secret))
    assert Settings.read().database == URL

    monkeypatch.setenv("LOCKSTEP_DATABASE_URL", "")  # as Compose sets what nobody has set
    assert Settings.read().database == URL


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_only_the_last_line_break_is_left_out(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "secret"
    file.write_bytes(f" s e c\nret {ending}".encode())
    found = read_secret_files({"LOCKSTEP_SMTP_URL_FILE": str(file)})
    assert found.variables == {"LOCKSTEP_SMTP_URL": " s e c\nret "}
    assert found.errors == ()


def test_an_identity_provider_s_secret_comes_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("hush one\n")
    (tmp_path / "two").write_text('{"github": {"client_id": "g", "client_secret": "hush two"}}')
    monkeypatch.setenv("LOCKSTEP_PUBLIC_URL", "https://learn.example.org")
    monkeypatch.setenv("LOCKSTEP_OIDC_FILE", str(tmp_path / "two"))
    monkeypatch.setenv("LOCKSTEP_OIDC__GOOGLE__CLIENT_ID", "id")
    monkeypatch.setenv("LOCKSTEP_OIDC__GOOGLE__CLIENT_SECRET_FILE", str(tmp_path / "one"))

    secrets = {name: provider.client_secret.get_secret_value() for name, provider in Settings.read().oidc.items()}

    assert secrets == {"google": "hush one", "github": "hush two"}


def test_a_file_that_cannot_be_used_is_one_sentence_with_the_reason(tmp_path: Path) -> None:
    contents = {"empty": b"\n", "bytes": b"\xff\xfe", "large": b"x" * 65_537, "nul": b"a\0b"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    reasons = {
        "missing": "no such file or directory",
        "": "it is not a file",
        "pipe": "it is not a file",
        "empty": "it is empty",
        "bytes": "it is not text in UTF-8",
        "large": "it has more than 64 KiB",
        "nul": "it has a NUL character",
    }
    for name, reason in reasons.items():
        path = str(tmp_path / name)
        found = read_secret_files({"LOCKSTEP_SMTP_URL_FILE": path})
        assert found.errors == (f"LOCKSTEP_SMTP_URL_FILE cannot be {path!r}: {reason}.",)
        assert found.variables == {}


def test_a_secret_that_is_set_twice_is_refused(monkeypatch: pytest.MonkeyPatch, secret: Path) -> None:
    monkeypatch.setenv("LOCKSTEP_DATABASE_URL", URL)
    monkeypatch.setenv("LOCKSTEP_DATABASE_URL_FILE", str(secret))
    with pytest.raises(InvalidSettings) as refused:
        Settings.read()
    assert str(refused.value) == ("LOCKSTEP_DATABASE_URL and LOCKSTEP_DATABASE_URL_FILE are both set. Set only one.")


def test_the_content_of_a_file_is_never_shown(monkeypatch: pytest.MonkeyPatch, secret: Path) -> None:
    secret.write_text("hush")
    for setting in ("DATABASE_URL", "DATABASE_LISTEN_URL", "SMTP_URL", "OIDC"):
        monkeypatch.setenv(f"LOCKSTEP_{setting}_FILE", str(secret))

    with pytest.raises(InvalidSettings) as refused:
        Settings.read()

    assert "hush" not in str(refused.value)
    assert [line.partition(" ")[0] for line in str(refused.value).splitlines()] == [
        *("LOCKSTEP_OIDC", "LOCKSTEP_DATABASE_URL_FILE", "LOCKSTEP_DATABASE_LISTEN_URL_FILE"),
        "LOCKSTEP_SMTP_URL_FILE",
        *("LOCKSTEP_SMTP_URL", "LOCKSTEP_OIDC__…"),
    ]


def test_only_secrets_come_from_files(tmp_path: Path) -> None:
    variables = {"LOCKSTEP_LOG_LEVEL_FILE": "x", "OTHER_DATABASE_URL_FILE": "y", "LOCKSTEP_SMTP_URL_FILE": ""}
    found = read_secret_files(variables)
    assert found.variables == {"LOCKSTEP_LOG_LEVEL_FILE": "x", "OTHER_DATABASE_URL_FILE": "y"}
    assert found.errors == ()
