"""The same fixtures as for the quick tests on a real runner."""

from __future__ import annotations

from tests.functional.runner.conftest import client, jupyter, learner, node

__all__ = ["client", "jupyter", "learner", "node"]
