"""Reasons why a comment cannot be created, changed or found."""

from __future__ import annotations

import math
from datetime import timedelta

from app.errors import InvalidInput, NotFound, PermissionDenied, TooManyRequests
from app.i18n import N_, duration


class CommentNotFound(NotFound):
    """The comment does not exist, or the viewer may not see it."""

    message = N_("This comment does not exist. It may have been deleted.")


class CommentedCellNotFound(NotFound):
    """The lesson has no such cell."""

    message = N_("This lesson has no such cell.")


class ThreadClosed(InvalidInput):
    """The first comment of the thread was removed."""

    message = N_("This thread is closed because the original comment was removed. Your text is still here.")


class CommentRateLimited(TooManyRequests):
    """Too many comments in a short time. ``wait`` is a duration in words."""

    message = N_("You have written a lot in a short time. Wait {wait}, then send it again: your text is kept.")

    def __init__(self, delay: timedelta) -> None:
        super().__init__(wait=duration(delay))
        self.retry_after_s = math.ceil(delay.total_seconds())


class EditLimitReached(TooManyRequests):
    retry_after_s = None
    message = N_("This comment was changed {most} times, which is the limit. Write a reply instead.")


class ReportLimitReached(TooManyRequests):
    retry_after_s = 3600
    message = N_(
        "You have reported {most} comments in one day, which is the limit. The instructors will review these first."
    )


class EditConflict(InvalidInput):
    """Another tab was faster."""

    message = N_(
        "This comment was changed elsewhere in the meantime. Your text is below; sending it again "
        "replaces the other version."
    )


class ModerationConflict(InvalidInput):
    """The author has edited the comment since the instructor read it."""

    message = N_("This comment was changed after you opened this page. Read it again, then decide.")


class NotCommentAuthor(PermissionDenied):
    message = N_("Only the author can do this.")


class OwnCommentForbidden(PermissionDenied):
    message = N_("This is your own comment: only others can do this.")


class EmailNotConfirmed(PermissionDenied):
    message = N_("Confirm your email address first: open the link in the email that we sent you.")


class ReasonRequired(InvalidInput):
    """A reason, such as why a comment is hidden, is empty or too long."""

    message = N_("Give a short reason of at most {most} characters.")
