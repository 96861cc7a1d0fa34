"""The fixtures for data sets, which patches of Keras read as well."""

from tests.unit.runners.datasets.conftest import learner, server, tiny

__all__ = ["learner", "server", "tiny"]
