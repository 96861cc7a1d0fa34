"""Notebooks with the calls of TensorFlow's guides and tutorials, cell by cell in one session each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import SessionClient

NOTEBOOKS = {
    path.stem: path.read_text() for path in sorted(Path(__file__).parent.glob("*.md")) if path.name != "README.md"
}
_MACHINE = re.compile(r"Machine `(?P<topology>[^`]+)`, Keras (?P<keras>[23])\.")
_CELL = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", NOTEBOOKS)
async def test_every_cell_of_a_notebook_ends_without_an_error(client: RunnerClient, name: str) -> None:
    machine, cells = _MACHINE.search(NOTEBOOKS[name]), _CELL.findall(NOTEBOOKS[name])
    assert machine
    learner = SessionClient(client, topology=machine["topology"], keras=2 if machine["keras"] == "2" else 3)
    failed = {}
    for number, code in enumerate(cells, 1):
        told = await learner.run(code)
        if told.outcome != Outcome.ok:
            errors = [f"{event.name}: {event.value}" for event in told.events if event.kind == "error"]
            failed[number] = f"{told.outcome}\n{told.text[-2000:]}\n{errors[-1:]}"
    await learner.leave()
    print(f"{name}: {len(cells) - len(failed)} of {len(cells)}")
    assert not failed, "\n\n".join(f"cell {number}: {problem}" for number, problem in failed.items())
