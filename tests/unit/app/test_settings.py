"""Settings are read from the environment, and invalid ones are rejected with a message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.settings import MAX_SOCKET_PATH_BYTES, InvalidSettings, Settings, project_folder


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("LOCKSTEP_DATABASE_URL", "mysql://x", "must start with sqlite+aiosqlite:// or postgresql+asyncpg://"),
        ("LOCKSTEP_DATABASE_URL", "postgresql://x", "must start with"),
        ("LOCKSTEP_DATABASE_LISTEN_URL", "sqlite+aiosqlite:///x", "must start with postgresql+asyncpg://"),
        ("LOCKSTEP_DATABASE_URL", "postgresql+asyncpg://me@host/x?sslmode=require", "must have ?ssl=require"),
        ("LOCKSTEP_DATABASE_URL", "postgresql+asyncpg://me@host/x?application_name=a", "unknown to the driver"),
        ("LOCKSTEP_DATABASE_URL", "postgresql+asyncpg://me@host:x/x", "its port must be a number"),
        ("LOCKSTEP_DATABASE_URL", "postgresql+asyncpg://me@host:77777/x", "its port must be a number"),
        ("LOCKSTEP_PUBLIC_URL", "learn.example.org", "a scheme and a host"),
        ("LOCKSTEP_PUBLIC_URL", "https://learn.example.org/path", "a scheme and a host"),
        ("LOCKSTEP_PUBLIC_URL", "https://[2001:db8::1", "invalid IPv6 URL"),
        ("LOCKSTEP_PUBLIC_URL", "https://:8000", "a scheme and a host"),
        ("LOCKSTEP_PUBLIC_URL", "ftp://learn.example.org", "a scheme and a host"),
        ("LOCKSTEP_RUNNER_SOCKET", "/" + "x" * MAX_SOCKET_PATH_BYTES, "at most 100 bytes"),
        ("LOCKSTEP_LOG_FORMAT", "xml", "'console' or 'json'"),
        ("LOCKSTEP_SENTRY_DSN", "sentry.example.org/1", "it must look like https://key@sentry.example.org/1"),
        ("LOCKSTEP_SENTRY_DSN", "https://sentry.example.org/1", "it must look like https://key@sentry.example.org/1"),
        ("LOCKSTEP_SENTRY_DSN", "https://key@sentry.example.org", "it must look like https://key@sentry.example.org/1"),
        ("LOCKSTEP_METRICS_ADDRESS", "9464", "it must be an address and a port, such as 127.0.0.1:9464"),
        ("LOCKSTEP_METRICS_ADDRESS", "localhost:9464", "it must be an address and a port, such as 127.0.0.1:9464"),
        ("LOCKSTEP_METRICS_ADDRESS", "127.0.0.1:0", "it must be an address and a port, such as 127.0.0.1:9464"),
        ("LOCKSTEP_METRICS_ADDRESS", "127.0.0.1:65536", "it must be an address and a port, such as 127.0.0.1:9464"),
        ("LOCKSTEP_METRICS_ADDRESS", "::1:9464", "it must be an address and a port, such as 127.0.0.1:9464"),
        ("LOCKSTEP_METRICS_ADDRESS", "[::1]:x", "it must be an address and a port, such as 127.0.0.1:9464"),
        ("LOCKSTEP_MAX_UNFINISHED_RUNS", "0", "it must be a whole number from 1 to 10,000"),
        ("LOCKSTEP_MAX_UNFINISHED_RUNS", "many", "it must be a whole number from 1 to 10,000"),
        ("LOCKSTEP_MAX_UNFINISHED_RUNS", "1.5", "it must be a whole number from 1 to 10,000"),
        ("LOCKSTEP_STORED_MB_PER_ACCOUNT", "1" * 5000, "it must be a whole number from 0 to 1,000,000"),
        ("LOCKSTEP_DATABASE_WAIT_TIMEOUT_S", "nan", "it must be a number from 0.1 to 300"),
        ("LOCKSTEP_STAFF_SECOND_FACTOR", "perhaps", "it must be true or false"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_what_is_possible(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(InvalidSettings) as refusal:
        Settings.read()

    sentence = str(refusal.value)
    assert sentence.startswith(f"{name} cannot be ")
    assert words in sentence
    assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("password", "public_url", "refused"),
    [
        ("lockstep", "https://learn.example.org", True),
        ("lockstep", "", False),
        ("lockstep", "http://localhost:8000", False),
        ("another", "https://learn.example.org", False),
    ],
)
def test_a_public_site_needs_another_password_of_the_database_than_the_default(
    monkeypatch: pytest.MonkeyPatch, password: str, public_url: str, refused: bool
) -> None:
    monkeypatch.setenv("LOCKSTEP_DATABASE_URL", f"postgresql+asyncpg://lockstep:{password}@db/lockstep")
    monkeypatch.setenv("LOCKSTEP_PUBLIC_URL", public_url)
    if not refused:
        assert Settings.read().public_url == public_url
        return
    with pytest.raises(InvalidSettings) as refusal:
        Settings.read()
    assert str(refusal.value).startswith("The database has its default password, which everyone knows. Change it ")
    assert "docs/operate/upgrade.md" in str(refusal.value)


def test_every_bad_value_gets_a_sentence_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_LOG_FORMAT", "xml")
    monkeypatch.setenv("LOCKSTEP_LOG_LEVEL", "loud")

    with pytest.raises(InvalidSettings) as refusal:
        Settings.read()

    assert len(str(refusal.value).splitlines()) == 2


def test_mistakes_in_all_settings_at_once_are_listed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    any_path = {"data_dir", "lessons_dir"}
    variables = {f"LOCKSTEP_{name.upper()}" for name in Settings.model_fields.keys() - any_path}
    for variable in variables:
        monkeypatch.setenv(variable, "/" + "?" * 200)

    with pytest.raises(InvalidSettings) as refusal:
        Settings.read()

    assert {line.partition(" ")[0] for line in str(refusal.value).splitlines()} == variables


def test_mistakes_of_every_kind_are_listed_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those that pydantic finds, one that it finds before them, and those that it would find after them."""
    for name, value in {
        "LOG_FORMAT": "xml",
        "MAX_UNFINISHED_RUNS": "many",
        "PUBLIC_URL": "",
        "SMTP_URL": "smtp://mail.example.org",
        "OIDC": "{not json",
        "OIDC__GOOGLE__CLIENT_ID": "x",
        "DATABASE_URL_FILE": str(tmp_path / "missing"),
    }.items():
        monkeypatch.setenv(f"LOCKSTEP_{name}", value)

    with pytest.raises(InvalidSettings) as refusal:
        Settings.read()

    assert sorted(line.partition(" ")[0] for line in str(refusal.value).splitlines()) == [
        "LOCKSTEP_DATABASE_URL_FILE",
        "LOCKSTEP_LOG_FORMAT",
        "LOCKSTEP_MAX_UNFINISHED_RUNS",
        "LOCKSTEP_OIDC",
        "LOCKSTEP_OIDC__GOOGLE__CLIENT_SECRET",
        "LOCKSTEP_OIDC__…",
        "LOCKSTEP_SMTP_URL",
    ]


def test_variables_of_other_programs_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_URL", "smtp://elsewhere.example.org")
    monkeypatch.setenv("LOCKSTEP_LOG_FORMAT", "xml")

    with pytest.raises(InvalidSettings) as refusal:
        Settings.read()

    assert len(str(refusal.value).splitlines()) == 1


def test_the_database_is_a_file_in_the_data_directory_unless_said_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(tmp_path))
    assert Settings.read().database == f"sqlite+aiosqlite:///{tmp_path}/lockstep.db"

    monkeypatch.setenv("LOCKSTEP_DATABASE_URL", "postgresql+asyncpg://me:secret@host/lockstep")
    settings = Settings.read()
    assert settings.database == "postgresql+asyncpg://me:secret@host/lockstep"
    assert "secret" not in settings.shown_database


def test_paths_are_whole_even_if_the_process_moves_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lessons").mkdir()

    settings = Settings.read()

    assert settings.data_dir == tmp_path / "data"
    assert settings.lessons_dir == tmp_path / "lessons"


def test_where_there_are_no_lessons_it_takes_its_own_unless_a_directory_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings.read().lessons_dir == project_folder("lessons")
    assert (project_folder("lessons") / "achievements.toml").is_file()

    monkeypatch.setenv("LOCKSTEP_LESSONS_DIR", "nowhere")
    assert Settings.read().lessons_dir == tmp_path / "nowhere"


def test_a_socket_too_deep_for_the_system_is_put_where_its_path_is_short() -> None:
    near = Settings(data_dir=Path("/srv/lockstep"))
    deep = Settings(data_dir=Path("/srv") / ("deep/" * 30))

    assert near.socket == Path("/srv/lockstep/run/supervisor.sock")
    assert len(str(deep.socket)) <= MAX_SOCKET_PATH_BYTES
    assert deep.socket == Settings(data_dir=deep.data_dir).socket
    assert deep.socket != Settings(data_dir=deep.data_dir / "x").socket


def test_the_folder_of_such_a_socket_is_not_one_that_a_dead_supervisor_left() -> None:
    folder = Settings(data_dir=Path("/srv") / ("deep/" * 30)).socket.parent

    assert not re.match(r"lockstep-[0-9]+-", folder.name)


def test_an_empty_variable_is_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_RUNNER_SOCKET", "")

    assert Settings.read().runner_socket is None


def test_a_mail_server_needs_a_sender_and_an_address_for_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_SMTP_URL", "smtps://mail.example.org")
    with pytest.raises(InvalidSettings, match="LOCKSTEP_MAIL_FROM and LOCKSTEP_PUBLIC_URL"):
        Settings.read()
    monkeypatch.setenv("LOCKSTEP_MAIL_FROM", "Lockstep <learn@example.org>")
    monkeypatch.setenv("LOCKSTEP_PUBLIC_URL", "https://learn.example.org")
    assert Settings.read().smtp_url == "smtps://mail.example.org"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LOCKSTEP_SMTP_URL", "http://me:secret@mail.example.org"),
        ("LOCKSTEP_SMTP_URL", "smtp://me:secret@mail.example.org/path"),
        ("LOCKSTEP_SMTP_URL", "smtp://me:secret@mail.example.org?tls=no"),
        ("LOCKSTEP_SMTP_URL", "smtps://me:secret@mail.example.org?tls=off"),
        ("LOCKSTEP_MAIL_FROM", "nobody"),
        ("LOCKSTEP_MAIL_FROM", "a@b.test\nbcc: c@d.test"),
        ("LOCKSTEP_SIGN_UP", "sometimes"),
    ],
)
def test_mail_that_cannot_be_is_refused_and_no_password_shown(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidSettings, match=f"{variable} cannot be") as refused:
        Settings.read()
    assert "secret" not in str(refused.value)


CAMPUS = {"ISSUER": "https://login.example.edu", "CLIENT_ID": "lockstep", "CLIENT_SECRET": "hush hush"}


def _set_sites(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"LOCKSTEP_OIDC__{name}", value)


def test_other_sites_are_read_one_variable_a_value_or_from_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_PUBLIC_URL", "https://learn.example.org")
    monkeypatch.setenv("LOCKSTEP_OIDC", '{"google": {"client_id": "g", "client_secret": "s"}}')
    _set_sites(monkeypatch, **{f"CAMPUS__{name}": value for name, value in CAMPUS.items()})

    sites = Settings.read().oidc

    assert {name: (site.issuer, site.label) for name, site in sites.items()} == {
        "google": ("https://accounts.google.com", "Google"),
        "campus": ("https://login.example.edu", "Campus"),
    }
    assert "hush" not in repr(sites)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"CAMPUS__CLIENT_SECRET": ""}, "LOCKSTEP_OIDC__CAMPUS__CLIENT_SECRET is not valid: value should have"),
        ({"CAMPUS__CLIENT_SECERT": "hush"}, "LOCKSTEP_OIDC__CAMPUS__CLIENT_SECERT is not valid: extra"),
        ({"CAMPUS__ISSUER": ""}, "LOCKSTEP_OIDC__CAMPUS__ISSUER is missing"),
        ({"CAMPUS__ISSUER": "login.example.edu"}, "an address, such as https://login.example.org"),
        ({"CAMPUS__ISSUER": "http://login.example.edu"}, "an address, such as https://login.example.org"),
        ({"CAMPUS__ISSUER": "https://me:hush@login.example.edu"}, "an address, such as https://login.example.org"),
        (
            {"MY_CAMPUS__CLIENT_ID": "a", "MY_CAMPUS__CLIENT_SECRET": "hush"},
            "can have at most 30 letters, digits, and hyphens",
        ),
        ({"OTHER__CLIENT_ID": "a"}, "LOCKSTEP_OIDC__OTHER__CLIENT_SECRET is missing"),
        (
            {"OTHER__CLIENT_ID": "a", "OTHER__CLIENT_SECRET": "hush", "OTHER__ISSUER": "https://login.example.edu"},
            "two identity providers have the same issuer",
        ),
        ({"CAMPUS": "hush"}, "LOCKSTEP_OIDC"),
    ],
)
def test_a_site_that_cannot_be_is_refused_without_its_secret(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    monkeypatch.setenv("LOCKSTEP_PUBLIC_URL", "https://learn.example.org")
    _set_sites(monkeypatch, **{**{f"CAMPUS__{name}": value for name, value in CAMPUS.items()}, **variables})

    with pytest.raises(InvalidSettings) as refusal:
        Settings.read()

    assert words in str(refusal.value)
    assert "hush" not in str(refusal.value)


def test_other_sites_need_the_public_address_and_json_that_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    _set_sites(monkeypatch, **{f"CAMPUS__{name}": value for name, value in CAMPUS.items()})
    with pytest.raises(InvalidSettings, match="requires LOCKSTEP_PUBLIC_URL"):
        Settings.read()
    monkeypatch.setenv("LOCKSTEP_OIDC", "{")
    with pytest.raises(InvalidSettings, match="must be a JSON object"):
        Settings.read()


@pytest.mark.parametrize(
    ("address", "listener"),
    [("", None), ("127.0.0.1:9464", ("127.0.0.1", 9464)), ("0.0.0.0:1", ("0.0.0.0", 1)), ("[::1]:9464", ("::1", 9464))],
)
def test_the_address_of_the_metrics_is_an_ip_address_and_a_port(address: str, listener: tuple[str, int] | None) -> None:
    assert Settings(metrics_address=address).metrics_listener == listener


@pytest.mark.parametrize("address", ["127.0.0.1", "9000", "[::1]", "127.0.0.1:9000/", "http://127.0.0.1:9000"])
def test_a_published_address_is_an_address_and_a_port(address: str) -> None:
    with pytest.raises(ValueError, match="it must be an address and a port"):
        Settings(published_address=address)


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("::1:9000", "http://[::1]:9000"),
        ("[::]:9000", "http://[::1]:9000"),
        ("0.0.0.0:9000-9005", "http://127.0.0.1:9000"),
    ],
)
def test_links_begin_with_the_published_address_as_a_browser_writes_it(address: str, url: str) -> None:
    assert Settings(published_address=address).known_url == url
