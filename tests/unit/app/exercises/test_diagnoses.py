"""Messages are traced back to the sentences of the author, in each language and whatever their values."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.exercises.diagnoses import diagnosis_title, find_diagnosis
from app.lessons.catalog import Catalog
from tests.factories.exercises import write_exercise_lesson


@pytest.mark.parametrize(
    ("language", "message", "title"),
    [
        ("en", "This is the sum, not the mean.", "This is the sum, not the mean"),
        ("ko", "평균이 아니라 합계입니다.", "This is the sum, not the mean"),
        ("en", "It got 3 of 7 values.", "It got … of … values"),
        ("en", "It got 3 values.", ""),
        ("en", "secret", ""),
        ("en", "3", ""),
        ("en", "secret: 3", ""),
    ],
)
def test_a_message_is_traced_to_the_sentence_of_the_author(
    tmp_path: Path, language: str, message: str, title: str
) -> None:
    checks = write_exercise_lesson(tmp_path) / "checks.py"
    checks.write_text(
        checks.read_text() + "\n\ndef more(work: Work) -> None:\n"
        '    fail("{got}", got=1)\n    fail("{what}: {got}", what="a", got=1)\n'
        '    fail("It got {got} of {wanted} values.", got=1, wanted=2)\n'
    )
    catalog = Catalog(tmp_path, quiet=True)
    catalog.reload()
    judged, english = (catalog.find_exercise("course/one", "mean", one) for one in (language, "en"))
    assert judged is not None
    assert english is not None

    found = find_diagnosis(message, judged)
    assert (diagnosis_title(found, english) if found else "") == title
