"""Which optimizers of Keras 2 accept the arguments of TensorFlow 2.6."""

from __future__ import annotations

import pytest

from runners.guest.tf_patches.keras2 import OPTIMIZERS
from tests.factories.tensorflow_forks import Forges

pytestmark = pytest.mark.slow

PROGRAM = """
import inspect
import tensorflow as tf
from runners.guest.tf_patches import keras2

found = {name: each for name, each in vars(tf.keras.optimizers).items() if isinstance(each, type)}
rated = sorted(name for name, each in found.items() if "learning_rate" in inspect.signature(each).parameters)
keras2.install()
print(rated)
print([round(float(found[name](lr=0.25).learning_rate), 2) for name in rated])
print([type(found[name](0.5, decay=1.0)._learning_rate).__name__ for name in rated])
"""


def test_each_optimizer_with_a_learning_rate_takes_it_as_lr_and_lets_it_decay(forges: Forges) -> None:
    ran = forges(2).run(PROGRAM, "cpu")
    assert ran.status == 0, ran.output[-3000:]
    names, rates, schedules = map(eval, ran.output.splitlines()[-3:])
    assert names == sorted(OPTIMIZERS)
    assert set(rates) == {0.25}
    assert set(schedules) == {"InverseTimeDecay"}
