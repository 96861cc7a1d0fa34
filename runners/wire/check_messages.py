"""The sentences that Lockstep itself says about a check, as templates: the app translates them, and fills them in.

A check's own sentences (names, hints, diagnoses) are the author's, and are translated beside the lesson.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

DIFFERENT = "The result is not the expected one."
DIFFERENT_BY_FACTOR = "The result is {factor} times the expected one."
WRONG_TYPE = "The result is of type {type}; the expected type is {expected}."
WRONG_SHAPE = "The result has the shape {shape}; {expected} was expected."
WRONG_DTYPE = "The result has the dtype {dtype}; {expected} was expected."
WRONG_LENGTH = "The result has {length} items; {expected} were expected."
WRONG_KEYS = "The result has the keys {keys}; {expected} were expected."
NOT_A_NUMBER = "The result contains values that are not finite numbers (NaN or infinity)."

RAISED = "Your code raised {error}: {text}"
NOT_DEFINED = "Your code defines no {name}."
NOT_CALLABLE = "{name} is not a function."
NOT_PLAIN = "{name} gave something that cannot be checked: {why}"
TOO_SLOW = "Your code took longer than {seconds} s."
ENDED = "Your code ended the process in which it ran ({outcome})."
PRINTED_TOO_MUCH = "Your code printed too much."
GIVEN = "The lesson provides {name}, and it is used for judging. You can call it, but don't change it."
BACK_DOOR = "{name} reaches past what this exercise gives you. Solve it another way."
NOT_AT_STEP = "{task} was to be killed at step {step}, but it never reported reaching that step."
NOT_REACHED = "This check was not reached, because something before it failed."
FAULT = "Lockstep could not judge this. This is not your fault, and it costs you nothing."

MESSAGES: tuple[str, ...] = (
    DIFFERENT,
    DIFFERENT_BY_FACTOR,
    WRONG_TYPE,
    WRONG_SHAPE,
    WRONG_DTYPE,
    WRONG_LENGTH,
    WRONG_KEYS,
    NOT_A_NUMBER,
    RAISED,
    NOT_DEFINED,
    NOT_CALLABLE,
    NOT_PLAIN,
    TOO_SLOW,
    ENDED,
    PRINTED_TOO_MUCH,
    GIVEN,
    BACK_DOOR,
    NOT_AT_STEP,
    NOT_REACHED,
    FAULT,
)
"""All of them."""
OWN_FAILURES = (RAISED, NOT_DEFINED, NOT_CALLABLE, NOT_PLAIN)
"""Those that the sandbox of a submission may answer with."""

_NAME = re.compile(r"\{([a-z_][a-z0-9_]*)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put ``values`` in the place of their names in braces. Unlike ``str.format`` it leaves all other braces alone."""
    return _NAME.sub(lambda match: values.get(match[1], match[0]), template)


def is_filled(message: str, template: str) -> bool:
    """Whether ``fill`` can have made ``message`` of ``template``, whatever the values were."""
    first, *others = _NAME.split(template)[::2]
    if not others:
        return message == template
    if not message.startswith(first):
        return False
    at = len(first)
    for piece in others[:-1]:
        at = message.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return message.endswith(others[-1]) and at + len(others[-1]) <= len(message)


def without_values(template: str) -> str:
    """The template with an ellipsis in the place of each value."""
    return _NAME.sub("…", template)
