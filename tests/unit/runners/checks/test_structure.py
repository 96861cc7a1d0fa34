"""Reading how a submission is written: honest variants are accepted, literals and changed instruments are not."""

from __future__ import annotations

import textwrap

import pytest

from runners.checks import CheckFailed, InProcessWork, Work, names_behind, untouched
from runners.wire import check_messages as messages

PIPELINES = {
    "one chain": """
        def pipeline(numbers):
            return numbers.map(expensive).cache()
    """,
    "a variable": """
        def pipeline(numbers):
            data = numbers.map(expensive)
            data = data.cache()
            return data
    """,
    "a helper function": """
        def kept(data):
            return data.cache()

        def pipeline(numbers):
            return kept(numbers.map(expensive))
    """,
    "another name": """
        from tools import expensive as f
        keep = tf.data.Dataset.cache
        pipeline = lambda numbers: keep(numbers.map(f))
    """,
    "a loop and a list": """
        def pipeline(numbers):
            steps = []
            for make in [lambda data: data.map(expensive), lambda data: data.cache()]:
                steps.append(make)
            return functools.reduce(lambda data, step: step(data), steps, numbers)
    """,
    "a tuple and a with block": """
        def pipeline(numbers):
            with tf.device("cpu") as place, open(numbers.map(expensive)) as data:
                kept, rest = data.cache(), None
            return kept
    """,
    "an item and an attribute": """
        def pipeline(numbers):
            parts = {}
            parts["data"] = numbers.map(expensive)
            result = Box()
            result.data: object = parts
            result.data.kept |= numbers.cache
            return result
    """,
    "a generator": """
        def pipeline(numbers):
            if (data := numbers.map(expensive)):
                yield from data
            yield numbers.cache()
    """,
}


def submission(code: str) -> Work:
    return InProcessWork(textwrap.dedent(code))


@pytest.mark.parametrize("way", PIPELINES)
def test_what_a_result_is_made_of_is_found_however_it_is_written(way: str) -> None:
    assert {"map", "expensive", "cache"} <= names_behind(submission(PIPELINES[way]), "pipeline")


def test_what_a_result_does_not_depend_on_is_not_behind_it() -> None:
    code = """
        import tensorflow as tf

        def pipeline(numbers):
            unused = numbers.map(expensive).cache()
            tf.print(unused)

            def never_called():
                return unused

            return tf.constant(sum(numbers))
    """
    assert names_behind(submission(code), "pipeline") == {"tf", "tensorflow", "constant", "sum"}


@pytest.mark.parametrize(
    "body",
    [
        "cache = 10\n    return numbers.shuffle(cache)",
        "for cache in [10]:\n        return numbers.shuffle(cache)",
        "return (lambda cache: numbers.shuffle(cache))(10)",
    ],
)
def test_a_variable_of_the_submission_is_not_behind_a_result(body: str) -> None:
    assert names_behind(submission(f"def pipeline(numbers):\n    {body}"), "pipeline") == {"shuffle"}


@pytest.mark.parametrize("code", ["", "def pipeline(numbers): pass", "def pipeline(numbers): return []"])
def test_nothing_is_behind_a_result_that_is_not_there(code: str) -> None:
    assert names_behind(submission(code), "pipeline") == frozenset()


@pytest.mark.parametrize(
    "code",
    [
        "print(*descend(1.0, [0.5]))",
        "rates = [0.5]\nfor rate in rates:\n    descend(1.0, [rate])",
        "def take_steps(step, rates):\n    '''What descend calls.'''\n    return [step(rate) for rate in rates]",
        "list(map(descend, [1.0], [[0.5]]))",
        "names = ['descend']",
        "getattr(descend(1.0, []), 'numpy')",
        "class Model:\n    def __init__(self):\n        self.weight = 1.0\nmodel = Model()\nmodel.weight = 2.0",
        "options = {'eval': True, 'vars': 3}",
        "def step(model):\n    vars = model.trainable_variables\n    return [var.shape for var in vars if vars]",
        "def step(descend):\n    counts = descend()\n    return counts",
        "inputs = [1.0, 2.0]\ngraph = step(inputs)",
        "def step():\n    return inputs",
        "graph = tf.function(step).get_concrete_function(1.0)\nprint(graph.graph.get_operations())",
        "types = {op.type for op in step.get_concrete_function().graph.get_operations()}",
        "model = tf.keras.Sequential()\ndef count():\n    return len(model.inputs)",
        "for op in operations():\n    print(op.inputs)",
        "def step(batch):\n    return batch['inputs']",
        "class Layer:\n    def __init__(self):\n        self.inputs = self.graph = 1.0",
        "code = options['trace']\nprofile = tf.linalg.trace(code)",
    ],
)
def test_what_is_given_may_be_used_and_its_name_be_used_in_functions(code: str) -> None:
    untouched(submission(code), "descend", "counts")


@pytest.mark.parametrize(
    "code",
    [
        "def descend(start, rates): return 1.0, 1",
        "descend = lambda start, rates: (1.0, 1)",
        "from cheats import steps as descend",
        "import descend.fast",
        "class descend: pass",
        "for descend in [len]: pass",
        "try: pass\nexcept ValueError as descend: pass",
        "match len:\n    case descend: pass",
        "def f():\n    global descend\n    descend = len",
        "(descend := len)",
        "descend.__code__ = len.__code__",
        "sys.modules['__main__'].descend = len",
        "vars()['descend'] = len",
        "descend.fast = len",
        "import tensorflow as tf\ntf.function = len",
        "strategy.experimental_local_results = len",
        "if counts:\n    with open('x') as descend: pass",
        "counts['expensive'] = 12",
        "counts.update(expensive=12)",
    ],
)
def test_what_is_given_may_not_be_changed(code: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        untouched(submission(code), "descend", "counts")
    assert caught.value.message in (messages.GIVEN, messages.BACK_DOOR)


@pytest.mark.parametrize(
    "code",
    [
        "def add_up(parts):\n    counts = {}\n    counts['a'] = counts.pop('b')\n    return counts",
        "def add_up(counts):\n    counts[0] = 1\n    return counts.copy()",
        "def add_up():\n    for counts in [{}]:\n        counts['a'] = 1",
        "def add_up():\n    if counts := {}:\n        del counts['a']",
        "def add_up():\n    with open('x') as counts:\n        return counts.read()",
        "def add_up():\n    return [counts.copy() for part in [{}] if (counts := part)]",
        "def add_up():\n    counts = {}\n    return [counts.get(key) for key in 'ab'], lambda: counts.clear()",
        "def add_up():\n    counts = {}\n    def one():\n        nonlocal counts\n        counts['a'] = 1\n    one()",
        "class Adder:\n    def add_up(self):\n        counts = {}\n        counts['a'] = 1",
        "add_up = lambda counts: counts.update(a=1)",
    ],
)
def test_a_variable_of_a_function_may_be_changed_whatever_its_name(code: str) -> None:
    untouched(submission(code), "descend", "counts")


@pytest.mark.parametrize(
    "code",
    [
        "def add_up(counts): return counts\ncounts['a'] = 1",
        "def add_up():\n    counts['a'] = 1\ndef other():\n    counts = {}",
        "def add_up():\n    counts = {}\n    def one():\n        global counts\n        counts['a'] = 1",
        "def add_up():\n    counts = {}\n    def one():\n        global counts\n        return lambda: counts.clear()",
        "def add_up():\n    def one():\n        counts = {}\n    counts['a'] = 1",
        "def add_up():\n    kept = [0 for counts in [1]]\n    counts['a'] = 1",
        "def add_up(f=lambda counts: 0):\n    counts['a'] = 1",
        "def add_up(counts=counts.update(a=1)): pass",
        "@counts.update\ndef add_up(counts): pass",
        "def add_up():\n    class Box:\n        counts = {}\n    counts['a'] = 1",
        "def add_up():\n    counts = {}\n    class Box:\n        counts['a'] = 1\n        counts = 2",
        "class Box:\n    def add_up(self, first=(counts := {})):\n        counts['a'] = 1",
        "class Box:\n    counts = {}\n    def add_up(self):\n        counts['a'] = 1",
        "def add_up(counts):\n    (lambda: counts)().a.counts = 1",
    ],
)
def test_a_local_name_does_not_hide_that_what_is_given_is_changed(code: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        untouched(submission(code), "descend", "counts")
    assert (caught.value.message, caught.value.values) == (messages.GIVEN, {"name": "counts"})


@pytest.mark.parametrize(
    "code",
    [
        "globals().update(x=1)",
        "exec('x = 1')",
        "getattr(builtins, 'setattr')(a, b, c)",
        "len.__globals__['des' + 'cend'] = len",
        "from builtins import exec as run",
        "from IPython.core.interactiveshell import InteractiveShell as Shell",
        "import unittest.mock as testing",
        "sys.modules['__main__']",
        "getattr(len, '__globals__')",
        "getattr(len, '__glo' + 'bals__')",
        "from operator import attrgetter",
        "def step(share):\n    return share.op.inputs[0]",
        "def step(share):\n    return share.graph.inputs[0]",
        "def step(share):\n    return share._op.node_def",
        "def step(share):\n    return getattr(share, 'graph')",
        "def step(share, operation):\n    return operation.inputs[0]",
        "def step(share):\n    return share.consumers()[0]",
        "from tensorflow.compat.v1 import get_default_graph",
        "from tensorflow.python.framework.ops import *\nx = get_default_graph()",
        "def step(share):\n    operation = share\n    return operation.inputs[0]",
        "def step(share):\n    return tf.constant(1.0).graph.inputs[0]",
        "box = list()\ndef step(share):\n    global box\n    box = share\n    return box.graph.inputs[0]",
        "box = list()\ndef step(share):\n    global box\n    match share:\n        case box: return box.graph",
        "box = list()\ndef step(box):\n    return box.graph.inputs[0]",
        "box = list()\nstep = lambda box: box.graph.inputs[0]",
        "box = list()\nfound = [box.graph.inputs[0] for box in shares]",
        "box = []\nfound = (share().graph for share in box)",
        "get = tf.Tensor.graph",
        "kind = max([tf.Tensor])\nget = kind.graph.fget",
        "kind = max([tf.Tensor])\ndef step(share):\n    return kind.graph.__get__(share)",
        "def step(share):\n    return dict(inspect.getmembers(share))['graph']",
        "import gc\ndef step(share):\n    return [cell for cell in gc.get_referents(share) if type(cell) is tuple]",
        "def step(share):\n    return inspect.getclosurevars(share).nonlocals",
        "functools.update_wrapper(descend, ours, ('__code__',), ())",
        "from functools import wraps\nwraps(ours, ('__code__',))(descend)",
        "operator.setitem(counts, 'expensive', 12)",
        "try: 1 / 0\nexcept ZeroDivisionError as e: run = e.__traceback__.tb_frame.f_builtins.get('exec')",
        "import pickle\npickle.loads(b'cbuiltins')",
        "import cProfile as watch\nwatch.run('def descend(): pass')",
        "from code import InteractiveInterpreter",
        "traced = tf.function(step).get_concrete_function(1.0)\nbehind = traced.graph.outer_graph",
        "def step(share):\n    match share:\n        case object(graph=found):\n            return found",
    ],
)
def test_what_could_change_it_unseen_is_refused(code: str) -> None:
    with pytest.raises(CheckFailed, match="Solve it another way"):
        untouched(submission(code), "descend")
