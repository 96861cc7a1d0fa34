"""Why something cannot be done in a group."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

from app import i18n
from app.errors import InvalidInput, LockstepError, NotFound, PermissionDenied, TooManyRequests
from app.i18n import N_
from app.i18n import gettext as _

REMINDER_PAUSE = timedelta(days=3)
"""Between two reminders of a group to one learner."""


class GroupNotFound(NotFound):
    """Raised alike for a group that does not exist and for one that the account does not belong to."""

    message = N_("There is no such group, or you are not a member of it.")


class MemberNotFound(NotFound):
    message = N_("This group has no such member.")


class InvalidGroupInvitation(NotFound):
    """The link is wrong, has expired, or was revoked, or the group has ended."""

    message = N_("This invitation is not valid, or no longer. Ask your instructor for a new link.")


class GroupRoleRequired(PermissionDenied):
    message = N_("Only instructors of this group can do this.")


class InvalidGroup(InvalidInput):
    """``reason`` is already translated."""

    message = N_("This could not be saved: {reason}")


class GroupChanged(LockstepError):
    """Somebody else has changed the same since the page was loaded. ``stored`` is what it is now, by field."""

    status = 409
    message = N_("Somebody else changed this while you wrote. It is now: {stored}. To replace it, save again.")

    def __init__(self, stored: Mapping[str, str]) -> None:
        labels = {"name": _("Name"), "first_day": _("First day"), "last_day": _("Last day")}
        labels["time_zone"] = _("Time zone")
        super().__init__(stored="; ".join(f"{labels[field]}: {text or '–'}" for field, text in stored.items()))


class DeadlineChanged(LockstepError):
    """Somebody else has set another last day, or removed the deadline, since the page was loaded."""

    status = 409
    message = N_("Somebody else changed this deadline meanwhile. The last day is now: {stored}. Yours was not saved.")

    def __init__(self, stored: date | None) -> None:
        super().__init__(stored=i18n.date(stored) if stored is not None else "–")


class TooManyInvitations(InvalidInput):
    message = N_("This group has {most} invitation links, and that is the limit. Revoke one that you no longer need.")


class GroupFull(LockstepError):
    status = 409
    message = N_("This group has {most} members, and that is the limit. Tell your instructor.")


class LastInstructor(LockstepError):
    status = 409
    message = N_("This is the last instructor of the group. Make somebody else an instructor first.")


class NoteChanged(LockstepError):
    """Somebody else of the staff has saved the note since the page was loaded."""

    status = 409
    message = N_("This note was changed while you wrote. Add what you want to keep to your text, then save it again.")


class NotAnInstructorHere(InvalidInput):
    message = N_("Only an account that is an instructor on this site can be an instructor of a group.")


class RemindersRefused(LockstepError):
    status = 409
    message = N_("This learner does not accept reminders by email from this group.")


class EmailNotSetUp(LockstepError):
    status = 409
    message = N_("This site cannot send email.")


class RemindedLately(TooManyRequests):
    message = N_("The last reminder to this learner was sent less than {days} days ago. Wait before you send another.")
    retry_after_s = int(REMINDER_PAUSE.total_seconds())
    """At most."""
