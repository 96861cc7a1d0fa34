"""What is wrong with the URL of a database, in words for operators. Pure."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

DRIVERS = ("sqlite+aiosqlite://", "postgresql+asyncpg://")
_DEFAULT_PASSWORD = "lockstep"  # noqa: S105 - Compose's, until each installation got its own
_POSTGRESQL_OPTIONS = {
    *("host", "port", "ssl", "direct_tls", "timeout", "command_timeout", "passfile", "service", "servicefile"),
    *("target_session_attrs", "krbsrvname", "gsslib", "statement_cache_size", "prepared_statement_cache_size"),
}
"""The driver's."""


def database_url_error(url: str) -> str:
    """What the URL has to be instead; empty if nothing is wrong with it."""
    if not url.startswith(DRIVERS):
        return f"it must start with {' or '.join(DRIVERS)}"
    if url.startswith("sqlite"):
        return ""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "its port must be a number from 0 to 65535, and an IPv6 address must be in brackets"
    unknown = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if name not in _POSTGRESQL_OPTIONS]
    if "sslmode" in unknown:
        return "in place of ?sslmode=require it must have ?ssl=require"
    return f"its option {unknown[0][:40]} is unknown to the driver asyncpg" if unknown else ""


def has_default_password(url: str) -> bool:
    """Whether the password is the one that everyone knows."""
    try:
        return url.startswith("postgresql") and urlsplit(url).password == _DEFAULT_PASSWORD
    except ValueError:
        return False
