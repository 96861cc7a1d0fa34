"""``import tensorflow_hub``: SavedModels in the session's files, and layers of TF-Keras that call them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.factories.tensorflow_forks import Forges

pytestmark = pytest.mark.slow

SETUP = """
import tensorflow as tf
from runners.guest.api import supplied_modules
supplied_modules.install()
import tensorflow_hub as hub
"""
LAYERS = """
layers = tf.keras.layers
doubled = tf.keras.Sequential(
    [layers.Input([1]), layers.Dense(1, use_bias=False, kernel_initializer=tf.keras.initializers.Constant(2.0))]
)
tf.saved_model.save(doubled, FOLDER)
assert hub.load(FOLDER)(tf.ones([1, 1])).numpy().item() == 2
x = tf.keras.Input([1])
model = tf.keras.Model(x, hub.KerasLayer(FOLDER, trainable=True)(x))
model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(tf.ones([4, 1]), tf.ones([4, 1]), verbose=0)
assert [round(weight.numpy().item(), 6) for weight in model.trainable_weights] == [1.8]
frozen = hub.KerasLayer(hub.load(FOLDER), signature="serving_default", output_key="dense")
assert frozen(tf.ones([1, 1])).numpy().item() == 2
assert [len(frozen.trainable_weights), len(frozen.weights)] == [0, 1]

tf.saved_model.save(tf.keras.Sequential([layers.Input([2]), layers.Dropout(0.5)]), FOLDER + "/dropout")
layer = hub.KerasLayer(FOLDER + "/dropout", trainable=True)
assert layer(tf.ones([1, 2])).numpy().tolist() == [[1, 1]]
assert set(layer(tf.ones([50, 2]), training=True).numpy().ravel()) == {0, 2}
try:
    hub.load("https://example.org/model")
except ConnectionError as e:
    print(e)
"""


def test_a_layer_trains_what_a_saved_model_lets_it_train(forges: Forges, tmp_path: Path) -> None:
    ran = forges(2).run(f"{SETUP}FOLDER = {str(tmp_path)!r}\n{LAYERS}", "cpu")

    assert ran.status == 0, ran.output[-4000:]
    assert "the sandbox has none to download https://example.org/model from" in ran.output


def test_with_keras_3_there_is_no_such_layer_as_in_the_package(forges: Forges) -> None:
    ran = forges(3).run(f"{SETUP}hub.KerasLayer", "cpu")

    assert "module 'tensorflow_hub' has no attribute 'KerasLayer' with Keras 3" in ran.output
