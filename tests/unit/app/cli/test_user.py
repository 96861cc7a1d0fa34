"""``lockstep user``: how an operator manages accounts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pyotp
import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from typer.testing import CliRunner, Result

from app.accounts.auth_sessions import create_auth_session
from app.accounts.invitations import find_invitation
from app.accounts.models import Account, Authenticator, AuthSession, RecoveryCode, Role
from app.accounts.passwords import AsyncPasswordHasher
from app.accounts.second_factor import RECOVERY_CODES, add_authenticator
from app.accounts.service import create_account
from app.cli.user import app
from app.db import Database
from app.mail.models import OutboxEmail

T = TypeVar("T")
ADA, PASSWORD = "ada@example.org", "correct horse battery"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_DATA_DIR", str(tmp_path / "data"))


def user(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, [*arguments], input=typed)


def in_sql(tmp_path: Path, act: Callable[[AsyncSession], Awaitable[T]]) -> T:
    async def work() -> T:
        db = Database(f"sqlite+aiosqlite:///{tmp_path / 'data' / 'lockstep.db'}")
        try:
            async with db.writing() as session:
                return await act(session)
        finally:
            await db.close()

    return asyncio.run(work())


async def the_account(session: AsyncSession) -> Account:
    return (await session.scalars(select(Account))).one()


def test_an_account_is_made_with_a_role_and_the_password_that_came_in(tmp_path: Path) -> None:
    made = user(
        "create", "Ada@Example.org", "--name", "Ada Byron", "--role", "admin", "--password-stdin", typed=PASSWORD
    )

    assert made.exit_code == 0, made.output
    account = in_sql(tmp_path, the_account)
    assert (account.email, account.name, account.role) == ("Ada@example.org", "Ada Byron", Role.admin)
    assert account.email_confirmed_at is not None
    assert asyncio.run(AsyncPasswordHasher().verify(account.password_hash, PASSWORD))
    assert (tmp_path / "data" / "lockstep.db").stat().st_mode & 0o077 == 0
    again = user("create", ADA, "--password-stdin", typed=PASSWORD)
    assert again.exit_code == 1
    assert "already has an account" in again.output


def test_a_password_is_asked_for_twice_and_never_shown() -> None:
    made = user("create", ADA, typed=f"{PASSWORD}\n{PASSWORD}\n")

    assert made.exit_code == 0, made.output
    assert PASSWORD not in made.output


@pytest.mark.parametrize(
    ("arguments", "typed", "sentence"),
    [
        (["create", "ada", "--password-stdin"], PASSWORD, "'ada' is not an email address."),
        (["create", ADA, "--password-stdin"], "123456789012", "too common"),
        (["create", ADA, "--name", "\u202e", "--password-stdin"], PASSWORD, "name cannot be used"),
        (["invite", "ada@"], "", "is not an email address"),
        (["role", ADA, "king"], "", "king"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(arguments: list[str], typed: str, sentence: str) -> None:
    refused = user(*arguments, typed=typed)

    assert refused.exit_code == 2
    assert sentence in refused.output


@pytest.mark.parametrize("arguments", [["role", ADA, "admin"], ["disable", ADA], ["enable", ADA]])
def test_nobody_of_that_address_is_said(arguments: list[str]) -> None:
    refused = user(*arguments)

    assert refused.exit_code == 1
    assert f"There is no account for {ADA}." in refused.output


def test_an_account_gets_a_role_is_shut_and_opened_again(tmp_path: Path) -> None:
    user("create", ADA, "--password-stdin", typed=PASSWORD)

    async def sign_in(session: AsyncSession) -> None:
        await create_auth_session(session, await the_account(session), method="password")

    async def sign_ins(session: AsyncSession) -> int:
        return len((await session.scalars(select(AuthSession))).all())

    in_sql(tmp_path, sign_in)
    assert user("role", ADA, "instructor").exit_code == 0
    assert user("disable", ADA).exit_code == 0
    assert in_sql(tmp_path, sign_ins) == 0
    (row,) = json.loads(user("list", "--json").stdout)
    assert (row["email"], row["role"], row["state"]) == (ADA, "instructor", "disabled")
    assert user("enable", ADA).exit_code == 0
    assert user("list").stdout.startswith("enabled ")


def test_a_lost_second_factor_is_reset_and_every_browser_signed_out(tmp_path: Path) -> None:
    user("create", ADA, "--password-stdin", typed=PASSWORD)

    async def set_up(session: AsyncSession) -> None:
        account = await the_account(session)
        secret = pyotp.random_base32()
        assert await add_authenticator(session, account, secret, pyotp.TOTP(secret).now())
        await create_auth_session(session, account, method="password+totp")

    async def left(session: AsyncSession) -> list[object]:
        return [
            row for table in (Authenticator, RecoveryCode, AuthSession) for row in await session.scalars(select(table))
        ]

    in_sql(tmp_path, set_up)
    assert len(in_sql(tmp_path, left)) == 2 + RECOVERY_CODES
    assert user("reset-second-factor", ADA).exit_code == 0
    assert in_sql(tmp_path, left) == []


def test_an_invitation_is_printed_and_mailed_where_mail_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_PUBLIC_URL", "https://learn.example.org")
    monkeypatch.setenv("LOCKSTEP_SMTP_URL", "smtp://mail.test")
    monkeypatch.setenv("LOCKSTEP_MAIL_FROM", "learn@example.org")

    invited = user("invite", ADA, "--role", "instructor")

    link = re.fullmatch(r"https://learn\.example\.org/en/sign-up\?invitation=(\S{43})\n", invited.stdout)
    assert link

    async def look(session: AsyncSession) -> None:
        invitation = await find_invitation(session, link[1])
        assert (invitation.email, invitation.role) == (ADA, Role.instructor)
        assert link[1] in (await session.scalars(select(OutboxEmail))).one().text

    in_sql(tmp_path, look)
    monkeypatch.setenv("LOCKSTEP_SIGN_UP", "closed")
    assert user("invite", ADA).exit_code == 1


def test_an_empty_list_says_so() -> None:
    assert "There are no accounts yet." in user("list").output


def test_whoever_typed_an_address_first_is_in_nobodys_way(tmp_path: Path) -> None:
    def squat(address: str) -> None:
        async def work(session: AsyncSession) -> None:
            await create_account(session, email=address, name="A squatter", password_hash="of a squatter's")

        in_sql(tmp_path, work)

    assert user("list").exit_code == 0
    squat(ADA)
    squat("bob@example.org")

    assert user("create", ADA, "--name", "Ada", "--password-stdin", typed=PASSWORD).exit_code == 0
    assert user("invite", "bob@example.org", "--role", "instructor").exit_code == 0

    rows = {row["email"]: row for row in json.loads(user("list", "--json").stdout)}
    assert (rows[ADA]["name"], rows[ADA]["handle"], rows[ADA]["state"]) == ("Ada", "ada", "enabled")
