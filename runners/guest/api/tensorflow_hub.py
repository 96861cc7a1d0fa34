"""``import tensorflow_hub`` for models in the session's files, as in TensorFlow's guide to saving under a strategy.

The package itself would download the rest, which no session can.
"""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any


def load(handle: str | os.PathLike[str], tags: Any = None, options: Any = None) -> Any:
    """Load a SavedModel from a folder.

    Raises:
        ConnectionError: ``handle`` is an address.
    """
    import tensorflow as tf

    path = os.fspath(handle)
    if "://" in path:
        raise ConnectionError(f"network is unreachable: the sandbox has none to download {path} from")
    return tf.saved_model.load(path, tags=tags, options=options)


@functools.cache
def keras_layer() -> type:
    """The class ``KerasLayer``: a layer of TF-Keras that calls a SavedModel, given by its folder or loaded."""
    import tf_keras

    class KerasLayer(tf_keras.layers.Layer):  # type: ignore[misc]
        """What a SavedModel computes, and its variables."""

        def __init__(
            self,
            handle: Any,
            trainable: bool = False,
            arguments: dict[str, Any] | None = None,
            signature: str | None = None,
            output_key: str | None = None,
            load_options: Any = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(trainable=trainable, **kwargs)
            self._loaded = load(handle, options=load_options) if isinstance(handle, str | os.PathLike) else handle
            self._arguments, self._output_key = arguments or {}, output_key
            self._computes = self._loaded.signatures[signature] if signature else self._loaded
            self._takes_training = not signature and "training" in inspect.signature(self._loaded.__call__).parameters
            changing = {id(v) for v in getattr(self._loaded, "trainable_variables", ())}
            for variable in getattr(self._loaded, "variables", ()):
                if variable is not None:
                    kept = self._trainable_weights if id(variable) in changing else self._non_trainable_weights
                    kept.append(variable)

        def call(self, inputs: Any, training: bool | None = None) -> Any:
            """Call it, in training only if this layer is trainable."""
            arguments = dict(self._arguments)
            if self._takes_training:
                arguments["training"] = bool(training and self.trainable)
            found = self._computes(inputs, **arguments)
            return found[self._output_key] if self._output_key else found

    return KerasLayer


def attribute(name: str) -> Any:
    """What the module has only when it is asked for.

    Raises:
        AttributeError: there is no such attribute, or not with Keras 3.
    """
    if name != "KerasLayer":
        raise AttributeError(f"module 'tensorflow_hub' has no attribute {name!r}")
    if os.environ.get("TF_USE_LEGACY_KERAS") != "1":
        raise AttributeError("module 'tensorflow_hub' has no attribute 'KerasLayer' with Keras 3")
    return keras_layer()
