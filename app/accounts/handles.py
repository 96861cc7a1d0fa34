"""Handles: the names that ``@`` mentions. A retired one is never reassigned: old mentions would name its new owner.

Only the hash of a retired handle is kept (of a deleted account, without its owner). That is enough to refuse the handle
and does not reveal a name that somebody may have changed for good reason.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.models import Account, RetiredHandle
from app.db import dialect_insert
from app.i18n import N_

HANDLE = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,28})[a-z0-9]")
"""3 to 30 characters."""
MAX_RETIRED = 5
"""Per account, so that nobody can collect handles by changing theirs."""
_MAX_GENERATED_LENGTH = 24
_FALLBACK = "learner"
_RESERVED = frozenset(
    (
        *("admin", "admins", "administrator", "administrators", "root", "owner", "operator", "superuser", "sysadmin"),
        *("lockstep", "official", "team", "staff", "crew", "support", "help", "helpdesk", "contact", "info", "service"),
        *("instructor", "instructors", "teacher", "teachers", "tutor", "moderator", "moderators", "mod", "mods"),
        *("system", "everyone", "everybody", "all", "anyone", "here", "channel", "room", "class", "course", "learners"),
        *("nobody", "anonymous", "deleted", "unknown", "null", "none", "undefined", "guest", "user", "visitor"),
        *("security", "abuse", "privacy", "legal", "billing", "postmaster", "hostmaster", "webmaster", "mailer-daemon"),
        *("noreply", "no-reply", "mail", "email", "news", "bot", "robot", "api", "www", "settings", "notifications"),
    )
)
"""Names that would seem to speak for the site or for a group."""
_LOOKALIKE_CHARACTERS = str.maketrans({"0": "o", "3": "e", "4": "a", "5": "s", "7": "t", "-": ""})
_LOOKALIKE_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


INVALID_HANDLE = N_("Use 3 to 30 lowercase letters, digits, and hyphens, with no hyphen at either end.")
HANDLE_TAKEN = N_("This handle is taken, was used before, or could be mistaken for the site itself. Choose another.")
TOO_MANY_HANDLE_CHANGES = N_("You have changed your handle too often. Keep this one, or go back to an earlier one.")


def slugify_handle(name: str) -> str:
    """Make a handle of a name: lowercase letters, digits and hyphens; ``learner`` if nothing usable is left. Pure."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    handle = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_MAX_GENERATED_LENGTH].strip("-")
    return handle if HANDLE.fullmatch(handle) and not is_reserved(handle) else _FALLBACK


def is_reserved(handle: str) -> bool:
    """Whether it resembles a name of the site: ``admin``, but also ``adm1n``, ``a-d-m-i-n``, ``admin-2``. Pure."""
    return handle == _FALLBACK or not _RESERVED_READINGS.isdisjoint(_readings(handle))


def _readings(handle: str) -> set[str]:
    """The handle, and the words it can be mistaken for."""
    found = set()
    for text in (handle, handle.rstrip("0123456789-")):
        for one in "il":
            seen = text.replace("1", one).translate(_LOOKALIKE_CHARACTERS)
            found.add(seen)
            for two, letter in _LOOKALIKE_PAIRS:
                found.add(seen.replace(two, letter))
    return found


_RESERVED_READINGS = frozenset(name.replace("-", "") for name in _RESERVED)


async def is_handle_taken(session: AsyncSession, handle: str, by: Account) -> bool:
    """Whether the handle is or was somebody else's, or is reserved."""
    theirs = select(Account.id).where(Account.handle == handle, Account.id != by.id)
    earlier = await session.get(RetiredHandle, _hash(handle))
    given_up = earlier is not None and earlier.account_id != by.id
    return given_up or is_reserved(handle) or await session.scalar(theirs) is not None


async def generate_handle(session: AsyncSession, name: str | None, account: Account) -> str:
    """An available handle for the account, made from its name or like ``learner-4821``."""
    handle = wanted = slugify_handle(name or "")
    while await is_handle_taken(session, handle, account):
        handle = f"{wanted}-{secrets.randbelow(100_000)}"
    return handle


async def validate_handle(session: AsyncSession, account: Account, handle: str) -> str | None:
    """Why the account cannot have this handle, as a message to be translated; None if it can."""
    if handle == account.handle:
        return None
    if not HANDLE.fullmatch(handle):
        return INVALID_HANDLE
    if await is_handle_taken(session, handle, account):
        return HANDLE_TAKEN
    mine = select(func.count()).where(RetiredHandle.account_id == account.id)
    again = await session.get(RetiredHandle, _hash(handle)) is not None
    return None if again or (await session.scalar(mine) or 0) < MAX_RETIRED else TOO_MANY_HANDLE_CHANGES


async def change_handle(session: AsyncSession, account: Account, handle: str) -> None:
    """Change the handle to a valid one. The account keeps the right to its old one."""
    if handle == account.handle:
        return
    await retire_handle(session, account, of=account.id)
    await session.execute(delete(RetiredHandle).where(RetiredHandle.handle_hash == _hash(handle)))
    account.handle = handle


async def retire_handle(session: AsyncSession, account: Account, *, of: str | None = None) -> None:
    """Make the account's handle unavailable to others; ``of`` is its owner's ID, None after a deletion."""
    row = dialect_insert(session, RetiredHandle).values(handle_hash=_hash(account.handle), account_id=of)
    await session.execute(row.on_conflict_do_nothing())


def _hash(handle: str) -> str:
    return hashlib.sha256(f"handle {handle}".encode()).hexdigest()
