"""``tf.print`` in a replica's function: tags the text with the replica; the tags are removed later.

The function is traced once for each replica, in a thread that knows which one it is; the op itself does not know.
"""

from __future__ import annotations

from typing import Any

from tensorflow.python.ops import string_ops

from runners.guest.reporting import lanes
from runners.guest.tf_patches.registry import Subject

subject = Subject(
    __name__,
    when="every process",
    because="the op that prints does not know its replica",
    since="TensorFlow 2.21",
    test="tests/functional/runner/test_clusters.py::test_every_worker_has_its_gpus_and_each_replica_its_lane",
)


@subject.patch(
    "tensorflow.python.ops.gen_logging_ops:print_v2",
    relies_on=("(input, output_stream, end, name)",),
    used_by=("tensorflow.python.ops.logging_ops:print_v2",),
)
def _print(original: Any, input: Any, output_stream: str = "stderr", end: str = "\n", name: str | None = None) -> Any:
    tags = lanes.current_tags()
    if tags is not None and output_stream in ("stdout", "stderr"):
        before, after = tags
        input, end = string_ops.string_join([before, input]), end + after
    return original(input, output_stream=output_stream, end=end, name=name)


subject.needs(
    "tensorflow.python.distribute.mirrored_run:_MirroredReplicaThread.__init__",
    relies_on=(".devices", ".replica_id_in_sync_group"),
)
