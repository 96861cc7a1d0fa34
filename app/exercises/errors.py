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
    message = N_("Enter a number, such as 16 or -0.5.")


class ChoiceMissing(InvalidInput):
    message = N_("Choose an answer first.")


class OrderIncomplete(InvalidInput):
    message = N_("Give each step a different position.")


# --- reviews ----------------------------------------------------------------------------------------------------------


class ReviewNotFound(NotFound):
    """The review does not exist, was withdrawn, or is not for this account to see."""

    message = N_("This review does not exist, or it was withdrawn.")


class ReviewNotOffered(LockstepError):
    status = 409
    message = N_("No one can review this exercise for you right now. Check your code: it counts once it passes.")


class NothingToReview(LockstepError):
    status = 409
    message = N_("Pass the checks first, then ask for a review.")


class ReviewWaiting(LockstepError):
    """An earlier submission waits."""

    status = 409
    message = N_("An earlier submission is still waiting for a review. Withdraw it before you submit other code.")


class ReviewUnchanged(LockstepError):
    status = 409
    message = N_("This code was already reviewed. Change it and check it, then ask for a review again.")


class ReviewAlreadyAccepted(LockstepError):
    status = 409
    message = N_("Your code for this exercise was already accepted.")


class ReviewAlreadyDecided(LockstepError):
    """Raised for the learner."""

    status = 409
    message = N_("Your code has been reviewed in the meantime, so you can no longer withdraw it.")


class CodeTooLongForReview(InvalidInput):
    message = N_(
        "This code has {lines:,} lines, and the limit for a review is {most:,}. Shorten it, and check it again."
    )


class ReviewDecidedByAnother(LockstepError):
    """Raised for a reviewer."""

    status = 409
    message = N_("{name} decided this review in the meantime, so nothing was changed. What you wrote is still here.")


class ReviewDecidedBefore(LockstepError):
    """Raised for the reviewer who decided."""

    status = 409
    message = N_("You have already decided this review, so nothing was changed. What you wrote is still here.")


class ReviewWithdrawn(LockstepError):
    status = 409
    message = N_("The learner withdrew this code in the meantime. What you wrote is still here, but it was not saved.")


class ReviewChanged(LockstepError):
    status = 409
    message = N_("Somebody else commented in the meantime. Read their comments, then decide again.")


class LineNotFound(InvalidInput):
    message = N_("Choose a line from 1 to {most}.")


class NothingSaid(InvalidInput):
    message = N_("Say what to change: comment on a line, or write a remark.")


class TooManyReviewComments(InvalidInput):
    message = N_("This review has {most} comments, and that is the limit.")


class OwnReview(PermissionDenied):
    message = N_("You cannot review your own code.")
