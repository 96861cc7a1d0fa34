"""An op outside a function goes straight to its kernel."""

from __future__ import annotations

import pytest

from tests.factories.tensorflow_forks import Forges

pytestmark = pytest.mark.slow

PROGRAM = """
import tensorflow as tf
from tensorflow.python.eager import context
assert float(tf.constant(1.0) + 1) == 2
print(sorted(context.context().list_function_names()))
"""


def test_an_op_runs_without_a_function_around_it(forges: Forges) -> None:
    ran = forges(3).run(PROGRAM, "cpu")
    assert (ran.status, ran.output) == (0, "[]\n")
