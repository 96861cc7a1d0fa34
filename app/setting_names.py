"""Variables that begin with ``LOCKSTEP_`` and are no settings: misspelled ones, and those of other programs.

A misspelled ``LOCKSTEP_DATABASE_URL`` would start an empty site on SQLite, so a name that is similar to a setting's is
an error. Any other name is only pointed out: Kubernetes sets ``LOCKSTEP_SERVICE_HOST`` where a service is called
``lockstep``, and a setting that only an older or a newer version has should not keep this one from starting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.secret_files import SECRET_SETTINGS
from runners.wire.environment import SETTINGS, misspelled_setting

_PREFIX = "LOCKSTEP_"
COMPOSE_VARIABLES = frozenset(
    [
        "ADDRESS",
        "BACKUPS_KEPT",
        "BACKUP_HOURS",
        "DB_PASSWORD",
        "FRONT_NETWORK",
        "IMAGE_PREFIX",
        "PORT",
        "PROXY_ADDRESS",
        "RUNNER_CPUS",
        "RUNNER_MEMORY",
        "RUNNER_PIDS",
        "RUNNER_RUNTIME",
        "RUNNER_SCIENCE",
        "RUNNER_SESSIONS",
        "VERSION",
    ]
)
"""What only ``docker-compose.yml`` reads; a shell may have it, too."""
_SIMILAR = 0.75
"""How similar a name is to a setting's where it may have been meant: ``LOCKSTEP_DATABASE``, but not Kubernetes's
``LOCKSTEP_SERVICE_HOST``."""
_DEVELOPERS = re.compile(r"CI_BASE|TEST_.+")
_NESTED = ("LIMITS", "OIDC")
_PROVIDER_VARIABLE = re.compile(r"OIDC_+(.+?)_+(ISSUER|CLIENT_ID|CLIENT_SECRET|LABEL)(_FILE)?")


@dataclass(frozen=True, slots=True)
class UnknownVariable:
    """A variable that begins with ``LOCKSTEP_`` and that nothing of Lockstep reads."""

    name: str
    """As it is written."""
    meant: str = ""
    """The setting that was surely meant."""
    similar: str = ""
    """The setting that may have been meant, if it is not sure."""

    def __str__(self) -> str:
        if self.meant and self.name.upper() == f"{self.meant}_FILE":
            return f"{self.name} is not a setting. Only a secret can come from a file: set {self.meant}."
        similar = self.meant or self.similar
        return f"{self.name} is not a setting." + (f" Did you mean {similar}?" if similar else "")


def find_unknown_variables(environment: Mapping[str, str], fields: Iterable[str]) -> Iterator[UnknownVariable]:
    """The variables that are no settings, in order. ``fields`` are the settings of the web application. Pure."""
    web = {field.upper() for field in fields}
    files = {f"{name.upper()}_FILE" for name in SECRET_SETTINGS if name.upper() in web}
    settings = {f"{_PREFIX}{name}" for name in web | files | SETTINGS | {"LIMITS"}}
    for name in sorted(environment):
        if not name.upper().startswith(_PREFIX) or name.upper() in settings:
            continue
        ours = name.upper().removeprefix(_PREFIX)
        head = ours.partition("__")[0]
        if (head in _NESTED and "__" in ours) or ours in COMPOSE_VARIABLES or _DEVELOPERS.fullmatch(ours):
            continue  # whoever reads a nested one says what is wrong with it
        if meant := _meant(name.upper(), settings):
            yield UnknownVariable(name, meant)
        else:
            yield UnknownVariable(name, similar=misspelled_setting(name, sorted(settings), _SIMILAR) or "")


def _meant(variable: str, settings: set[str]) -> str | None:
    """The setting that this is a misspelled name of, if that is sure. All names have the prefix."""
    if variable.endswith("_FILE") and (plain := variable.removesuffix("_FILE")) in settings:
        return plain
    ours = variable.removeprefix(_PREFIX)
    if provider := _PROVIDER_VARIABLE.fullmatch(ours):
        return f"{_PREFIX}OIDC__{provider[1]}__{provider[2]}{provider[3] or ''}"
    if ours.startswith("LIMITS_"):
        return f"{_PREFIX}LIMITS__{ours.removeprefix('LIMITS_')}"
    head, separator, rest = variable.partition("__")
    if separator and (nested := misspelled_setting(head, [f"{_PREFIX}{name}" for name in _NESTED])):
        return f"{nested}__{rest}"
    return misspelled_setting(variable, sorted(settings))
