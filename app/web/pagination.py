"""Pagination of lists."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

BeforeCursor = Annotated[str | None, Query(max_length=32, pattern="^[0-9a-z]+$")]
"""The ID of the last item on the previous page."""
