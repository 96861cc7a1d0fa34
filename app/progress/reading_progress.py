"""Reading progress reported by browsers. It is not verified, so it earns no XP by itself.

``POST /progress/reading`` takes ``{"time_zone": "Asia/Seoul", "lessons": [{"lesson": "course/slug", "opened_at": ms,
"last_seen_at": ms, "end_reached_at": ms | null, "anchor": "id"}, …]}``, with times in milliseconds since 1970. The
response is 204 without a learner (nothing is stored), else ``{"kept": N}``. Requests are idempotent and may arrive in
any order. Unknown lessons are ignored.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

MAX_READINGS = 200
EpochMilliseconds = Annotated[int, Field(ge=0, le=2**53)]


class LessonReading(BaseModel):
    """One lesson's reading progress in one browser."""

    lesson: str = Field(max_length=200)
    opened_at: EpochMilliseconds
    last_seen_at: EpochMilliseconds
    end_reached_at: EpochMilliseconds | None = None
    anchor: str = Field(default="", max_length=100, pattern=r"^[\w.-]*$")
    """The ID of a heading or cell."""


class ReadingReport(BaseModel):
    """The body of ``POST /progress/reading``."""

    time_zone: str = Field(default="", max_length=64, pattern=r"^[A-Za-z0-9_+/-]*$")
    lessons: list[LessonReading] = Field(max_length=MAX_READINGS)
