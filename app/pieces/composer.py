"""Renders the pieces of a viewer's page together, and keeps them as long as nothing has changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends
from markupsafe import Markup
from sqlalchemy import ScalarSelect, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.accounts.page_pieces import ACCOUNT_ID, LEARNER_ID, PagePiece, PageViewer
from app.accounts.principal_query import PrincipalQuery
from app.db import Database
from app.i18n import current_language
from app.prepared_query import PreparedQuery, Row
from app.web.dependencies import AppKey
from app.web.gzip_parts import KeptPart
from app.web.part_cache import PartCache

_MOST_S = 900
"""Pieces show today's progress, and in every time zone a day begins at a multiple of 15 minutes."""


class PieceComposer:
    """The pieces of all features. One per process."""

    def __init__(self, pieces: Sequence[PagePiece], most_bytes: int) -> None:
        self.pieces = pieces
        facts = [fact.label(f"fact_{number}") for number, fact in enumerate(_facts(pieces))]
        self._facts = PreparedQuery(select(*facts))
        self.principal_query = PrincipalQuery(_facts(pieces))
        """Identifies a signed-in viewer, with the facts."""
        self._cache = PartCache[KeptPart](most_bytes)

    async def compose(self, db: Database, viewer: PageViewer, facts: Row) -> KeptPart:
        """The pieces as htmx puts them in their places, in the current language.

        ``facts`` are those of a signed-in viewer.
        """
        account_id = viewer.account and viewer.account.id
        values = [piece.values(viewer) for piece in self.pieces]
        kind = (viewer.learner_id, account_id, current_language(), time.time() // _MOST_S, *values)
        if account_id and None not in values and (kept := self._cache.find((*kind, facts))) is not None:
            return kept
        async with db.session() as session:
            if None in values:
                return await self._render(session, viewer)
            facts = facts if account_id else await self._load_facts(session, viewer)
            key = (*kind, facts)
            if (part := self._cache.find(key)) is None:
                part = await self._render(session, viewer)
                if await self._load_facts(session, viewer) == facts:
                    self._cache.keep(key, part, _MOST_S)
            return part

    async def _load_facts(self, session: AsyncSession, viewer: PageViewer) -> Row:
        """Nobody has no facts."""
        if viewer.learner_id is None:
            return ()
        ids = {LEARNER_ID.key: viewer.learner_id, ACCOUNT_ID.key: viewer.account and viewer.account.id}
        (row,) = await self._facts.rows(session, **ids)
        return row

    async def _render(self, session: AsyncSession, viewer: PageViewer) -> KeptPart:
        done: dict[str, Markup] = {}
        for piece in self.pieces:
            done[piece.name] = await piece.render(session, viewer, done)
        placed = [
            Markup('<hx-partial hx-target="{}" hx-swap="{}">{}</hx-partial>').format(
                piece.target, piece.swap, done[piece.name]
            )
            for piece in self.pieces
            if piece.target
        ]
        return KeptPart("\n".join(placed).encode())


def _facts(pieces: Sequence[PagePiece]) -> list[ScalarSelect[Any]]:
    return [fact for piece in pieces for fact in piece.facts]


PIECE_COMPOSER = AppKey[PieceComposer]("piece_composer")
PieceComposerDep = Annotated[PieceComposer, Depends(PIECE_COMPOSER.from_request)]
