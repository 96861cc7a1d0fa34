"""Reading marks: what a browser says of pages that were read. Claims, so they earn no XP by themselves.

``POST /progress/marks`` takes ``{"time_zone": "Asia/Seoul", "marks": [{"lesson": "course/slug", "opened_at": ms,
"last_seen_at": ms, "end_reached_at": ms | null, "anchor": "id"}, …]}``, moments in milliseconds since 1970. The answer
is 204 for a stranger (nothing is kept) and ``{"kept": N}`` otherwise. Sent twice, or in another order, they change
nothing more. Lessons that are not there are left out.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

MAX_READINGS = 200
EpochMilliseconds = Annotated[int, Field(ge=0, le=2**53)]


class LessonReading(BaseModel):
    """One lesson in one browser."""

    lesson: str = Field(max_length=200)
    opened_at: EpochMilliseconds
    last_seen_at: EpochMilliseconds
    end_reached_at: EpochMilliseconds | None = None
    anchor: str = Field(default="", max_length=100, pattern=r"^[\w.-]*$")
    """The id of a heading or cell."""


class ReadingReport(BaseModel):
    """The body of ``POST /progress/marks``."""

    time_zone: str = Field(default="", max_length=64, pattern=r"^[A-Za-z0-9_+/-]*$")
    marks: list[LessonReading] = Field(max_length=MAX_READINGS)
