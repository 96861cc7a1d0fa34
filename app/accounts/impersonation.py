"""Names that could be mistaken for staff or for the site itself.

Names are compared as they look: letters of other scripts are replaced by the Latin letters that they resemble, by the
table of Unicode's Technical Standard 39. Korean and Chinese words have no such letters and may be next to Latin ones.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.handles import is_reserved
from app.accounts.models import Account, Role
from app.i18n import N_

NAME_MISLEADS = N_("This name could be mistaken for a member of staff or for the site itself. Choose another.")
_WORD = re.compile(r"[^\W_]+")
_LATIN_LOOKALIKES = {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"}
"""Scripts with letters that look like Latin ones. No language mixes them with Latin letters in a word."""
_SAME_STROKE = str.maketrans("1|i0", "lllo")
_RESERVED_IN_OTHER_LANGUAGES = frozenset(
    (
        *("관리자", "운영자", "운영진", "운영팀", "강사", "교사", "선생님", "조교", "공식", "고객센터", "지원팀"),
        *("管理员", "管理員", "版主", "站长", "站長", "官方", "老师", "老師", "教师", "教師", "讲师", "講師", "助教"),
        *("客服", "系统", "系統", "시스템"),
    )
)


async def name_misleads(session: AsyncSession, name: str, role: Role | str = Role.learner) -> bool:
    """Whether people could take an account with this name and role for staff. Staff may have any name."""
    if role != Role.learner:
        return False
    if is_reserved_name(name):
        return True
    staff = await session.scalars(select(Account.name).where(Account.role != Role.learner))
    return _strokes(name) in {_strokes(each) for each in staff}


def is_reserved_name(name: str) -> bool:
    """Whether the name reads as one of the site, such as ``Admin Team``, or hides its script within a word. Pure."""
    words = _WORD.findall(latin_reading(name))
    named = [word for word in words if not word.isdecimal()]
    reserved = bool(named) and (all(map(_is_reserved_word, named)) or _is_reserved_word("".join(words)))
    return reserved or any(map(_mixes_scripts, name.split()))


def latin_reading(text: str) -> str:
    """The text in lowercase, with Latin letters instead of those that look like them. Pure."""
    table = _latin_lookalikes()
    seen = unicodedata.normalize("NFKC", text).translate(table).casefold().translate(table)
    plain = "".join(c for c in unicodedata.normalize("NFD", seen) if unicodedata.category(c) != "Mn")
    return unicodedata.normalize("NFC", plain)


def _is_reserved_word(word: str) -> bool:
    others = word.rstrip("0123456789") in _RESERVED_IN_OTHER_LANGUAGES
    return others or (word != "learner" and (is_reserved(word) or is_reserved(word.replace("l", "i"))))


def _mixes_scripts(word: str) -> bool:
    scripts = {unicodedata.name(c, "").partition(" ")[0] for c in word}
    return "LATIN" in scripts and not scripts.isdisjoint(_LATIN_LOOKALIKES)


def _strokes(name: str) -> str:
    """What is left of a name at a glance: its letters and digits, without those that cannot be told apart."""
    return "".join(_WORD.findall(latin_reading(name))).translate(_SAME_STROKE).replace("rn", "m").replace("vv", "w")


@cache
def _latin_lookalikes() -> dict[int, str]:
    from confusable_homoglyphs.confusables import confusables_data  # imported here because it takes 18 MB

    return {
        ord(character): min(found, key=str.isdecimal)
        for character, several in confusables_data.items()
        if len(character) == 1
        and not character.isascii()
        and (found := [each["c"] for each in several if each["c"].isascii() and each["c"].isalnum()])
    }
