"""The forms of comments: their purposes and contents."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from markupsafe import Markup

from app.comments.models import Comment
from app.web.user_text import redisplayed_text


class FormAction(StrEnum):
    """The purpose of a form below a comment."""

    reply = "reply"
    edit = "edit"
    delete = "delete"
    report = "report"
    hide = "hide"


@dataclass(frozen=True, slots=True)
class CommentForm:
    """A form as shown. ``error`` is an error message about the text; ``about`` is the comment above it."""

    lesson: str
    cell: str = ""
    action: FormAction | None = None
    about: Comment | None = None
    text: str = ""
    key: str = ""
    edits: int = 0
    error: str = ""

    @property
    def id(self) -> str:
        """Its element ID on the page."""
        return f"{self.action}-{self.about.id}" if self.action and self.about else "new-comment"

    @property
    def typed(self) -> str:
        """The text as a page can show it again."""
        return redisplayed_text(self.text)

    @property
    def quoted(self) -> Markup:
        """The HTML of the comment above it, which everyone who gets the form may read."""
        return Markup(self.about.html if self.about else "")  # noqa: S704 - comments.markdown cleaned it
