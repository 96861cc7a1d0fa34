"""How a submission's graph is counted, and that it also runs on other values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from runners.checks.plain_data import NotPlainData
from runners.guest.judging import graphs
from tests.factories.tensorflow_forks import Forges

X = np.array([1.0, 2.0], "float32")


def examined(function: Any) -> dict[str, Any]:
    return graphs.examine(graphs.export(function, [np.zeros_like(X)]), [X])


def test_an_operation_that_the_result_does_not_depend_on_is_not_counted() -> None:
    def result(x: tf.Tensor) -> tf.Tensor:
        tf.add_n([x, x, x])
        return x * 2.0

    found = examined(result)
    assert found["ops"]["Mul"] == 1
    assert "AddN" not in found["ops"]
    np.testing.assert_array_equal(found["result"], [2.0, 4.0])


def test_the_operations_of_a_function_count_for_each_call_of_it() -> None:
    doubled = tf.function(lambda x: tf.add_n([x, x]))
    assert examined(lambda x: doubled(doubled(doubled(x))))["ops"]["AddN"] == 3
    assert examined(lambda x: tf.while_loop(lambda y: y[0] < 9.0, lambda y: [doubled(y)], [x]))["ops"]["AddN"] == 1


def test_an_update_of_a_variable_is_counted_though_nobody_returns_it() -> None:
    variable = tf.Variable([0.0, 0.0])

    def step(x: tf.Tensor) -> tf.Tensor:
        variable.assign_add(x)
        return tf.reduce_sum(x)

    assert examined(step)["ops"]["AssignAddVariableOp"] == 1


@pytest.mark.parametrize("call", ["StatefulPartitionedCall", "PartitionedCall"])
def test_an_update_is_counted_in_a_function_from_which_its_output_was_cut_off(call: str) -> None:
    variable = tf.Variable([0.0, 0.0])

    def inner(x: tf.Tensor) -> tf.Tensor:
        variable.assign(tf.add_n([x, x]))
        return tf.identity(x)

    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([tf.function(inner)(x)]):
            return variable.read_value()

    exported = graphs.export(step, [np.zeros_like(X)])
    definition = tf.compat.v1.GraphDef.FromString(exported["graph"])
    [function] = definition.library.function
    function.signature.name = "forged"  # this process knows the honest one by its name
    function.attr["_noinline"].b = True
    function.control_ret.clear()
    del function.signature.control_output[:]
    for node in function.node_def:
        kept = [name for name in node.input if not name.startswith("^")]
        if node.op in ("Identity", "NoOp"):
            node.input[:] = kept
    for node in definition.node:
        if node.op == "StatefulPartitionedCall":
            node.op, node.attr["f"].func.name = call, "forged"
            for name in set(node.attr) - {"Tin", "Tout", "f"}:
                del node.attr[name]

    found = graphs.examine(exported | {"graph": definition.SerializeToString()}, [X])
    assert found["ops"]["AddN"] == 1
    assert found["ops"]["AssignVariableOp"] == 1


def test_what_a_function_computes_and_does_not_use_is_not_counted() -> None:
    def inner(x: tf.Tensor) -> tf.Tensor:
        tf.add_n([x, x])
        return x * 2.0

    assert "AddN" not in examined(lambda x: tf.function(inner)(x))["ops"]


def test_a_variable_of_another_machine_is_put_on_the_like_device_here() -> None:
    variable = tf.Variable(3.0)
    exported = graphs.export(lambda x: x * variable, [X])
    [(name, (value, _device))] = exported["captures"].items()
    exported["captures"] = {name: [value, "/job:ps/replica:0/task:0/device:CPU:0"]}
    np.testing.assert_array_equal(graphs.examine(exported, [X])["result"], [3.0, 6.0])


@pytest.mark.parametrize("calls", ["f", "g"], ids=["itself", "a function without end"])
def test_a_graph_that_is_none_is_refused(calls: str) -> None:
    exported = graphs.export(lambda x: x * 2.0, [X])
    definition = tf.compat.v1.GraphDef.FromString(exported["graph"])
    node = definition.node.add(name="again", op="PartitionedCall")
    node.attr["f"].func.name = "f"
    for name, called in (("f", calls), ("g", "f")):
        function = definition.library.function.add()
        function.signature.name = name
        inner = function.node_def.add(name="inner", op="PartitionedCall")
        inner.attr["f"].func.name = called
    with pytest.raises(NotPlainData, match="cannot be run"):
        graphs.examine(exported | {"graph": definition.SerializeToString(), "outputs": ["again:0"]}, [X])


ALONE = """
import numpy as np
import tensorflow as tf
from runners.guest.judging import graphs

ROWS = np.array([[1.0, 2.0], [10.0, 20.0]], "float32")

def reduced_rows(strategy, reduce):
    # of rows, of which replica i has row i and gives it to reduce: what replica 0 gets
    def rows_of_all(rows):
        def on_replica():
            context = tf.distribute.get_replica_context()
            return reduce(context, rows[context.replica_id_in_sync_group])
        return strategy.experimental_local_results(strategy.run(on_replica))[0]
    return rows_of_all

def examined(function):
    found = graphs.examine(graphs.export(function, [np.zeros_like(ROWS)]), [ROWS], alone=True)
    return found["result"].tolist(), found["alone"].tolist()

collective = tf.distribute.MirroredStrategy()
to_one_device = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.ReductionToOneDevice())
exchanges = {
    "sum": lambda context, row: context.all_reduce("SUM", row),
    "mean": lambda context, row: 2.0 * context.all_reduce("MEAN", row),
    "gathered": lambda context, row: tf.reduce_sum(context.all_gather(row[None], axis=0), axis=0),
}
for strategy in (collective, to_one_device):
    for name, exchange in exchanges.items():
        if (strategy, name) != (to_one_device, "gathered"):
            print(name, *examined(reduced_rows(strategy, exchange)))
    nothing = reduced_rows(strategy, lambda context, row: context.all_reduce("SUM", 0.0 * row))
    print("idle", *examined(lambda rows: tf.reduce_sum(rows, axis=0) + nothing(rows)))
in_a_function = tf.function(reduced_rows(collective, exchanges["sum"]))
print("in a function", *examined(lambda rows: in_a_function(rows)))
"""


def test_a_replica_alone_has_what_it_brings_unless_the_exchange_is_idle(forges: Forges) -> None:
    program = forges(3).run(ALONE, "gpu:2")
    both, own = "[11.0, 22.0]", "[1.0, 2.0]"
    assert program.status == 0, program.output
    assert [line for line in program.output.splitlines() if "[11.0" in line] == [
        f"sum {both} {own}",
        f"mean {both} {own}",
        f"gathered {both} {own}",
        f"idle {both} {both}",
        f"sum {both} {own}",
        f"mean {both} {own}",
        f"idle {both} {both}",
        f"in a function {both} {own}",
    ]
