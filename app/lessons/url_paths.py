"""The path convertor ``slug``: anything without a dot, so that ``slug.md`` and ``slug.ipynb`` have their own routes.

Import this module before a path that uses it is declared.
"""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor


class SlugConvertor(Convertor[str]):
    """Matches one part of a path."""

    regex = r"[^/.]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("slug", SlugConvertor())
LESSON_PATH = "/courses/{course:slug}/{slug:slug}"
"""The path of a lesson below its language."""
