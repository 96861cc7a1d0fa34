"""Names that could be mistaken for staff are refused, and everyday names in any script are not."""

from __future__ import annotations

import pytest

from app.accounts.identities import sign_up_with_identity
from app.accounts.identity_providers import UserInfo
from app.accounts.impersonation import is_reserved_name, name_misleads
from app.accounts.models import Role
from app.db import Database
from tests.factories.accounts import store_account

SITES_OWN = [
    *("Admin", "\u0410dmin", "\u0430\u0501m\u0456n", "Admi\u043f", "Ａｄｍｉｎ", "Adm1n", "A d m i n", "Ädmin"),
    *("Lockstep Support", "L\u03bfckstep", "Admin 2", "admln", "support-team", "관리자"),
    *("관리자 1", "管理员", "管理員"),
]
EVERYDAYS = [
    *("Ada Byron", "Ada (Admin of nothing)", "김하나", "김하나 Hana", "Hana김", "王小明 Ming", "小明Ming", "Ali"),
    *("Анна Каренина", "Максим Max", "Ελένη", "山田たろう", "Learner 4821", "Nguyễn Văn Ánh", "Kaʻiulani", "Zoë"),
]


@pytest.mark.parametrize("name", SITES_OWN)
def test_a_name_that_reads_as_the_sites_own_is_reserved(name: str) -> None:
    assert is_reserved_name(name)


@pytest.mark.parametrize("name", EVERYDAYS)
def test_an_everyday_name_is_free(name: str) -> None:
    assert not is_reserved_name(name)


async def test_a_learner_cannot_look_like_a_member_of_staff(database: Database) -> None:
    for role, name in ((Role.instructor, "Ada Byron"), (Role.admin, "김하나 Hana"), (Role.learner, "Bob Moore")):
        await store_account(database, role, name=name)
    async with database.session() as session:
        for name in ("ada byron", "\u0410da \u0412yr\u03bfn", "Ada.Byron", "AdaByron", "김하나Hana"):
            assert await name_misleads(session, name), name
            assert not await name_misleads(session, name, Role.instructor), "staff may have any name"
        for name in ("Ada Lovelace", "김하나", "Bob Moore"):
            assert not await name_misleads(session, name), name


async def test_another_sites_name_that_looks_like_the_staffs_is_left_out(database: Database) -> None:
    person = UserInfo("https://login.example.org", "eve", "eve@example.org", "\u0410dmin")
    async with database.writing() as session:
        account = await sign_up_with_identity(session, person, "open", None, "en")
    assert account.name.startswith("Learner ")
