"""Processes that have imported TensorFlow, one for each Keras version, for all tests that fork programs from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.factories.tensorflow_forks import TensorFlowForkServer

Forges = Callable[[int], TensorFlowForkServer]


@pytest.fixture(scope="session")
def forges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forges]:
    """The fork server for a Keras version, started when first needed."""
    started: dict[int, TensorFlowForkServer] = {}

    def forge(keras: int) -> TensorFlowForkServer:
        if keras not in started:
            started[keras] = TensorFlowForkServer(keras, tmp_path_factory.mktemp("home"))
        return started[keras]

    yield forge
    for each in started.values():
        each.close()
