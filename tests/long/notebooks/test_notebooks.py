"""Notebooks with the calls of TensorFlow's guides and tutorials, cell by cell in one session each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import RecordedRun, SessionClient

NOTEBOOKS = {
    path.stem: path.read_text() for path in sorted(Path(__file__).parent.glob("*.md")) if path.name != "README.md"
}
_MACHINE = re.compile(r"Machine `(?P<topology>[^`]+)`, Keras (?P<kerases>[23]|2 and 3)\.")
_CELL = re.compile(r"^```python(?: (?P<hint>\S+))?\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def machine_of(name: str) -> tuple[str, list[int]]:
    """The topology and the versions of Keras in the first lines of a notebook."""
    found = _MACHINE.search(NOTEBOOKS[name])
    assert found, name
    return found["topology"], [int(keras) for keras in found["kerases"].split(" and ")]


@pytest.mark.parametrize(("name", "keras"), [(name, keras) for name in NOTEBOOKS for keras in machine_of(name)[1]])
async def test_every_cell_of_a_notebook_ends_as_it_says(client: RunnerClient, name: str, keras: int) -> None:
    learner = SessionClient(client, topology=machine_of(name)[0], keras=2 if keras == 2 else 3)
    cells = list(_CELL.finditer(NOTEBOOKS[name]))
    problems = {}
    for number, cell in enumerate(cells, 1):
        if problem := _problem(await learner.run(cell["code"]), cell["hint"]):
            problems[number] = problem
    await learner.leave()
    print(f"{name}: {len(cells) - len(problems)} of {len(cells)}")
    assert not problems, "\n\n".join(f"cell {number}: {problem}" for number, problem in problems.items())


def _problem(ran: RecordedRun, hint: str | None) -> str:
    """What is wrong with the end of a run, which is an error with this hint, or none; empty if nothing is."""
    hints = [event.code for event in ran.events if event.kind == "notice"]
    if ran.outcome == Outcome.ok if hint is None else ran.outcome == Outcome.error and hint in hints:
        return ""
    errors = [f"{event.name}: {event.value}" for event in ran.events if event.kind == "error"]
    return f"{ran.outcome}, {hints}\n{ran.text[-2000:]}\n{errors[-1:]}"
