"""What a session does without a kernel."""

from __future__ import annotations

import pytest

from runners.kernels import Kernel
from runners.protocol import Keras, SessionSpec, SessionState
from runners.session import Session
from runners.settings import Limits


class NoKernels:
    """A source that nobody may ask."""

    async def take(self, topology: str, keras: Keras) -> Kernel:
        """Fail the test."""
        pytest.fail("a kernel was taken for a session that is over")


async def test_one_that_has_ended_in_the_queue_takes_no_place() -> None:
    session = Session("s", SessionSpec(owner="o", topology="cpu", keras=3), Limits(), 60, NoKernels())

    session.end("replaced")
    session.admit()

    assert session.state == SessionState.gone
    assert session.gone.is_set()
