"""The forms of comments: what they are for, and what stands in one when it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from markupsafe import Markup

from app.comments.models import Comment
from app.web.user_text import redisplayed_text


class FormAction(StrEnum):
    """What a form beside a comment is for."""

    reply = "reply"
    edit = "edit"
    delete = "delete"
    report = "report"
    hide = "hide"


@dataclass(frozen=True, slots=True)
class CommentForm:
    """A form as it is shown. ``error`` is a sentence about the text; ``about`` is the comment it stands beside."""

    lesson: str
    cell: str = ""
    ask: FormAction | None = None
    about: Comment | None = None
    text: str = ""
    key: str = ""
    edits: int = 0
    error: str = ""

    @property
    def id(self) -> str:
        """Its id on the page."""
        return f"{self.ask}-{self.about.id}" if self.ask and self.about else "new-comment"

    @property
    def typed(self) -> str:
        """The text as a page can show it again."""
        return redisplayed_text(self.text)

    @property
    def quoted(self) -> Markup:
        """What the comment beside it says; whoever gets the form may read it."""
        return Markup(self.about.html if self.about else "")  # noqa: S704 - comments.markdown cleaned it
