"""Reading marks: what a browser says of pages that were read. Claims, so they earn no XP by themselves.

``POST /progress/marks`` takes ``{"time_zone": "Asia/Seoul", "marks": [{"lesson": "course/slug", "opened_at": ms,
"seen_at": ms, "end_reached_at": ms | null, "place": "id"}, …]}``, moments in milliseconds since 1970. The answer is
204 for a stranger (nothing is kept) and ``{"kept": N}`` otherwise. Sent twice, or in another
order, they change nothing more.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

MOST_MARKS = 200


class Mark(BaseModel):
    """One lesson in one browser."""

    lesson: str = Field(max_length=200)
    opened_at: int = Field(ge=0)
    seen_at: int = Field(ge=0)
    end_reached_at: int | None = Field(default=None, ge=0)
    place: str = Field(default="", max_length=100)


class Marks(BaseModel):
    """The body of ``POST /progress/marks``."""

    time_zone: str = Field(default="", max_length=64)
    marks: list[Mark] = Field(max_length=MOST_MARKS)
