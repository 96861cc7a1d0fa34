"""Reasons why an exercise, quiz or prediction cannot be answered."""

from __future__ import annotations

from app.errors import InvalidInput, LockstepError, NotFound, PermissionDenied
from app.i18n import N_


class ExerciseNotFound(NotFound):
    message = N_("The lesson has no exercise “{exercise}”. Reload the page: the lesson may have changed.")


class QuizNotFound(NotFound):
    message = N_("The lesson has no question “{quiz}”. Reload the page: the lesson may have changed.")


class PredictionNotFound(NotFound):
    message = N_("The lesson has no prediction “{prediction}”. Reload the page: the lesson may have changed.")


class SubmissionNotFound(NotFound):
    """The submission does not exist, or it is someone else's."""

    message = N_("This try does not exist.")


class HintNotFound(NotFound):
    message = N_("There are no more hints.")


class AnotherCheckRunning(LockstepError):
    """A learner can have one judgement at a time."""

    status = 409
    message = N_("Your code for “{exercise}” is still being checked. Wait until that is done, then check this one.")


class SolutionLocked(PermissionDenied):
    """``tries`` is the number of failed tries that unlock the solution."""

    message = N_("You can see the solution once you have passed, or after {tries} failed tries.")


class InvalidGuess(InvalidInput):
    message = N_("Enter a number, such as 16 or 0.5.")


class ChoiceMissing(InvalidInput):
    message = N_("Choose an answer first.")


class OrderIncomplete(InvalidInput):
    message = N_("Give each step a different position.")
