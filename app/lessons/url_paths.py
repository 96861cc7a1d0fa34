"""The path convertor ``slug`` matches anything without a dot, so that ``slug.md`` and ``slug.ipynb`` can have routes.

Import this module before you declare a path that uses it.
"""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor


class SlugConvertor(Convertor[str]):
    """Matches one path segment."""

    regex = r"[^/.]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("slug", SlugConvertor())
LESSON_PATH = "/courses/{course:slug}/{slug:slug}"
"""The path of a lesson, after the language."""
