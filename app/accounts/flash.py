"""Messages that a browser sees once, on its next page. The cookie holds only known codes and numbers, never text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.accounts.auth_challenges import AuthChallengeExpired
from app.accounts.identities import (
    EmailAlreadyRegistered,
    EmailNotVerified,
    IdentityAlreadyLinked,
    InvitationEmailMismatch,
    ProviderAlreadyLinked,
)
from app.accounts.identity_providers import InvalidProviderResponse, ProviderAccessDenied, ProviderUnavailable
from app.accounts.invitations import InvalidInvitation, InvalidSetupLink, InvitationRequired, SignUpClosed
from app.accounts.sensitive_changes import LoginTooOld, PasskeyRequired
from app.i18n import N_, gettext, ngettext, number
from app.web.cookies import Cookies

_COOKIE_NAME = "lockstep_flash"
_MAX_AGE_S = 600
_ENTRY = re.compile(r"([a-z_]{1,40})\.([0-9]{1,9})")

PROVIDER_ERRORS = {
    problem.code: problem.message
    for problem in (
        *(
            AuthChallengeExpired,
            ProviderUnavailable,
            ProviderAccessDenied,
            InvalidProviderResponse,
            EmailAlreadyRegistered,
            EmailNotVerified,
            IdentityAlreadyLinked,
        ),
        *(LoginTooOld, PasskeyRequired),
        *(
            ProviderAlreadyLinked,
            InvitationEmailMismatch,
            InvalidInvitation,
            InvalidSetupLink,
            InvitationRequired,
            SignUpClosed,
        ),
    )
}
"""Errors of a sign-in with another site, by their code."""
_MESSAGES = {
    **PROVIDER_ERRORS,
    "signed_in": N_("You are signed in."),
    "signed_out": N_("You are signed out."),
    "adopted": N_("Your work in this browser is now in your account."),
    "saved": N_("Saved."),
    "password": N_("Your password was changed. Every other browser was signed out."),
    "email": N_("Your email address was changed."),
    "change_sent": N_("We sent a link to the new address. The old address stays in use until you open it."),
    "ended": N_("That browser was signed out."),
    "passkey": N_("The passkey was added. You can now sign in with it."),
    "authenticator_removed": N_("The authenticator app and its recovery codes were removed."),
    "passkey_removed": N_("The passkey was removed. Your device may still offer it: delete it there too."),
    "token_revoked": N_("The token was revoked. Programs that use it can no longer read anything."),
    "linked": N_("The other site is linked. You can now sign in with it."),
    "unlinked": N_("The other site is no longer linked."),
    "deleted": N_("Your account was deleted."),
    "role_changed": N_("The role was changed."),
    "account_disabled": N_("The account is disabled. Its runs and sessions end within seconds."),
    "account_enabled": N_("The account is enabled."),
    "auth_sessions_ended": N_("The account was signed out of every browser."),
    "maintenance_on": N_("Maintenance mode is on."),
    "maintenance_off": N_("Maintenance mode is off."),
    "email_retried": N_("The email is sent now."),
    "emails_retried": N_("The emails are sent now."),
    "email_discarded": N_("The email was discarded."),
    "test_email_sent": N_("The mail server accepted the test email. See whether it arrives."),
    "drained": N_("The runner starts no new sessions."),
    "undrained": N_("The runner starts sessions again."),
    "session_stopped": N_("The session was stopped."),
    "confirmation_sent": N_("A new link is on its way."),
    "group_created": N_("The group was created. Make a link, and send it to your learners."),
    "group_joined": N_("You are in the group. This page shows what its instructors see of you."),
    "group_left": N_("You left the group. Its instructors no longer see what you do."),
    "group_deleted": N_("The group was deleted."),
    "link_revoked": N_("The link no longer works."),
    "review_accepted": N_("The code was accepted, and the learner was notified."),
    "review_returned": N_("The learner was asked for changes."),
    "reminder_sent": N_("The reminder is on its way."),
    "reminders_sent": N_("The reminders are on their way."),
    "some_reminders_sent": N_(
        "Some of the reminders are on their way. You have sent many: wait before you send the rest."
    ),
}


def add(cookies: Cookies, what: str, **counts: int) -> None:
    """Show a message on the next page, with counts of what was imported from this browser."""
    words = "-".join(f"{kind}.{count}" for kind, count in {what: 1, **counts}.items())
    cookies.set(_COOKIE_NAME, words, _MAX_AGE_S)


def is_waiting(cookies: Cookies) -> bool:
    """Whether there are messages for the current page."""
    return bool(cookies.get(_COOKIE_NAME))


def pop(cookies: Cookies) -> list[str]:
    """The messages for the current page; they are then deleted."""
    cookie = cookies.get(_COOKIE_NAME)
    if not cookie:
        return []
    cookies.delete(_COOKIE_NAME)
    return to_messages({kind: int(count) for kind, count in _ENTRY.findall(cookie[:500])})


def to_messages(counts: Mapping[str, int]) -> list[str]:
    """The messages in the current language. Pure."""
    found = [gettext(_MESSAGES[kind]) for kind in counts if kind in _MESSAGES]
    things = [words for kind, count in counts.items() if (words := _merged_count(kind, count))]
    if things:
        found.append(gettext("Imported from this browser: {things}.").format(things=", ".join(things)))
    if things or "adopted" in counts:
        found.append(gettext("XP counts only what this server has seen: cells that it ran, not pages that you read."))
    return found


def _merged_count(kind: str, count: int) -> str:
    match kind:
        case "runs":
            words = ngettext("%(num)s run", "%(num)s runs", count)
        case "cells":
            words = ngettext("%(num)s cell of your own", "%(num)s cells of your own", count)
        case "lessons":
            words = ngettext("%(num)s lesson", "%(num)s lessons", count)
        case "achievements":
            words = ngettext("%(num)s achievement", "%(num)s achievements", count)
        case "xp":
            return gettext("{xp} XP").format(xp=number(count))
        case _:
            return ""
    return words % {"num": number(count)}
