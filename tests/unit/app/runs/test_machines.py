"""Learners run cells on the machines that the lesson offers, and on no others."""

from __future__ import annotations

import pytest

from app.runs.errors import MachineUnavailable
from app.runs.machines import Machine, cell_machines, choose_machine, lesson_machines
from tests.factories.lesson_source import CELL, FRONT_MATTER, render_body

LESSON = render_body(
    CELL + "```{code-cell} python\n:name: own\n:topology: cpu\n:kerases: [2]\n\nx\n```\n",
    header=FRONT_MATTER + "topology: gpu:4\ntopologies: [gpu:2, gpu:4]\nkerases: [2, 3]\n",
)
ONE, OWN = LESSON.cells


def test_a_cell_offers_every_machine_with_every_keras_the_one_it_starts_with_first() -> None:
    assert cell_machines(ONE) == [Machine("gpu:4", 3), Machine("gpu:2", 2), Machine("gpu:2", 3), Machine("gpu:4", 2)]
    assert cell_machines(OWN) == [Machine("cpu", 2)]
    assert lesson_machines(LESSON) == [*cell_machines(ONE), *cell_machines(OWN)]


def test_what_is_not_said_is_as_the_cell_has_it() -> None:
    possible = cell_machines(ONE)

    assert choose_machine(possible, None, None) == Machine("gpu:4", 3)
    assert choose_machine(possible, "gpu:2", None) == Machine("gpu:2", 3)
    assert choose_machine(possible, None, 2) == Machine("gpu:4", 2)


@pytest.mark.parametrize(
    ("topology", "keras"), [("gpu:8", None), ("cpu", 2), (None, 4), ("gpu:2; rm", 3), ("x" * 999, 3)]
)
def test_anything_else_is_refused_with_what_is_possible(topology: str | None, keras: int | None) -> None:
    with pytest.raises(MachineUnavailable) as refused:
        choose_machine(cell_machines(ONE), topology, keras)

    sentence = refused.value.localized_message()
    assert "only on gpu:4 (Keras 3), gpu:2 (Keras 2), gpu:2 (Keras 3), gpu:4 (Keras 2)." in sentence
    assert len(sentence) < 300
