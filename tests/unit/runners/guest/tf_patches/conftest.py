"""The data sets' own fixtures: what is patched into Keras reads them too."""

from tests.unit.runners.datasets.conftest import learner, server, tiny

__all__ = ["learner", "server", "tiny"]
