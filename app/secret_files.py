"""Settings that are secrets, from files: ``LOCKSTEP_SMTP_URL_FILE`` names a file in the place of ``LOCKSTEP_SMTP_URL``.

Container engines and systemd hand out secrets so: a variable's value would be in ``docker inspect`` and in the
environment of every child process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SECRET_SETTINGS = frozenset({"database_url", "database_listen_url", "smtp_url", "sentry_dsn", "oidc", "client_secret"})
"""The settings that can come from a file. The last is each identity provider's."""
_FILE_VARIABLE = re.compile(
    r"(LOCKSTEP_(?:DATABASE_URL|DATABASE_LISTEN_URL|SMTP_URL|SENTRY_DSN|OIDC|OIDC__.+__CLIENT_SECRET))_FILE",
    re.IGNORECASE,
)
_MAX_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class SettingsEnvironment:
    """An environment in which secrets have replaced the names of their files."""

    variables: Mapping[str, str]
    from_files: frozenset[str]
    """The variables whose values come from files, in upper case."""
    errors: tuple[str, ...]
    """A sentence about each file that cannot be used; its variable is missing."""


def read_secret_files(environment: Mapping[str, str]) -> SettingsEnvironment:
    """Read the files that variables of the environment name."""
    variables = dict(environment)
    spelled = {name.upper(): name for name in environment}
    from_files: set[str] = set()
    errors: list[str] = []
    for name, path in environment.items():
        if (match := _FILE_VARIABLE.fullmatch(name)) is None:
            continue
        del variables[name]
        setting = match[1].upper()
        if not path:
            continue
        from_files.add(setting)
        given = spelled.get(setting, setting)
        if variables.pop(given, ""):
            errors.append(f"{setting} and {setting}_FILE are both set. Set only one.")
            continue
        try:
            variables[setting] = _read(Path(path))
        except OSError as e:
            errors.append(f"{setting}_FILE cannot be {path!r}: {(e.strerror or str(e)).lower()}.")
        except ValueError as e:
            errors.append(f"{setting}_FILE cannot be {path!r}: {e}.")
    return SettingsEnvironment(variables, frozenset(from_files), tuple(errors))


def _read(path: Path) -> str:
    """The text of a file without its final line break.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a file with a short text.
    """
    if path.exists() and not path.is_file():  # reading a pipe might never end
        raise ValueError("it is not a file")
    with path.open("rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise ValueError("it has more than 64 KiB")
    try:
        secret = content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None
    if not secret:
        raise ValueError("it is empty")
    if "\0" in secret:
        raise ValueError("it has a NUL character")
    return secret
