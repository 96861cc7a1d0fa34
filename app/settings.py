"""The settings of the web application: one class, read from ``LOCKSTEP_*`` variables and validated."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import timedelta
from email.utils import parseaddr
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from app.database_url import DRIVERS, database_url_error, has_default_password
from app.secret_files import read_secret_files
from app.setting_names import find_unknown_variables

MAX_SOCKET_PATH_BYTES = 100
"""The kernel's limit for the path of a Unix socket is 107 bytes."""

_PREFIX = "LOCKSTEP_"
_CREDENTIALS = re.compile(r"//[^/\s]*@")


_PUBLISHED = re.compile(r"(?P<host>[\w.-]+|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]?):(?P<port>[0-9]{1,5})(-[0-9]{1,5})?")
_ALL_INTERFACES = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Addresses that mean all of a machine, and how a browser on it reaches them."""
_PROVIDER_NAME = re.compile(r"[a-z][a-z0-9-]{0,29}")
_KNOWN_PROVIDERS = {"google": ("https://accounts.google.com", "Google"), "github": ("https://github.com", "GitHub")}
"""Issuers and labels of providers known by name."""
_LOGGABLE_PROVIDER_FIELDS = {"issuer", "label"}


class InvalidSettings(Exception):
    """Settings have invalid values or misspelled names. ``str()`` has a sentence about each."""


class IdentityProviderSettings(BaseModel):
    """A site whose accounts can sign in here: ``LOCKSTEP_OIDC__GOOGLE__CLIENT_ID``, and so on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    issuer: str = Field(default="", max_length=200)
    """The provider's issuer URL, exactly as in its discovery document. ``google`` and ``github`` have a built-in one.
    """
    client_id: str = Field(min_length=1, max_length=500)
    """The client ID that the provider gave you."""
    client_secret: SecretStr = Field(min_length=1)
    """The client secret that the provider gave you."""
    label: str = Field(default="", max_length=40)
    """The provider's name on our pages. The default is the name in the variable, capitalized."""

    @field_validator("issuer")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        local = parts.hostname is not None and not is_public_url(url)
        plain = not (parts.query or parts.fragment or "@" in parts.netloc or url != url.strip())
        if url and not (plain and parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and local))):
            raise ValueError("it must be an address, such as https://login.example.org")
        return url


class _Environment(EnvSettingsSource):
    """The environment with secrets from files, and without a value of ``LOCKSTEP_OIDC`` that is not JSON."""

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        super().__init__(settings_cls)
        variables = read_secret_files(os.environ).variables
        self.env_vars = {name.lower(): value for name, value in variables.items() if not _is_invalid_json(name, value)}


class Settings(BaseSettings):
    """The settings for operators. The variable of ``data_dir`` is ``LOCKSTEP_DATA_DIR``, and so on."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, frozen=True, extra="ignore", validate_default=False, env_nested_delimiter="__"
    )

    data_dir: Path = Path("data")
    """The directory for everything that must survive a restart: the database, data sets, secrets, the supervisor's
    socket."""
    database_url: str = ""
    """``sqlite+aiosqlite:///path`` or ``postgresql+asyncpg://user:password@host/name``. If empty, SQLite in the data
    directory."""
    database_connections: int = Field(default=15, ge=1, le=1000)
    """Connections of one web process to the database. All web processes together need fewer than PostgreSQL's
    ``max_connections``."""
    database_wait_timeout_s: float = Field(default=10, ge=0.1, le=300)
    """How long a request waits for a connection, or for its turn to write to SQLite, before it is answered with 503
    and ``Retry-After``."""
    database_statement_timeout_s: float = Field(default=60, ge=1, le=3600)
    """How long one statement of PostgreSQL may take. Migrations have no limit."""
    database_transaction_pooling: bool = False
    """Whether ``LOCKSTEP_DATABASE_URL`` leads to PgBouncer or another pooler in transaction mode. No prepared statement
    is used twice then."""
    database_listen_url: str = ""
    """An address of PostgreSQL itself, for one connection of each web process that hears of changes by the others. Set
    it if ``LOCKSTEP_DATABASE_URL`` leads to a pooler in transaction mode; without it, changes arrive late there."""
    runner_socket: Path | None = None
    """The socket of a runner that someone else starts. If empty, ``lockstep serve`` starts its own."""
    lessons_dir: Path = Path("lessons")
    """The directory of courses. If it is not set and there is no directory ``lessons``, Lockstep serves the lessons
    that it comes with."""
    pdf_browser: Path | None = None
    """Chromium or Chrome, such as ``/usr/bin/chromium``, which prints lessons as PDFs. If empty, pages offer none. The
    server must not run as root, or the browser cannot isolate what learners' code displayed."""
    lessons_source: str = ""
    """Where a code host shows the directory of courses, such as ``https://github.com/owner/name/blob/main/lessons``.
    If set, lessons link to their source there, and to its editor if the host has one. Courses from elsewhere link to
    their own repositories instead."""
    colab_notebooks: str = ""
    """A folder on GitHub with the notebooks of ``lockstep lesson export``, such as
    ``https://github.com/owner/name/blob/main/notebooks``. If set, lessons link to ``COURSE/LESSON.ipynb`` in it, opened
    in Colab."""
    public_url: str = ""
    """The address at which learners reach the server, such as ``https://learn.example.org``. Set it if there is a
    proxy."""
    published_address: str = ""
    """Where a container's port is published, such as ``127.0.0.1:9000``; of a range of ports, links name the first.
    Links in the terminal begin with it if there is no ``LOCKSTEP_PUBLIC_URL``. Compose sets it."""
    environment: Literal["production", "development"] = "production"
    """``development`` reads templates again when they change."""
    log_format: Literal["console", "json"] = "console"
    """Lines for people, or JSON for programs."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe messages to log."""
    log_clients: bool = False
    """Whether the log names the account and the address of each request. The privacy notice of your site should then
    say so."""
    sentry_dsn: SecretStr = SecretStr("")
    """The DSN of a project in Sentry, or a service that speaks its protocol, to which unexpected errors are reported:
    their type and where they happened, without their message. If empty, none are."""
    metrics_address: str = ""
    """The address and port on which Prometheus can read ``/metrics``, such as ``127.0.0.1:9464``. Whoever can connect
    to it can read the metrics. If empty, there are none."""
    max_unfinished_runs: int = Field(default=32, ge=1, le=10_000)
    """How many runs one learner may have waiting or running."""
    stored_mb_per_account: int = Field(default=200, ge=0, le=1_000_000)
    """Code and output stored for a learner with an account, and also the amount one web process stores for them
    within an hour. 0 for any amount."""
    stored_mb_per_staff: int = Field(default=200, ge=0, le=1_000_000)
    """The same for an instructor or an admin."""
    stored_mb_per_visitor: int = Field(default=50, ge=0, le=1_000_000)
    """The same for a visitor without an account."""
    stored_mb_per_address: int = Field(default=200, ge=0, le=1_000_000)
    """What visitors without accounts may store within an hour from one public network address, in each web process. 0
    for any amount."""
    stored_gb_of_visitors: int = Field(default=10, ge=0, le=1_000_000)
    """Code and output stored for all visitors without accounts together. The oldest is deleted first. 0 for any
    amount."""
    output_retention_days: int = Field(default=180, ge=0, le=36_500)
    """How long the output of a run is kept. 0 to keep it forever."""
    visitors_per_address: int = Field(default=60, ge=0, le=100_000)
    """How many visitors may run code from one public network address within 20 minutes, in each web process. They may
    have a quarter as many live outputs open. 0 for any number."""
    visitor_retention_days: int = Field(default=396, ge=0, le=36_500)
    """How long the data of a visitor without an account is kept after they were last seen. The default is 13 months,
    because their cookie lasts 12. 0 to keep it forever."""
    audit_retention_days: int = Field(default=730, ge=0, le=36_500)
    """How long the audit log keeps what admins did. 0 to keep it forever."""
    hold_first_comments: int = Field(default=0, ge=0, le=100)
    """How many of a new account's comments wait for an instructor's approval, at ``/en/moderation``."""
    connection_stall_timeout_s: float = Field(default=60, ge=1, le=3600)
    """How long a browser may read nothing of a response before the connection is closed and its memory freed. A slow
    browser that keeps reading is not affected."""
    submit_timeout_s: float = Field(default=1.5, ge=0, le=30)
    """How long a press of Run keeps trying while the runner does not answer, before the learner sees an error."""

    sign_up: Literal["open", "invitation", "closed"] = "open"
    """Who may create an account: everyone, people with an invitation, or nobody."""
    staff_second_factor: bool = False
    """Whether instructors and admins need a passkey or an authenticator app: without one, their accounts can do only
    what learners can."""
    smtp_url: str = ""
    """The mail server: ``smtp://user:password@host:587`` (STARTTLS), ``smtps://…`` or ``smtp://host:25?tls=off``.
    Requires ``LOCKSTEP_MAIL_FROM`` and ``LOCKSTEP_PUBLIC_URL``. If empty, no email is sent and links are written to
    the log."""
    mail_from: str = ""
    """The sender of emails, such as ``Lockstep <learn@example.org>``."""

    oidc: dict[str, IdentityProviderSettings] = Field(default={})
    """The identity providers whose accounts can sign in, as one JSON object or as one variable for each value.
    Requires ``LOCKSTEP_PUBLIC_URL``."""

    @field_validator("data_dir", "lessons_dir")
    @classmethod
    def _whole_path(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @field_validator("runner_socket")
    @classmethod
    def _short_path(cls, path: Path | None) -> Path | None:
        if path is None or str(path) == ".":
            return None
        whole = path.expanduser().absolute()
        if len(os.fsencode(whole)) > MAX_SOCKET_PATH_BYTES:
            raise ValueError(f"a socket path can have at most {MAX_SOCKET_PATH_BYTES} bytes: {whole}")
        return whole

    @field_validator("database_url")
    @classmethod
    def _async_driver(cls, url: str) -> str:
        if url and (error := database_url_error(url)):
            raise ValueError(error)
        return url

    @field_validator("database_listen_url")
    @classmethod
    def _postgresql(cls, url: str) -> str:
        if url and not url.startswith(DRIVERS[1]):
            raise ValueError(f"it must start with {DRIVERS[1]}")
        if error := url and database_url_error(url):
            raise ValueError(error)
        return url

    @field_validator("public_url")
    @classmethod
    def _origin(cls, url: str) -> str:
        scheme, _, host = url.rstrip("/").partition("://")
        if url and (scheme not in ("http", "https") or not urlsplit(url).hostname or set(host) & set("/?#@ ")):
            raise ValueError("it must be a scheme and a host, such as https://learn.example.org")
        return url.rstrip("/")

    @field_validator("published_address")
    @classmethod
    def _published(cls, address: str) -> str:
        if address and not _PUBLISHED.fullmatch(address):
            raise ValueError("it must be an address and a port, such as 127.0.0.1:9000")
        return address

    @field_validator("pdf_browser")
    @classmethod
    def _program(cls, path: Path | None) -> Path | None:
        if path is None or str(path) == ".":
            return None
        whole = path.expanduser().absolute()
        if not os.access(whole, os.X_OK) or whole.is_dir():
            raise ValueError(f"there is no program {whole}")
        return whole

    @field_validator("lessons_source", "colab_notebooks")
    @classmethod
    def _folder_address(cls, url: str) -> str:
        parts = urlsplit(url)
        plain = not (parts.query or parts.fragment or "@" in parts.netloc) and url.isascii() and url.isprintable()
        if url and (parts.scheme != "https" or not parts.hostname or not plain or set(url) & set(' "<>')):
            raise ValueError("it must be an address such as https://github.com/owner/name/blob/main/lessons")
        return url.rstrip("/")

    @field_validator("colab_notebooks")
    @classmethod
    def _github(cls, url: str) -> str:
        if url and (urlsplit(url).hostname != "github.com" or "/blob/" not in url):
            raise ValueError("Colab opens notebooks from https://github.com/owner/name/blob/branch/folder")
        return url

    @field_validator("sentry_dsn")
    @classmethod
    def _project(cls, dsn: SecretStr) -> SecretStr:
        parts = urlsplit(dsn.get_secret_value())
        whole = parts.scheme in ("http", "https") and parts.username and parts.hostname and parts.path.strip("/")
        if dsn.get_secret_value() and not whole:
            raise ValueError("it must look like https://key@sentry.example.org/1")
        return dsn

    @field_validator("metrics_address")
    @classmethod
    def _address_and_port(cls, address: str) -> str:
        if address and split_address(address) is None:
            raise ValueError("it must be an address and a port, such as 127.0.0.1:9464")
        return address

    @field_validator("smtp_url")
    @classmethod
    def _smtp_server(cls, url: str) -> str:
        parts = urlsplit(url)
        if url and (parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.path not in ("", "/")):
            raise ValueError("it must look like smtp://user:password@mail.example.org:587 or smtps://…")
        if parts.query and (parts.query != "tls=off" or parts.scheme == "smtps"):
            raise ValueError("the only option after the ? is tls=off, and only for smtp://")
        return url

    @field_validator("mail_from")
    @classmethod
    def _sender(cls, sender: str) -> str:
        if sender and (not re.fullmatch(r"[^@\s]+@[^@\s]+", parseaddr(sender)[1]) or not sender.isprintable()):
            raise ValueError("it must be an address, such as Lockstep <learn@example.org>")
        return sender

    @field_validator("oidc")
    @classmethod
    def _whole_sites(cls, sites: dict[str, IdentityProviderSettings]) -> dict[str, IdentityProviderSettings]:
        whole: dict[str, IdentityProviderSettings] = {}
        for name, site in sites.items():
            variable = f"{_PREFIX}OIDC__{name.upper()}"
            issuer, label = _KNOWN_PROVIDERS.get(name, ("", name.capitalize()))
            if not _PROVIDER_NAME.fullmatch(name):
                raise ValueError(f"the name in {variable}__… can have at most 30 letters, digits, and hyphens")
            if not (site.issuer or issuer):
                raise ValueError(f"{variable}__ISSUER is missing")
            whole[name] = site.model_copy(update={"issuer": site.issuer or issuer, "label": site.label or label})
        if len({site.issuer for site in whole.values()}) < len(whole):
            raise ValueError("two identity providers have the same issuer")
        return whole

    @model_validator(mode="after")
    def _with_companions(self) -> Self:
        if missing := list(_missing_companions(self.__dict__)):
            raise ValueError("\n".join(missing))
        return self

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Called by pydantic-settings: where values come from, the most important first."""
        return init_settings, _Environment(settings_cls)

    @classmethod
    def read(cls) -> Self:
        """Read the environment.

        Raises:
            InvalidSettings: with one sentence for each invalid value and each misspelled name.
        """
        environment = read_secret_files(os.environ)
        errors = [str(one) for one in find_unknown_variables(os.environ, cls.model_fields) if one.meant]
        errors += environment.errors
        if any(_is_invalid_json(*variable) for variable in environment.variables.items()):
            errors.append("LOCKSTEP_OIDC is not valid: it must be a JSON object.")
        try:
            settings = cls()
        except ValidationError as e:
            details = e.errors(include_url=False)
            errors += _format_errors(details, environment.from_files)
            if any(error["loc"] for error in details):  # then pydantic has not compared the settings with each other
                errors += _missing_companions(_fields_of(environment.variables))
        if errors:
            raise InvalidSettings("\n".join(errors))
        lessons = settings.lessons_dir.absolute()
        if "lessons_dir" not in settings.model_fields_set and not lessons.is_dir():
            lessons = project_folder("lessons")
        return settings.model_copy(update={"data_dir": settings.data_dir.absolute(), "lessons_dir": lessons})

    @cached_property
    def database(self) -> str:
        return self.database_url or f"sqlite+aiosqlite:///{self.data_dir.absolute() / 'lockstep.db'}"

    @property
    def last_good_courses(self) -> Path:
        """The folder with copies of the last good version of each course."""
        return self.data_dir / "last-good-courses"

    @property
    def added_courses_dir(self) -> Path:
        """The folder of the courses that ``lockstep course add`` has copied."""
        return self.data_dir / "courses"

    @property
    def visitor_retention(self) -> timedelta | None:
        """How long visitors are kept after they were last seen; None means forever."""
        return timedelta(days=self.visitor_retention_days) if self.visitor_retention_days else None

    @property
    def audit_retention(self) -> timedelta | None:
        """How long the audit log is kept; None means forever."""
        return timedelta(days=self.audit_retention_days) if self.audit_retention_days else None

    @property
    def shown_database(self) -> str:
        """The URL of the database without its password."""
        from sqlalchemy.engine import make_url  # imported here because commands that only read settings do not need it

        return make_url(self.database).render_as_string(hide_password=True)

    @cached_property
    def socket(self) -> Path:
        """The path of the supervisor's socket: the configured one, or our own in the data directory."""
        if self.runner_socket is not None:
            return self.runner_socket
        near = self.data_dir.absolute() / "run" / "supervisor.sock"
        if len(os.fsencode(near)) <= MAX_SOCKET_PATH_BYTES:
            return near
        mark = hashlib.sha256(os.fsencode(near)).hexdigest()[:12]
        # Not "lockstep-NUMBER-…": supervisors use such names, and a new one deletes what a dead one left.
        return Path(tempfile.gettempdir()) / f"lockstep-socket-{os.getuid()}-{mark}" / "supervisor.sock"

    @property
    def known_url(self) -> str:
        """The address of the site as far as the settings tell it, for links in the terminal; otherwise empty."""
        published = _PUBLISHED.fullmatch(self.published_address)
        if self.public_url or published is None or not int(published["port"]):
            return self.public_url
        host = published["host"].strip("[]")
        host = _ALL_INTERFACES.get(host, host)
        return f"http://{f'[{host}]' if ':' in host else host}:{published['port']}"

    @property
    def metrics_listener(self) -> tuple[str, int] | None:
        """The address and the port of the metrics; None if they are off."""
        return split_address(self.metrics_address)

    @property
    def secure(self) -> bool:
        """Whether learners use HTTPS."""
        return self.public_url.startswith("https://")


def project_folder(name: str) -> Path:
    """The folder ``lessons`` or ``migrations`` of Lockstep itself: in the package, or next to it in a checkout."""
    package = Path(__file__).parent
    bundled = package / "bundled" / name
    return bundled if bundled.is_dir() else package.parent / name


def split_address(address: str) -> tuple[str, int] | None:
    """The IP address and the port of ``127.0.0.1:9464`` or ``[::1]:9464``; None for anything else. Pure."""
    host, _, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host if ":" not in host else ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return None
    digits = port.isascii() and port.isdigit() and len(port) <= 5
    return (host, int(port)) if digits and 0 < int(port) < 65_536 else None


def is_public_url(public_url: str) -> bool:
    """Whether the site has a public name, so that others than this machine reach it through a proxy."""
    host = urlsplit(public_url).hostname or "localhost"
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")


def _missing_companions(values: Mapping[str, Any]) -> Iterator[str]:
    """A sentence about each setting that needs another one, or a different one. Pure."""
    # Links in emails, and the address that providers redirect to, must not depend on a request's Host header.
    if values.get("smtp_url") and not (values.get("mail_from") and values.get("public_url")):
        yield "LOCKSTEP_SMTP_URL requires LOCKSTEP_MAIL_FROM and LOCKSTEP_PUBLIC_URL."
    if values.get("oidc") and not values.get("public_url"):
        yield "LOCKSTEP_OIDC__… requires LOCKSTEP_PUBLIC_URL."
    if has_default_password(values.get("database_url", "")) and _has_public_name(values.get("public_url", "")):
        yield (
            "The database has its default password, which everyone knows. Change it before the site gets a "
            "LOCKSTEP_PUBLIC_URL: docs/operate/upgrade.md says how."
        )


def _has_public_name(public_url: str) -> bool:
    try:
        return is_public_url(public_url)
    except ValueError:  # another sentence says so
        return False


def _fields_of(variables: Mapping[str, str]) -> dict[str, str]:
    """The values of variables by the names of fields, unchecked. Any part of ``oidc`` is a value of it."""
    ours = {name.upper(): value for name, value in variables.items() if value and name.upper().startswith(_PREFIX)}
    return {name.removeprefix(_PREFIX).lower().partition("__")[0]: value for name, value in ours.items()}


def _is_invalid_json(variable: str, value: str) -> bool:
    """Whether this is ``LOCKSTEP_OIDC`` with something else than a JSON object."""
    if variable.upper() != f"{_PREFIX}OIDC" or not value:
        return False
    try:
        return not isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return True


def _format_errors(details: list[ErrorDetails], from_files: frozenset[str]) -> Iterator[str]:
    """A sentence about each error, but for secrets that are missing because their file cannot be used."""
    for error in details:
        name = _PREFIX + "__".join(str(part) for part in error["loc"]).upper()
        if name not in from_files:
            yield _format_error(error)
        elif error["type"] != "missing":
            yield f"{name}_FILE names a file whose content is not valid: {_reason(error)}."


_WRONG_NUMBERS = {"int_parsing", "int_from_float", "float_parsing", "greater_than_equal", "less_than_equal"}
_ENDS = ("ge", "le")
_WRONG_NUMBERS |= {"finite_number", "int_parsing_size"}
"""Types of pydantic's errors about a number."""


def _bounds(name: str) -> str:
    field = Settings.model_fields[name]
    least, most = (next((getattr(rule, key) for rule in field.metadata if hasattr(rule, key)), None) for key in _ENDS)
    if least is None or most is None:
        return ""
    return f"it must be a {'whole ' * (field.annotation is int)}number from {least:,g} to {most:,.12g}"


def _reason(error: ErrorDetails) -> str:
    """What the value has to be."""
    if error["type"] in _WRONG_NUMBERS and (bounds := _bounds(str(error["loc"][0]))):
        return bounds
    if error["type"] == "bool_parsing":
        return "it must be true or false"
    if error["type"] == "literal_error":
        return f"it must be {error['ctx']['expected']}"
    message = _message(error)
    return f"{message[:1].lower()}{message[1:]}"


def _message(error: ErrorDetails) -> str:
    return error["msg"].removeprefix("Value error, ")


def _format_error(error: ErrorDetails) -> str:
    if not error["loc"]:
        return _message(error)
    name = _PREFIX + "__".join(str(part) for part in error["loc"]).upper()
    if error["type"] == "missing":
        return f"{name} is missing."
    if error["loc"][0] == "oidc" and error["loc"][-1] not in _LOGGABLE_PROVIDER_FIELDS:
        return f"{name} is not valid: {_reason(error) if len(error['loc']) > 1 else _message(error)}."
    return f"{name} cannot be {_CREDENTIALS.sub('//…@', str(error['input']))[:80]!r}: {_reason(error)}."
