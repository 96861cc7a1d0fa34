"""The properties of every error."""

from __future__ import annotations

from app.accounts.dependencies import LoginRequired
from app.errors import HttpStatusError, LockstepError
from app.lessons.errors import LessonNotFound


def test_the_code_of_an_error_is_the_name_of_its_class() -> None:
    assert (LessonNotFound.code, LoginRequired.code) == ("lesson_not_found", "login_required")
    assert HttpStatusError(405).code == "method_not_allowed"


def test_an_error_of_our_own_making_has_a_code_too() -> None:
    assert LockstepError().code == "lockstep_error"
