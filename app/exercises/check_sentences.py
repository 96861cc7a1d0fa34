"""Messages of checks from the runner itself, listed for translation. Values are filled in afterwards."""

from __future__ import annotations

from app.i18n import N_, gettext

SENTENCES = (
    N_("The result is not the expected one."),
    N_("The result is {factor} times the expected one."),
    N_("The result is of type {type}; the expected type is {expected}."),
    N_("The result has the shape {shape}; {expected} was expected."),
    N_("The result has the dtype {dtype}; {expected} was expected."),
    N_("The result has {length} items; {expected} were expected."),
    N_("The result has the keys {keys}; {expected} were expected."),
    N_("The result contains values that are not finite numbers (NaN or infinity)."),
    N_("Your code raised {error}: {text}"),
    N_("Your code defines no {name}."),
    N_("{name} is not a function."),
    N_("{name} gave something that cannot be checked: {why}"),
    N_("Your code took longer than {seconds} s."),
    N_("Your code ended the process in which it ran ({outcome})."),
    N_("Your code printed too much."),
    N_("The lesson provides {name}, and it is used for judging. You can call it, but don't change it."),
    N_("{name} reaches past what this exercise gives you. Solve it another way."),
    N_("{task} was to be killed at step {step}, but it never reported reaching that step."),
    N_("This check was not reached, because something before it failed."),
    N_("Lockstep could not judge this. This is not your fault, and it costs you nothing."),
)
"""The messages in ``runners.wire.check_messages``."""


def check_sentence(message: str) -> str:
    """One of these messages in the current language; an author's message unchanged."""
    return gettext(message) if message in SENTENCES else message
