"""Judges submissions on a real node, as the application requests it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from runners.wire.client import RunnerClient
from runners.wire.protocol import Judgement, NeededCell, RunAccepted, RunRequest, SessionSpec
from tests.factories.real_supervisor import RecordedRun, SessionClient, new_name

IMPORTS = "import numpy as np\nfrom runners.checks import check, close, equal, fail\n"


@dataclass(frozen=True)
class Exercise:
    """An exercise for a test; ``checks`` need no imports."""

    checks: str
    solution: str = ""
    needs: tuple[str, ...] = ()
    topology: str = "cpu"
    seconds: float = 30.0

    def request(self, submission: str, owner: str | None = None) -> RunRequest:
        """A request to judge ``submission``."""
        name = new_name()
        judgement = Judgement(
            exercise="task",
            needs=tuple(NeededCell(name=f"cell-{n}", code=textwrap.dedent(code)) for n, code in enumerate(self.needs)),
            solution=textwrap.dedent(self.solution),
            checks=IMPORTS + textwrap.dedent(self.checks),
            seconds=self.seconds,
        )
        spec = SessionSpec(owner=owner or new_name(), topology=self.topology)
        return RunRequest(id=name, session=name, spec=spec, code=textwrap.dedent(submission), judgement=judgement)

    async def submit(self, client: RunnerClient, submission: str, owner: str | None = None) -> RunAccepted:
        """Submit a submission without following it."""
        return await client.submit(self.request(submission, owner))

    async def judge(self, client: RunnerClient, submission: str | None = None) -> RecordedRun:
        """Judge a submission, by default the solution, to the last event."""
        accepted = await self.submit(client, self.solution if submission is None else submission)
        return await SessionClient(client).read(accepted)
