"""What the usual mistakes are and how to mend them, in the language of a page. A page loads them with the first error.

The sentences are those of ``runners.wire.error_hints``; a test compares them.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from app.i18n import N_, gettext
from app.web.access import Access
from app.web.languages import LANGUAGE_PREFIX

router = APIRouter(tags=[Access.public])

_CACHED = {"cache-control": "public, max-age=300"}

ERROR_HINTS = {
    "strategy-comes-first": N_(
        "A MultiWorkerMirroredStrategy must be created before TensorFlow runs its first operation. Restart "
        "the session, and first run the cell that creates it."
    ),
    "outside-the-scope": N_(
        "The model, its optimizer and its metrics do not belong to the same strategy. Create all of them, and "
        "call compile, within strategy.scope()."
    ),
    "two-strategies": N_(
        "Two strategies are in use at once: what one of them created is used within the scope of the other. "
        "Use a single strategy, or restart the session and create everything again."
    ),
    "in-a-replica": N_(
        "This can be called only outside of the replicas, but it was called in a function that strategy.run "
        "runs on each of them. Call scope, run and reduce around that function, not in it."
    ),
    "outside-the-replicas": N_(
        "Outside of the replicas there is no replica context: tf.distribute.get_replica_context() returned "
        "None. Call it in the function that you pass to strategy.run."
    ),
    "update-in-a-condition": N_(
        "A Keras 3 optimizer with gradient_accumulation_steps or ema_overwrite_frequency does not work on "
        "several replicas: it decides inside a conditional whether this step updates the variables, and "
        "TensorFlow does not let replicas synchronize there. Remove the argument, and accumulate the "
        "gradients in your own training loop."
    ),
    "reduction-in-a-condition": N_(
        "The replicas would wait for each other inside a conditional, a loop or a tf.function of its own, "
        "which TensorFlow does not allow. Move the reduction, or the optimizer's update, out of it."
    ),
    "value-per-replica": N_(
        "strategy.run returned one value for each replica. Combine them with strategy.reduce('SUM', value, "
        "axis=None), or list them with strategy.experimental_local_results(value)."
    ),
    "arguments-of-run": N_(
        "strategy.run takes the arguments of the function as a tuple: args=(batch,), with the comma, if there is one."
    ),
    "reduce-needs-an-axis": N_(
        "strategy.reduce needs an axis. axis=None adds the replicas' values up as they are; axis=0 also adds "
        "up the first dimension of each of them, which is the batch."
    ),
    "sum-or-mean": N_("Replicas' values can be reduced with 'SUM' or 'MEAN' only."),
    "no-aggregation": N_(
        "TensorFlow does not know how to make one value of the replicas' copies of this variable. Create it "
        "with aggregation=tf.VariableAggregation.SUM, MEAN or ONLY_FIRST_REPLICA."
    ),
    "loss-reduction": N_(
        "In your own training loop on several replicas, Keras 2 does not know how to average the loss. Create "
        "it with reduction=tf.keras.losses.Reduction.NONE, add up the examples, and divide by the global "
        "batch size."
    ),
    "shapes-differ": N_(
        "The workers passed tensors of different shapes to the same all-reduce. Give all of them batches of "
        "the same size, for example with batch(…, drop_remainder=True). Restart the session before you run it "
        "again."
    ),
    "dataset-already-distributed": N_(
        "A distributed dataset can only be iterated over. Call take, map, batch or len on the original "
        "dataset, before strategy.experimental_distribute_dataset."
    ),
    "not-a-dataset": N_(
        "Only a tf.data.Dataset can be distributed. Make one of the arrays: "
        "tf.data.Dataset.from_tensor_slices((x, y)).batch(64)."
    ),
    "unequal-shards": N_(
        "This batch cannot be divided equally among the replicas: one of them got fewer examples, or none. Make the "
        "number of examples a multiple of the global batch size, or pass a dataset with batch(…, drop_remainder=True)."
    ),
    "batch-before-distributing": N_(
        "The strategy shares out batches, and this dataset has none. Call batch(…) with the global batch size "
        "before you distribute it."
    ),
    "function-of-a-dataset": N_(
        "distribute_datasets_from_function takes a function, not a dataset: it is called with an InputContext "
        "on each worker, and returns that worker's dataset."
    ),
    "nothing-to-shard-by-file": N_(
        "With AutoShardPolicy.FILE, each worker reads other files, and this dataset reads none. Choose "
        "AutoShardPolicy.DATA, or read the data from files."
    ),
    "devices-come-first": N_(
        "Devices and threads can be configured only before TensorFlow runs its first operation. Restart the "
        "session, and first run the cell that configures them."
    ),
    "no-tpu": N_("This machine has no TPU. Choose one with TPU cores."),
    "tpu-needs-a-function": N_(
        "A TPU runs compiled functions only. Call strategy.run within a function that has @tf.function above it."
    ),
    "tf-config": N_(
        "TF_CONFIG does not describe this task. It needs the addresses of the whole cluster, and a task with "
        "a type and an index among them. On a machine with several workers, Lockstep has set it before the "
        "cell runs."
    ),
    "no-cluster": N_(
        "A ParameterServerStrategy needs a cluster, and TF_CONFIG does not name one. Choose a machine with "
        "parameter servers."
    ),
    "schedule-a-function": N_(
        "A coordinator can only schedule a function that has @tf.function above it, because the worker "
        "receives it as a graph."
    ),
    "not-fetched": N_("A worker returns its result later. Call fetch() on it, which waits for the value."),
    "communication-options": N_(
        "The argument has another name now. Pass "
        "communication_options=tf.distribute.experimental.CommunicationOptions(implementation=…)."
    ),
    "no-network": N_("There is no network in the sandbox. Load data with keras.datasets, or create it in the cell."),
    "package-missing": N_(
        "{package} is not installed on this site, and there is no network to install it from. Only the people "
        "who run the site can add it."
    ),
    "variable-in-a-function": N_(
        "A tf.function may create variables in its first call only. Create the variable, layer or optimizer "
        "outside of it, within strategy.scope()."
    ),
    "tensor-as-a-condition": N_(
        "While a function becomes a graph, its tensors have no values that Python's if and while could look "
        "at. Use @tf.function without autograph=False, or tf.cond and tf.where."
    ),
    "numpy-in-a-function": N_(
        "In a tf.function, tensors have no values yet, so NumPy cannot read them. Use TensorFlow's operations "
        "there, and call numpy() on what the function returns."
    ),
    "tensor-left-its-function": N_(
        "A tensor of a tf.function was kept in a list or a variable of Python and used outside, where it does "
        "not exist. Return it from the function instead."
    ),
    "steps-per-execution": N_(
        "Keras 3's fit with steps_per_execution fails when replicas add up their gradients with collective "
        "ops, which is MirroredStrategy's default: TensorFlow itself fails there. Pass "
        "cross_device_ops=tf.distribute.ReductionToOneDevice() to the strategy, or remove "
        "steps_per_execution."
    ),
    "keras-2-for-fit": N_(
        "Keras 3's fit does not work with MultiWorkerMirroredStrategy: TensorFlow itself fails there. Use "
        "Keras 2, or write your own training loop."
    ),
    "keras-2-for-fit-with-servers": N_(
        "Keras 3's fit does not work with ParameterServerStrategy. Use Keras 2, or write your own training "
        "loop with a ClusterCoordinator."
    ),
    "no-gradients": N_(
        "None of the variables has a gradient: the loss does not depend on them, or it was computed outside "
        "of the GradientTape, or with NumPy."
    ),
    "one-hot-labels": N_(
        "SparseCategoricalCrossentropy takes the number of each class. These labels have as many dimensions "
        "as the predictions, as one-hot labels do: use CategoricalCrossentropy, or tf.argmax(labels, "
        "axis=-1)."
    ),
    "mixed-types": N_(
        "Two tensors have different types, and TensorFlow does not convert them. Convert one: tf.cast(x, "
        "y.dtype). With mixed precision, compute the loss in float32."
    ),
    "legacy-optimizer": N_("Keras 3 has no legacy optimizers. Remove “legacy.”, or use Keras 2."),
    "no-longer-experimental": N_(
        "This is no longer experimental in Keras 3. Remove “experimental.” from the name; set_policy is now "
        "set_global_policy."
    ),
    "renamed-in-keras-3": N_(
        "Keras 3 has another name for this: reset_states is now reset_state, and an optimizer's lr is "
        "learning_rate. Use the new name, or Keras 2."
    ),
    "only-in-keras-2": N_("Keras 3 does not have {package}.{name}. Use Keras 2 for this code."),
    "layers-of-tensorflow-1": N_(
        "tf.compat.v1.layers exists with Keras 2 only. Use Keras 2, or the layers in tf.keras.layers."
    ),
    "loss-scaling": N_(
        "In Keras 3, a LossScaleOptimizer has scale_loss in place of get_scaled_loss, and divides the "
        "gradients by the scale itself in apply_gradients. Use Keras 2 for code that does both by hand."
    ),
    "file-name-to-save": N_(
        "Keras 3 chooses the format by the name of the file: model.save needs “.keras”, and save_weights "
        "needs “.weights.h5”. For a SavedModel, use model.export, and tf.saved_model.load to load it."
    ),
    "run-has-a-new-name": N_("strategy.experimental_run_v2 is now strategy.run."),
    "datasets-of-arrays": N_(
        "experimental_make_numpy_dataset is gone. Make a dataset of the arrays with "
        "tf.data.Dataset.from_tensor_slices, batch it, and distribute it."
    ),
    "tensorflow-1": N_(
        "tf.{name} belongs to TensorFlow 1. Write the step as a Python function with @tf.function above it; "
        "tf.compat.v1 has most of the old names, but not those of tf.contrib."
    ),
    "estimators-are-gone": N_(
        "Estimators were removed in TensorFlow 2.16. Use a Keras model, or your own training loop, with a strategy."
    ),
    "multi-gpu-model": N_(
        "multi_gpu_model was removed in TensorFlow 2.4. Create the model within the scope of a MirroredStrategy."
    ),
}
"""By the code of the notice."""


@router.get(f"{LANGUAGE_PREFIX}/error-hints", name="list_error_hints")
async def list_error_hints(lang: str) -> Response:
    return JSONResponse({code: gettext(sentence) for code, sentence in ERROR_HINTS.items()}, headers=_CACHED)
