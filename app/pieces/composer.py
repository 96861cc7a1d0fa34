"""Renders the pieces of a viewer's page together, and keeps them as long as nothing has changed."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Annotated, Any

from fastapi import Depends
from markupsafe import Markup
from sqlalchemy import ScalarSelect, select

from app.accounts.page_pieces import ACCOUNT_ID, LEARNER_ID, PagePiece, PageViewer
from app.accounts.principal_query import PrincipalQuery
from app.db import Database
from app.i18n import current_language
from app.pieces.kept_answer import KeptAnswer
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
        self._facts, self.principal_query = _queries(tuple(fact for piece in pieces for fact in piece.facts))
        """The facts alone, and the query that identifies a signed-in viewer, with the facts."""
        self._cache = PartCache[KeptPart](most_bytes)
        self.answers = PartCache[KeptAnswer](most_bytes)
        """Of ``PiecesGate``."""

    def edition(self) -> Hashable:
        """What all pieces depend on, whoever looks."""
        return time.time() // _MOST_S, *[piece.edition() for piece in self.pieces]

    def find(self, viewer: PageViewer, facts: Row) -> KeptPart | None:
        """The pieces of a signed-in viewer, if they were rendered before."""
        key = self._key(viewer, facts)
        return self._cache.find(key) if viewer.account is not None and key is not None else None

    async def compose(self, db: Database, viewer: PageViewer, facts: Row) -> KeptPart:
        """The pieces as htmx puts them in their places, in the current language.

        ``facts`` are those of a signed-in viewer.
        """
        facts = facts if viewer.account else await self._load_facts(db, viewer)
        if (key := self._key(viewer, facts)) is None:
            return await self._render(db, viewer)
        if (part := self._cache.find(key)) is None:
            part = await self._render(db, viewer)
            if await self._load_facts(db, viewer) == facts:
                self._cache.keep(key, part, _MOST_S)
        return part

    def _key(self, viewer: PageViewer, facts: Row) -> Hashable | None:
        """All that the pieces depend on; None if they must be rendered again each time."""
        values = [piece.values(viewer) for piece in self.pieces]
        who = viewer.learner_id, viewer.account and viewer.account.id
        return None if None in values else (*who, current_language(), self.edition(), *values, facts)

    async def _load_facts(self, db: Database, viewer: PageViewer) -> Row:
        """Nobody has no facts."""
        if viewer.learner_id is None:
            return ()
        ids = {LEARNER_ID.key: viewer.learner_id, ACCOUNT_ID.key: viewer.account and viewer.account.id}
        (row,) = await self._facts.read(db, **ids)
        return row

    async def _render(self, db: Database, viewer: PageViewer) -> KeptPart:
        done: dict[str, Markup] = {}
        async with db.session() as session:
            for piece in self.pieces:
                done[piece.name] = await piece.render(session, viewer, done)
        placed = [
            Markup('<hx-partial hx-target="{}" hx-swap="{}">{}</hx-partial>').format(
                piece.target, piece.swap, done[piece.name]
            )
            for piece in self.pieces
            if piece.target and done[piece.name]
        ]
        return KeptPart("\n".join(placed).encode())


@cache
def _queries(facts: tuple[ScalarSelect[Any], ...]) -> tuple[PreparedQuery, PrincipalQuery]:
    """The queries of all applications in this process whose pieces have the same facts."""
    labeled = [fact.label(f"fact_{number}") for number, fact in enumerate(facts)]
    return PreparedQuery(select(*labeled)), PrincipalQuery(facts)


PIECE_COMPOSER = AppKey[PieceComposer]("piece_composer")
PieceComposerDep = Annotated[PieceComposer, Depends(PIECE_COMPOSER.from_request)]
