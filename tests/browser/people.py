"""People with accounts, in browsers of their own: their accounts go straight into the database of the site."""

from __future__ import annotations

from typing import Unpack

from app.accounts.models import Account, Role
from app.accounts.sign_in_cookie import NAME
from app.accounts.sign_ins import start_sign_in
from app.db import Database
from tests.browser.conftest import Hall, Visitor, Window
from tests.factories.accounts import an_account


async def somebody(
    hall: Hall, name: str, role: Role = Role.learner, **window: Unpack[Window]
) -> tuple[Visitor, Account]:
    """Admit somebody who is signed in."""
    visitor = await hall.admit(**window)
    db = Database(visitor.site.database)
    account = await an_account(db, role, name=name)
    async with db.writing() as session:
        token = await start_sign_in(session, account, method="password", agent="A test", address="127.0.0.1")
    await db.close()
    await visitor.context.add_cookies([{"name": NAME, "value": token, "url": visitor.site.url("/")}])
    return visitor, account


async def change_who_is_at(visitor: Visitor, owner: Visitor) -> None:
    """From now on somebody else's cookies are in the browser of a visitor, as if they had signed in there."""
    await visitor.context.clear_cookies()
    for theirs in await owner.context.cookies():
        await visitor.context.add_cookies(
            [
                {
                    "name": theirs["name"],
                    "value": theirs["value"],
                    "domain": theirs["domain"],
                    "path": theirs["path"],
                    "httpOnly": theirs["httpOnly"],
                    "sameSite": theirs["sameSite"],
                }
            ]
        )
