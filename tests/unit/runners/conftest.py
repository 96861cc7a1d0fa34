"""Processes that have imported TensorFlow, one for each Keras, shared by all tests that fork programs from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.factories.tensorflow_forks import TensorFlowForkServer

Forges = Callable[[int], TensorFlowForkServer]


@pytest.fixture(scope="session")
def forges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forges]:
    """The forge of a Keras, started when it is first asked for."""
    started: dict[int, TensorFlowForkServer] = {}

    def forge(keras: int) -> TensorFlowForkServer:
        if keras not in started:
            started[keras] = TensorFlowForkServer(keras, tmp_path_factory.mktemp("home"))
        return started[keras]

    yield forge
    for each in started.values():
        each.close()
