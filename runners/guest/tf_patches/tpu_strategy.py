"""``TPUStrategy`` on logical CPUs: TensorFlow's class and name with MirroredStrategy's implementation.

A TPU traces a step once and replicates the program; here each replica is traced, so ``print`` in a step prints once for
each. Synchronization and results are the same.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api as autograph
from tensorflow.python.distribute import cross_device_ops, mirrored_run, mirrored_strategy, tpu_strategy, values
from tensorflow.python.distribute.cluster_resolver.tpu.tpu_cluster_resolver import TPUClusterResolver
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import autograph_util, polymorphic_function
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_util
from tensorflow.python.tpu import tpu_hardware_feature

from runners.guest.accelerators import tpu_trace
from runners.guest.tf_patches.registry import Subject

HOST = "/job:localhost/replica:0/task:0/device:CPU:0"
_TESTS = "tests/functional/runner/test_tpu.py::"
_STRATEGIES = "tensorflow.python.distribute.tpu_strategy:"
_MIRRORED = "tensorflow.python.distribute.mirrored_strategy:MirroredExtended."
_SHARDING = "tensorflow.python.compiler.xla.experimental.xla_sharding:"

subject = Subject(
    __name__,
    when="tpu",
    because="TPUStrategy runs ops that only a TPU has: MirroredStrategy's implementation replaces them",
    since="TensorFlow 2.21",
    test=f"{_TESTS}test_a_training_loop_of_ones_own_learns",
    essential=True,
)


class TPUMirroredVariable(values.MirroredVariable):  # type: ignore[misc]
    """A variable with a copy on every core."""


class TPUSyncOnReadVariable(values.SyncOnReadVariable):  # type: ignore[misc]
    """A variable with an independent copy on every core; the copies are combined when it is read."""


_VARIABLES = {values.MirroredVariable: TPUMirroredVariable, values.SyncOnReadVariable: TPUSyncOnReadVariable}


class TPUExtended(mirrored_strategy.MirroredExtended):  # type: ignore[misc]
    """The part of the strategy that does the work, with the names that programs look up on a TPU's."""

    def __init__(self, strategy: Any, resolver: Any = None, assignment: Any = None, spmd: bool = False) -> None:
        """Take the cores of an initialized TPU.

        Args:
            strategy: the TPUStrategy that this belongs to.
            resolver: its cluster resolver; None for the local one.
            assignment: which cores the replicas run on; None for all.
            spmd: whether tensors may be split over the cores of a replica.

        Raises:
            RuntimeError: the TPU has not been initialized.
        """
        resolver = resolver or TPUClusterResolver("")
        metadata = resolver.get_tpu_system_metadata()
        if not metadata.num_cores:
            raise RuntimeError(
                f"Cannot find any TPU cores in the system (master address {resolver.master()!r}): "
                "the TPU has not been initialized.\nLockstep: call tf.config.experimental_connect_to_cluster(resolver) "
                "and tf.tpu.experimental.initialize_tpu_system(resolver) before you create the strategy."
            )
        cores = np.array([[core] for core in range(metadata.num_cores)])
        if assignment is not None:
            within = range(assignment.num_cores_per_replica)
            cores = np.array([[assignment.tpu_ordinal(r, c) for c in within] for r in range(assignment.num_replicas)])
        # Collective ops need a key that a conditional inside a loop cannot see, and Keras's steps_per_execution has
        # one.
        reduction = cross_device_ops.ReductionToOneDevice()
        super().__init__(strategy, [f"/device:CPU:{core}" for core in cores[:, 0]], reduction)
        self._tpu_cluster_resolver, self._tpu_metadata, self._device_assignment = resolver, metadata, assignment
        self._tpu_devices = np.vectorize(lambda core: f"{HOST[:-5]}TPU:{core}", otypes=[object])(cores)
        self._host_device = HOST
        self._use_spmd_for_xla_partitioning = spmd
        self._require_static_shapes = True
        self.steps_per_run = 1
        self._compiled: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def tpu_run(self, function: Any, args: Any, kwargs: Any, options: Any = None) -> Any:
        """Run ``function`` on every replica; outside a tf.function, wrap it in one."""
        del options
        if not context.executing_eagerly():
            return self._replicate(function, args, kwargs or {})
        compiled = self._compiled.get(function)
        if compiled is None:
            # Only a weak reference: the cache for a function must not keep it alive.
            replicate = functools.partial(_replicate, weakref.ref(self), weakref.ref(function))
            compiled = self._compiled[function] = tf.function(replicate, autograph=False)
        return compiled(args, kwargs or {})

    def _replicate(self, function: Any, args: Any, kwargs: Any) -> Any:
        if control_flow_util.GraphOrParentsInXlaContext(ops.get_default_graph()):
            error = NotImplementedError(
                "strategy.run inside a function with jit_compile=True does not work with TPUStrategy.\nLockstep: "
                "remove jit_compile, in Keras too: a TPU compiles everything passed to strategy.run."
            )
            error.ag_pass_through = True  # type: ignore[attr-defined]  # AutoGraph would rewrite it
            raise error
        strategy = self._container_strategy()
        traced = inlined(function)
        if traced is function:
            traced = autograph.tf_convert(function, ag_ctx.control_status_ctx())
        trace = functools.partial(mirrored_run._call_for_each_replica, strategy, traced, args, kwargs)
        with strategy.scope():
            device = str(self._devices[0]).rpartition("/")[2]
            return tpu_trace.trace_and_check(function, (args, kwargs), device, trace)

    def _create_variable(self, next_creator: Any, **kwargs: Any) -> Any:
        variable = super()._create_variable(next_creator, **kwargs)
        if type(variable) in _VARIABLES:
            variable.__class__ = _VARIABLES[type(variable)]
        return variable

    def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> Any:
        if options is None or options.experimental_fetch_to_device:
            tpu_strategy.TPUExtended._check_spec(self, dataset.element_spec)
        return super()._experimental_distribute_dataset(dataset, options)

    def _distribute_datasets_from_function(self, dataset_fn: Any, options: Any) -> Any:
        distributed = super()._distribute_datasets_from_function(dataset_fn, options)
        if options is None or options.experimental_fetch_to_device:
            tpu_strategy.TPUExtended._check_spec(self, distributed.element_spec)
        return distributed

    @property
    def num_hosts(self) -> int:
        """Always one machine, whatever the number of cores."""
        return 1

    @property
    def num_replicas_per_host(self) -> int:
        return len(self._devices)

    @property
    def tpu_hardware_feature(self) -> Any:
        return tpu_hardware_feature.HardwareFeature(self._tpu_cluster_resolver.tpu_hardware_feature)


def _replicate(extended: weakref.ref[TPUExtended], function: weakref.ref[Any], args: Any, kwargs: Any) -> Any:
    strategy, called = extended(), function()
    assert strategy is not None
    assert called is not None
    return strategy._replicate(called, args, kwargs)


def inlined(function: Any) -> Any:
    """Unwrap a tf.function, so that it is traced in place.

    A TPU compiles the whole step anyway, and code that synchronizes the replicas (an optimizer's update) cannot be
    traced inside another function here.
    """
    if not isinstance(function, polymorphic_function.Function) or function.input_signature is not None:
        return function
    python = function.python_function
    return autograph_util.py_func_from_autograph(python) if function._autograph else python


subject.needs(f"{_MIRRORED}__init__", relies_on=("(self, container_strategy, devices, cross_device_ops)", "._devices"))
subject.needs(f"{_MIRRORED}_create_variable", relies_on=("(self, next_creator, **kwargs)",))
subject.needs(f"{_MIRRORED}_experimental_distribute_dataset", relies_on=("(self, dataset, options)",))
subject.needs(f"{_MIRRORED}_distribute_datasets_from_function", relies_on=("(self, dataset_fn, options)",))
subject.needs(f"{_STRATEGIES}TPUExtended._check_spec", relies_on=("(self, element_spec)",))
subject.needs(
    "tensorflow.python.distribute.mirrored_run:_call_for_each_replica",
    relies_on=("(distribution, fn, args, kwargs)",),
)


@subject.add(f"{_STRATEGIES}TPUStrategyV2._collective_key_base")
@subject.add(f"{_STRATEGIES}TPUStrategy._collective_key_base")
def _key_base() -> int:
    return 0


@subject.patch(
    f"{_STRATEGIES}TPUStrategyV2.__init__",
    relies_on=("(self, tpu_cluster_resolver, experimental_device_assignment, experimental_spmd_xla_partitioning)",),
)
def _make(
    _: Any,
    self: Any,
    tpu_cluster_resolver: Any = None,
    experimental_device_assignment: Any = None,
    experimental_spmd_xla_partitioning: bool = False,
) -> None:
    extended = TPUExtended(
        self, tpu_cluster_resolver, experimental_device_assignment, experimental_spmd_xla_partitioning
    )
    tf.distribute.Strategy.__init__(self, extended)


@subject.patch(
    f"{_STRATEGIES}TPUStrategy.__init__",
    relies_on=("(self, tpu_cluster_resolver, device_assignment)",),
    test=f"{_TESTS}test_any_name_finds_the_tpu_and_old_names_of_classes_work",
)
def _make_experimental(_: Any, self: Any, tpu_cluster_resolver: Any = None, device_assignment: Any = None) -> None:
    _make(None, self, tpu_cluster_resolver, device_assignment)


@subject.patch(
    f"{_STRATEGIES}TPUStrategyV2.run", relies_on=("(self, fn, args, kwargs, options)", ".validate_run_function")
)
@subject.patch(f"{_STRATEGIES}TPUStrategy.run", relies_on=("(self, fn, args, kwargs, options)",))
def _run(_: Any, self: Any, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
    tpu_strategy.validate_run_function(fn)
    return self.extended.tpu_run(fn, args, kwargs, options)


@subject.patch(
    "tensorflow.python.eager.polymorphic_function.polymorphic_function:Function.__call__",
    relies_on=(".python_function", ".input_signature", "._autograph"),
    because="a TPU compiles functions within a step as a part of the step",
    test=f"{_TESTS}test_functions_within_a_step_are_compiled_with_it",
)
def _call_or_inline(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    inline = not context.executing_eagerly() and _in_a_replica() and (plain := inlined(self)) is not self
    return plain(*args, **kwargs) if inline else original(self, *args, **kwargs)


def _in_a_replica() -> bool:
    here = tf.distribute.get_strategy().extended
    return isinstance(here, TPUExtended) and not tf.distribute.in_cross_replica_context()


@subject.patch(
    "tensorflow.python.tpu.tpu_embedding_v2:TPUEmbedding.__init__",
    because="it needs hardware that is not simulated",
    test=f"{_TESTS}test_the_embedding_hardware_is_refused_with_the_layer_to_use_instead",
)
def _refuse_embedding(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    if isinstance(tf.distribute.get_strategy().extended, TPUExtended):
        raise NotImplementedError(
            "TPUEmbedding needs the embedding hardware of a TPU, which Lockstep does not simulate: "
            "use tf.keras.layers.Embedding."
        )
    original(self, *args, **kwargs)


for _annotate, _user in {
    "assign_device": "experimental_assign_to_logical_device",
    "replicate": "experimental_replicate_to_logical_devices",
    "tile": "experimental_split_to_logical_devices",
}.items():

    @subject.patch(
        f"{_SHARDING}{_annotate}",
        relies_on=("(tensor, ...)",),
        used_by=(f"{_STRATEGIES}TPUStrategyV2.{_user}",),
        because="how a tensor is split over the cores of a replica changes no result, so it is not simulated",
        test=f"{_TESTS}test_splitting_a_tensor_over_the_cores_of_a_replica_changes_no_result",
    )
    def _leave_on_the_first_core(_: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return tensor
