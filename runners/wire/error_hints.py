"""The usual mistakes in distributed TensorFlow: how to recognize each by its error, and what to do about it. Pure.

The sandbox looks an error up, and sends the code of its hint as a notice. ``runners.wire.reports.NOTICES`` contains the
sentences, so that a client can show them. To add a mistake, provoke it in a session, add it here and to the cases in
``tests/unit/runners/wire/test_error_hints.py``, and add the sentence to ``app/runs/error_hints.py``.

The first hint that fits is shown. A hint must be right whenever it is shown: recognize an error by words that only its
cause produces, and by the library that raises it where other code could raise the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Need = Literal["keras-2", "tpu", "servers"]
"""What another session would have that this one has not: Keras 2, a TPU, or parameter servers."""
_MOST_TEXT = 20_000
"""Characters of a message that are searched."""
_PACKAGES = (
    "arviz|bokeh|bs4|catboost|cupy|cv2|dask|datasets|flax|gensim|geopandas|gym|gymnasium|horovod|hvplot|jax|keras_cv"
    "|keras_hub|keras_nlp|keras_tuner|lightgbm|mlflow|networkx|nltk|numba|openpyxl|optax|pandas_datareader|polars"
    "|pyarrow|pymc|quantecon|scipy|seaborn|skimage|sklearn|spacy|statsmodels|sympy|tensorflow_addons"
    "|tensorflow_federated|tensorflow_models|tensorflow_probability|tensorflow_recommenders|tensorflow_text|torch"
    "|torchaudio|torchvision|transformers|wandb|xarray|xgboost|yfinance"
)
"""Modules of well-known packages. Another name that is not found may be misspelled, or a file of the learner's."""
_KERAS_3 = "/keras/src/"
_DISTRIBUTE = "/tensorflow/python/distribute/"


class Sign:
    """What an error looks like."""

    def __init__(
        self, errors: str | tuple[str, ...], pattern: str, *, raised_in: str = "", keras: int | None = None
    ) -> None:
        """Create one.

        Args:
            errors: the name of the error's class, or several.
            pattern: a regular expression to find in its message; ``.`` matches line breaks, too.
            raised_in: part of the path of a file in its traceback.
            keras: the version of Keras in use; None for both.
        """
        self.errors = (errors,) if isinstance(errors, str) else errors
        self.pattern = re.compile(pattern, re.DOTALL)
        self.raised_in = raised_in
        self.keras = keras

    def match(self, name: str, text: str, files: Sequence[str], keras: int) -> dict[str, str] | None:
        """The named groups of the pattern if this is such an error, or None. For arguments, see ``find_hint``."""
        if name not in self.errors or self.keras not in (None, keras):
            return None
        if self.raised_in and not any(self.raised_in in file for file in files):
            return None
        found = self.pattern.search(text)
        return None if found is None else found.groupdict()


class ErrorHint:
    """A mistake, and the errors by which it shows."""

    def __init__(self, code: str, sentence: str, *signs: Sign, needs: Need | None = None) -> None:
        """Create one.

        Args:
            code: of the notice.
            sentence: the cause, then what to do. May contain the names of groups of the patterns in braces.
            signs: any of them is enough.
            needs: what the code needs of another session; each client says how to get one.
        """
        self.code = code
        self.sentence = sentence
        self.signs = signs
        self.needs = needs


def find_hint(name: str, text: str, files: Sequence[str], keras: int) -> tuple[str, dict[str, str]] | None:
    """The code and the values of the notice (see ``runners.wire.reports``) about an error, or None.

    Args:
        name: the error's class.
        text: its message.
        files: the paths of the files in its traceback.
        keras: the version of Keras in use.
    """
    text = text[:_MOST_TEXT]
    for hint in ERROR_HINTS:
        for sign in hint.signs:
            if (values := sign.match(name, text, files, keras)) is not None:
                return hint.code, values
    return None


ERROR_HINTS: tuple[ErrorHint, ...] = (
    # Strategies, scopes and replicas.
    ErrorHint(
        "strategy-comes-first",
        "A MultiWorkerMirroredStrategy must be created before TensorFlow runs its first operation. "
        "Restart the session, and first run the cell that creates it.",
        Sign("RuntimeError", r"Collective ops must be configured at program startup"),
    ),
    ErrorHint(
        "outside-the-scope",
        "The model, its optimizer and its metrics do not belong to the same strategy. Create all of them, and call "
        "compile, within strategy.scope().",
        Sign("RuntimeError", r"Mixing different tf\.distribute\.Strategy objects: .*_DefaultDistributionStrategy"),
        Sign(
            "ValueError",
            r"was not created in the distribution strategy scope"
            r"|must only be passed a variable created in this tf\.distribute\.Strategy\.scope\(\)",
        ),
        Sign("AssertionError", r"^$", raised_in="/keras/src/backend/tensorflow/optimizer.py", keras=3),
    ),
    ErrorHint(
        "two-strategies",
        "Two strategies are in use at once: what one of them created is used within the scope of the other. Use a "
        "single strategy, or restart the session and create everything again.",
        Sign("RuntimeError", r"Mixing different tf\.distribute\.Strategy objects"),
    ),
    ErrorHint(
        "in-a-replica",
        "This can be called only outside of the replicas, but it was called in a function that strategy.run runs on "
        "each of them. Call scope, run and reduce around that function, not in it.",
        Sign("RuntimeError", r"Method requires being in cross-replica context"),
    ),
    ErrorHint(
        "outside-the-replicas",
        "Outside of the replicas there is no replica context: tf.distribute.get_replica_context() returned None. "
        "Call it in the function that you pass to strategy.run.",
        Sign(
            "AttributeError",
            r"'NoneType' object has no attribute '(all_reduce|all_gather|merge_call|replica_id_in_sync_group)'",
        ),
    ),
    ErrorHint(
        "update-in-a-condition",
        "A Keras 3 optimizer with gradient_accumulation_steps or ema_overwrite_frequency does not work "
        "on several replicas: it decides inside a conditional whether this step updates the variables, "
        "and TensorFlow does not let replicas synchronize there. Remove the argument, and accumulate "
        "the gradients in your own training loop.",
        Sign(
            "RuntimeError",
            r"Cond\.call\(\).*`merge_call` called while defining a new graph",
            raised_in=_KERAS_3,
            keras=3,
        ),
    ),
    ErrorHint(
        "reduction-in-a-condition",
        "The replicas would wait for each other inside a conditional, a loop or a tf.function of its own, which "
        "TensorFlow does not allow. Move the reduction, or the optimizer's update, out of it.",
        Sign("RuntimeError", r"`merge_call` called while defining a new graph or a tf\.function"),
    ),
    ErrorHint(
        "value-per-replica",
        "strategy.run returned one value for each replica. Combine them with strategy.reduce('SUM', value, "
        "axis=None), or list them with strategy.experimental_local_results(value).",
        Sign(
            ("AttributeError", "TypeError"),
            r"'PerReplica' object has no attribute"
            r"|unsupported (operand type|format string).*PerReplica"
            r"|argument must be .* not 'PerReplica'",
        ),
        Sign("ValueError", r"you are using a PerReplica object while not inside a replica context"),
    ),
    ErrorHint(
        "arguments-of-run",
        "strategy.run takes the arguments of the function as a tuple: args=(batch,), with the comma, if there is one.",
        Sign("ValueError", r"positional args must be a list or tuple", raised_in=_DISTRIBUTE),
    ),
    ErrorHint(
        "reduce-needs-an-axis",
        "strategy.reduce needs an axis. axis=None adds the replicas' values up as they are; axis=0 also adds up the "
        "first dimension of each of them, which is the batch.",
        Sign("TypeError", r"reduce\(\) missing 1 required positional argument: 'axis'"),
    ),
    ErrorHint(
        "sum-or-mean",
        "Replicas' values can be reduced with 'SUM' or 'MEAN' only.",
        Sign("ValueError", r"is not a valid ReduceOp"),
    ),
    ErrorHint(
        "no-aggregation",
        "TensorFlow does not know how to make one value of the replicas' copies of this variable. Create it with "
        "aggregation=tf.VariableAggregation.SUM, MEAN or ONLY_FIRST_REPLICA.",
        Sign("ValueError", r"Could not convert from `tf\.VariableAggregation` VariableAggregation(V2)?\.NONE"),
    ),
    ErrorHint(
        "loss-reduction",
        "In your own training loop on several replicas, Keras 2 does not know how to average the loss. Create it with "
        "reduction=tf.keras.losses.Reduction.NONE, add up the examples, and divide by the global batch size.",
        Sign(
            "ValueError",
            r"Please use `tf\.keras\.losses\.Reduction\.SUM` or `tf\.keras\.losses\.Reduction\.NONE`",
            keras=2,
        ),
    ),
    ErrorHint(
        "shapes-differ",
        "The workers passed tensors of different shapes to the same all-reduce. Give all of them batches of the same "
        "size, for example with batch(…, drop_remainder=True). Restart the session before you run it again.",
        Sign("InvalidArgumentError", r"Shape mismatch in the collective instance"),
    ),
    # Data.
    ErrorHint(
        "dataset-already-distributed",
        "A distributed dataset can only be iterated over. Call take, map, batch or len on the original dataset, before "
        "strategy.experimental_distribute_dataset.",
        Sign(
            ("AttributeError", "TypeError"),
            r"'Distributed\w*Dataset\w*' object has no attribute|object of type 'Distributed\w*Dataset\w*' has no len",
        ),
    ),
    ErrorHint(
        "not-a-dataset",
        "Only a tf.data.Dataset can be distributed. Make one of the arrays: "
        "tf.data.Dataset.from_tensor_slices((x, y)).batch(64).",
        Sign(
            "AttributeError",
            r"'(numpy\.ndarray|ndarray|tuple|list|EagerTensor)' object has no attribute '(_variant_tensor|options)'",
            raised_in=_DISTRIBUTE,
        ),
    ),
    ErrorHint(
        "unequal-shards",
        "This batch cannot be divided equally among the replicas: one of them got fewer examples, or none. Make the "
        "number of examples a multiple of the global batch size, or pass a dataset with batch(…, "
        "drop_remainder=True).",
        Sign(  # Keras 3 adds up the replicas' shards of the first batch to build the model
            "InvalidArgumentError",
            r"Inputs to operation AddN of type AddN must have the same size and shape.*\[Op:AddN\]",
            raised_in=_KERAS_3,
            keras=3,
        ),
        Sign(
            "InternalError",
            r"Missing \d-th output from \{\{node [^}]*gradient_tape/replica_\d+/[^}]*Conv2DBackpropFilter",
        ),
    ),
    ErrorHint(
        "batch-before-distributing",
        "The strategy shares out batches, and this dataset has none. Call batch(…) with the global batch size before "
        "you distribute it.",
        Sign(
            "IndexError", r"list index out of range", raised_in="/tensorflow/python/data/experimental/ops/distribute.py"
        ),
    ),
    ErrorHint(
        "function-of-a-dataset",
        "distribute_datasets_from_function takes a function, not a dataset: it is called with an InputContext on each "
        "worker, and returns that worker's dataset.",
        Sign("TypeError", r"Dataset' object is not callable", raised_in=_DISTRIBUTE),
    ),
    ErrorHint(
        "nothing-to-shard-by-file",
        "With AutoShardPolicy.FILE, each worker reads other files, and this dataset reads none. Choose "
        "AutoShardPolicy.DATA, or read the data from files.",
        Sign("NotFoundError", r"Found an unshardable source dataset"),
    ),
    # Devices, clusters and the network.
    ErrorHint(
        "devices-come-first",
        "Devices and threads can be configured only before TensorFlow runs its first operation. Restart the session, "
        "and first run the cell that configures them.",
        Sign("RuntimeError", r"cannot be modified after (being initialized|initialization)"),
    ),
    ErrorHint(
        "no-tpu",
        "This machine has no TPU. Choose one with TPU cores.",
        Sign("ValueError", r"Please provide a TPU Name to connect to"),
        needs="tpu",
    ),
    ErrorHint(
        "tpu-needs-a-function",
        "A TPU runs compiled functions only. Call strategy.run within a function that has @tf.function above it.",
        Sign("NotImplementedError", r"TPUStrategy\.run\(fn, \.\.\.\) does not support pure eager execution"),
    ),
    ErrorHint(
        "tf-config",
        "TF_CONFIG does not describe this task. It needs the addresses of the whole cluster, and a task with a type "
        "and an index among them. On a machine with several workers, Lockstep has set it before the cell runs.",
        Sign(
            "ValueError",
            r"When `cluster_spec` is given, you must also specify `task_type` and `task_id`"
            r"|The `task_id` \d+ exceeds the maximum id",
        ),
        Sign("JSONDecodeError", "", raised_in=f"{_DISTRIBUTE}cluster_resolver/"),
    ),
    ErrorHint(
        "no-cluster",
        "A ParameterServerStrategy needs a cluster, and TF_CONFIG does not name one. Choose a machine with parameter "
        "servers.",
        Sign("ValueError", r"Cluster spec must be non-empty"),
        needs="servers",
    ),
    ErrorHint(
        "schedule-a-function",
        "A coordinator can only schedule a function that has @tf.function above it, because the worker receives "
        "it as a graph.",
        Sign("TypeError", r"ClusterCoordinator\.schedule` only accepts"),
    ),
    ErrorHint(
        "not-fetched",
        "A worker returns its result later. Call fetch() on it, which waits for the value.",
        Sign(("AttributeError", "TypeError"), r"'?RemoteValueImpl'?"),
    ),
    ErrorHint(
        "communication-options",
        "The argument has another name now. Pass "
        "communication_options=tf.distribute.experimental.CommunicationOptions(implementation=…).",
        Sign(
            "TypeError", r"CollectiveAllReduceStrategy\.__init__\(\) got an unexpected keyword argument 'communication'"
        ),
    ),
    ErrorHint(
        "no-network",
        "There is no network in the sandbox. Load data with keras.datasets, or create it in the cell.",
        Sign(
            ("URLError", "gaierror", "ConnectionError", "ConnectError", "ClientConnectorError", "MaxRetryError"),
            r"(?i:name resolution|failed to resolve|name or service not known|network is unreachable)",
        ),
    ),
    ErrorHint(
        "package-missing",
        "{package} is not installed on this site, and there is no network to install it from. Only the people who run "
        "the site can add it.",
        Sign("ModuleNotFoundError", rf"No module named '(?P<package>{_PACKAGES})'"),
    ),
    # tf.function.
    ErrorHint(
        "variable-in-a-function",
        "A tf.function may create variables in its first call only. Create the variable, layer or optimizer outside of "
        "it, within strategy.scope().",
        Sign("ValueError", r"tf\.function only supports singleton tf\.Variables created on the first call"),
    ),
    ErrorHint(
        "tensor-as-a-condition",
        "While a function becomes a graph, its tensors have no values that Python's if and while could look at. Use "
        "@tf.function without autograph=False, or tf.cond and tf.where.",
        Sign("OperatorNotAllowedInGraphError", r"Using a symbolic `tf\.Tensor` as a Python `bool`"),
    ),
    ErrorHint(
        "numpy-in-a-function",
        "In a tf.function, tensors have no values yet, so NumPy cannot read them. Use TensorFlow's operations there, "
        "and call numpy() on what the function returns.",
        Sign("AttributeError", r"'SymbolicTensor' object has no attribute 'numpy'"),
    ),
    ErrorHint(
        "tensor-left-its-function",
        "A tensor of a tf.function was kept in a list or a variable of Python and used outside, where it does not "
        "exist. Return it from the function instead.",
        Sign(("TypeError", "InaccessibleTensorError"), r"is out of scope and cannot be used here"),
    ),
    # Keras.
    ErrorHint(
        "steps-per-execution",
        "Keras 3's fit with steps_per_execution fails when replicas add up their gradients with "
        "collective ops, which is MirroredStrategy's default: TensorFlow itself fails there. Pass "
        "cross_device_ops=tf.distribute.ReductionToOneDevice() to the strategy, or remove "
        "steps_per_execution.",
        Sign(
            "InvalidArgumentError",
            r"You must feed a value for placeholder tensor.*multi_step_on_iterator",
            raised_in=_KERAS_3,
            keras=3,
        ),
    ),
    ErrorHint(
        "keras-2-for-fit",
        "Keras 3's fit does not work with MultiWorkerMirroredStrategy: TensorFlow itself fails there. "
        "Use Keras 2, or write your own training loop.",
        Sign(("ValueError", "TypeError"), r"PerReplica", raised_in=_KERAS_3, keras=3),
        needs="keras-2",
    ),
    ErrorHint(
        "keras-2-for-fit-with-servers",
        "Keras 3's fit does not work with ParameterServerStrategy. Use Keras 2, or write your own training "
        "loop with a ClusterCoordinator.",
        Sign(
            "ValueError",
            r"you need to pass this dataset to ClusterCoordinator\.create_per_worker_dataset",
            raised_in=_KERAS_3,
            keras=3,
        ),
        needs="keras-2",
    ),
    ErrorHint(
        "no-gradients",
        "None of the variables has a gradient: the loss does not depend on them, or it was computed outside of the "
        "GradientTape, or with NumPy.",
        Sign("ValueError", r"No gradients provided for any variable"),
    ),
    ErrorHint(
        "one-hot-labels",
        "SparseCategoricalCrossentropy takes the number of each class. These labels have as many dimensions as the "
        "predictions, as one-hot labels do: use CategoricalCrossentropy, or tf.argmax(labels, axis=-1).",
        Sign(
            "ValueError", r"Argument `output` must have rank \(ndim\) `target\.ndim - 1`", raised_in=_KERAS_3, keras=3
        ),
    ),
    ErrorHint(
        "mixed-types",
        "Two tensors have different types, and TensorFlow does not convert them. Convert one: "
        "tf.cast(x, y.dtype). With mixed precision, compute the loss in float32.",
        Sign(
            "InvalidArgumentError",
            r"was expected to be a (half|bfloat16|float|double) tensor but is a (half|bfloat16|float|double) tensor",
        ),
    ),
    ErrorHint(
        "legacy-optimizer",
        "Keras 3 has no legacy optimizers. Remove “legacy.”, or use Keras 2.",
        Sign("ImportError", r"`keras\.optimizers\.legacy` is not supported in Keras 3", keras=3),
        needs="keras-2",
    ),
    ErrorHint(
        "no-longer-experimental",
        "This is no longer experimental in Keras 3. Remove “experimental.” from the name; set_policy is now "
        "set_global_policy.",
        Sign(
            "AttributeError",
            r"module 'keras\.(callbacks|mixed_precision|optimizers)' has no attribute 'experimental'",
            keras=3,
        ),
    ),
    ErrorHint(
        "renamed-in-keras-3",
        "Keras 3 has another name for this: reset_states is now reset_state, and an optimizer's lr is learning_rate. "
        "Use the new name, or Keras 2.",
        Sign(
            "AttributeError",
            r"'(Functional|Sequential)' object has no attribute 'reset_states'",
            keras=3,
        ),
        Sign("AttributeError", r"'(Ada\w+|Ftrl|Lion|Nadam|RMSprop|SGD)' object has no attribute 'lr'", keras=3),
        Sign("ValueError", r"Argument\(s\) not recognized: \{.*'lr':", raised_in=_KERAS_3, keras=3),
        needs="keras-2",
    ),
    ErrorHint(
        "only-in-keras-2",
        "Keras 3 does not have {package}.{name}. Use Keras 2 for this code.",
        Sign(
            "AttributeError",
            r"module '(keras\._tf_keras\.)?(?P<package>keras(\.backend|\.layers|\.utils)?)' has no attribute "
            r"'(?P<name>SidecarEvaluator|dtensor|experimental)'",
            keras=3,
        ),
        Sign(
            "AttributeError",
            r"module '(?P<package>tensorflow_hub)' has no attribute '(?P<name>KerasLayer)' with Keras 3",
            keras=3,
        ),
        needs="keras-2",
    ),
    ErrorHint(
        "layers-of-tensorflow-1",
        "tf.compat.v1.layers exists with Keras 2 only. Use Keras 2, or the layers in tf.keras.layers.",
        Sign("AttributeError", r"^`\w+` is not available with Keras 3\.$", keras=3),
        needs="keras-2",
    ),
    ErrorHint(
        "loss-scaling",
        "In Keras 3, a LossScaleOptimizer has scale_loss in place of get_scaled_loss, and divides the gradients by the "
        "scale itself in apply_gradients. Use Keras 2 for code that does both by hand.",
        Sign("AttributeError", r"'LossScaleOptimizer' object has no attribute 'get_(un)?scaled_", keras=3),
        needs="keras-2",
    ),
    ErrorHint(
        "file-name-to-save",
        "Keras 3 chooses the format by the name of the file: model.save needs “.keras”, and save_weights needs "
        "“.weights.h5”. For a SavedModel, use model.export, and tf.saved_model.load to load it.",
        Sign(
            "ValueError",
            r"Invalid filepath extension for saving|filename must end in `\.weights\.h5`"
            r"|filepath provided must end in `\.(weights\.h5|keras)`|Keras 3 only supports V3 `\.keras` files",
            keras=3,
        ),
    ),
    # Names that are gone.
    ErrorHint(
        "run-has-a-new-name",
        "strategy.experimental_run_v2 is now strategy.run.",
        Sign("AttributeError", r"object has no attribute 'experimental_run_v2'"),
    ),
    ErrorHint(
        "datasets-of-arrays",
        "experimental_make_numpy_dataset is gone. Make a dataset of the arrays with "
        "tf.data.Dataset.from_tensor_slices, batch it, and distribute it.",
        Sign("AttributeError", r"object has no attribute 'experimental_make_numpy_dataset'"),
    ),
    ErrorHint(
        "tensorflow-1",
        "tf.{name} belongs to TensorFlow 1. Write the step as a Python function with @tf.function above it; "
        "tf.compat.v1 has most of the old names, but not those of tf.contrib.",
        Sign(
            "AttributeError",
            r"module 'tensorflow' has no attribute '(?P<name>ConfigProto|GraphDef|InteractiveSession|Session|app|assign"
            r"|contrib|flags|get_default_graph|get_variable|global_variables_initializer|layers|logging|placeholder"
            r"|reset_default_graph|set_random_seed|train_and_evaluate|variable_scope)'",
        ),
    ),
    ErrorHint(
        "estimators-are-gone",
        "Estimators were removed in TensorFlow 2.16. Use a Keras model, or your own training loop, with a strategy.",
        Sign(
            ("AttributeError", "ImportError", "ModuleNotFoundError", "NotImplementedError"),
            r"module '(tensorflow|keras)[\w.]*' has no attribute 'estimator'"
            r"|cannot import name 'estimator' from 'tensorflow"
            r"|No module named 'tensorflow[._]estimator"
            r"|^tf\.keras\.estimator\.model_to_estimator function not available",
        ),
    ),
    ErrorHint(
        "multi-gpu-model",
        "multi_gpu_model was removed in TensorFlow 2.4. Create the model within the scope of a MirroredStrategy.",
        Sign("AttributeError", r"has no attribute 'multi_gpu_model'"),
    ),
)
