"""What ``lockstep doctor`` says about running a site: settings, disk, clock, mail, proxy, connections and memory.

Nothing here keeps Lockstep from working now, so it does not change the exit status: it may keep it from working soon.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.admin.mail import explain_failure
from app.cli.shell_settings import unknown_variables
from app.db import Database
from app.health.checks import HealthCheck
from app.mail.transport import SendFailed, SmtpServer, SmtpTransport
from app.settings import Settings, is_public_url
from runners.wire.protocol import Health

GiB = 1 << 30
_MIN_FREE_BYTES, _MIN_FREE_SHARE = 2 * GiB, 0.05
_MAX_CLOCK_DIFFERENCE_S = 5.0
_OTHERS_CONNECTIONS = 5
"""Connections that backups, commands and an operator's psql need beside one web process."""
_UNSYNCHRONIZED = 5
"""What adjtimex(2) returns when nothing keeps the clock right."""
_TIMEX_BYTES = 512
"""More than its structure takes."""


async def check_operation(settings: Settings, health: Health | None) -> list[HealthCheck]:
    """Look at everything that an operator has to keep an eye on."""
    usage = shutil.disk_usage(_existing(settings.data_dir))
    database, clock_ahead_s = await _ask_postgresql(settings)
    return [
        judge_variables(os.environ),
        judge_disk(usage.free, usage.total),
        judge_clock(_is_synchronized(), clock_ahead_s),
        await check_mail(settings),
        judge_proxy(settings.public_url, os.environ),
        database,
        judge_memory(health, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")),
    ]


def judge_variables(environment: Mapping[str, str]) -> HealthCheck:
    """Pure."""
    if unknown := unknown_variables(environment):
        return HealthCheck("settings", False, " ".join(unknown))
    return HealthCheck("settings", True, "each LOCKSTEP_… variable is known")


def judge_disk(free: int, total: int) -> HealthCheck:
    """Pure."""
    shown = f"{free / GiB:,.1f} of {total / GiB:,.1f} GiB free in the data directory"
    if free < _MIN_FREE_BYTES or free < total * _MIN_FREE_SHARE:
        return HealthCheck("disk", False, f"{shown}: make room, or nothing can be saved soon")
    return HealthCheck("disk", True, shown)


def judge_clock(synchronized: bool | None, ahead_s: float | None) -> HealthCheck:
    """``ahead_s``: by how much this clock is ahead of the database's; None if that is the same clock. Pure."""
    if ahead_s is not None and abs(ahead_s) > _MAX_CLOCK_DIFFERENCE_S:
        where = "ahead of" if ahead_s > 0 else "behind"
        return HealthCheck("clock", False, f"{abs(ahead_s):,.0f} s {where} the database's: set both by NTP")
    if synchronized is False:
        return HealthCheck("clock", False, "nothing keeps it right: codes of authenticator apps need NTP")
    return HealthCheck("clock", True, "kept right by the system" if synchronized else "not known to be wrong")


def judge_proxy(public_url: str, environment: Mapping[str, str]) -> HealthCheck:
    """Pure."""
    trusted = environment.get("FORWARDED_ALLOW_IPS", "")
    if not is_public_url(public_url):
        return HealthCheck("proxy", True, "not needed: LOCKSTEP_PUBLIC_URL is not public")
    if not public_url.startswith("https://"):
        return HealthCheck("proxy", False, "LOCKSTEP_PUBLIC_URL is not https: passwords travel readable")
    if not trusted:
        means = (
            "FORWARDED_ALLOW_IPS (LOCKSTEP_PROXY_ADDRESS under Compose) does not name it: limits per address are off"
        )
        return HealthCheck("proxy", False, means)
    if trusted == "*":
        return HealthCheck("proxy", False, "FORWARDED_ALLOW_IPS is *: anyone can pretend to have any address")
    return HealthCheck("proxy", True, f"its addresses of clients are trusted: {trusted}")


def judge_pool(wanted: int, available: int) -> HealthCheck:
    """``available``: what PostgreSQL accepts from users that are not its superusers. Pure."""
    shown = f"{wanted} connections of each web process, of {available} that PostgreSQL accepts"
    if wanted + _OTHERS_CONNECTIONS > available:
        return HealthCheck("pool", False, f"{shown}: lower LOCKSTEP_DATABASE_CONNECTIONS or raise max_connections")
    return HealthCheck("pool", True, shown)


def judge_memory(health: Health | None, machine_bytes: int) -> HealthCheck:
    """Pure."""
    limit = (health.settings if health else {}).get("LOCKSTEP_LIMITS__MEMORY_MB", "")
    if health is None or not limit.isdigit():
        return HealthCheck("memory", True, "unknown: no runner answered")
    each, sessions = int(limit) << 20, health.max_sessions
    shown = f"{sessions} sessions of at most {each / GiB:,.1f} GiB on {machine_bytes / GiB:,.1f} GiB"
    if any(found.name == "memory" and not found.in_force for found in health.safeguards):
        return HealthCheck("memory", False, f"{shown}, but that limit is only watched: a session can take more")
    if each > machine_bytes:
        return HealthCheck("memory", False, f"{shown}: one session can use up the machine, lower the limit")
    return HealthCheck("memory", True, f"{shown}, shared" if each * sessions > machine_bytes else shown)


async def check_mail(settings: Settings) -> HealthCheck:
    """Connect to the mail server and sign in, without sending anything."""
    if not settings.smtp_url:
        return HealthCheck("mail", True, "not set up: links are written to the log")
    server = SmtpServer.from_url(settings.smtp_url)
    try:
        await SmtpTransport(server, settings.mail_from).check()
    except SendFailed as e:
        return HealthCheck("mail", False, f"{explain_failure(e)} ({e})")
    return HealthCheck("mail", True, f"{server.host}:{server.port} answers")


async def _ask_postgresql(settings: Settings) -> tuple[HealthCheck, float | None]:
    """The check of the pool, and by how much this clock is ahead of the database's."""
    if settings.database.startswith("sqlite"):
        return HealthCheck("pool", True, f"{settings.database_connections} connections to a file"), None
    db = Database(settings.database, wait_s=3.0, statement_s=3.0)
    try:
        async with db.session() as session:
            theirs = float(await session.scalar(text("SELECT extract(epoch FROM clock_timestamp())")) or 0)
            ahead_s = time.time() - theirs
            limits = "current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
            available = int(await session.scalar(text(f"SELECT {limits}")) or 0)
    except (SQLAlchemyError, OSError):
        return HealthCheck("pool", True, "unknown: the database does not answer"), None
    finally:
        await db.close()
    return judge_pool(settings.database_connections, available), ahead_s


def _is_synchronized() -> bool | None:
    """Whether something keeps the clock right; None if Linux does not say."""
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _UNSYNCHRONIZED


def _existing(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next(one for one in (folder, *folder.parents) if one.exists())
