"""Reading marks: what a browser says of pages that were read. Claims, so they earn no XP by themselves.

``POST /progress/marks`` takes ``{"time_zone": "Asia/Seoul", "marks": [{"lesson": "course/slug", "opened_at": ms,
"seen_at": ms, "end_reached_at": ms | null, "place": "id"}, …]}``, moments in milliseconds since 1970. The answer is
204 for a stranger (nothing is kept) and ``{"kept": N}`` otherwise. Sent twice, or in another order, they change
nothing more. Lessons that are not there are left out.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

MOST_MARKS = 200
Milliseconds = Annotated[int, Field(ge=0, le=2**53)]


class Mark(BaseModel):
    """One lesson in one browser."""

    lesson: str = Field(max_length=200)
    opened_at: Milliseconds
    seen_at: Milliseconds
    end_reached_at: Milliseconds | None = None
    place: str = Field(default="", max_length=100, pattern=r"^[\w.-]*$")
    """The id of a heading or cell."""


class Marks(BaseModel):
    """The body of ``POST /progress/marks``."""

    time_zone: str = Field(default="", max_length=64, pattern=r"^[A-Za-z0-9_+/-]*$")
    marks: list[Mark] = Field(max_length=MOST_MARKS)
