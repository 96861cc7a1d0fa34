"""One small exercise of each kind, written as the guide for authors recommends, and attempts to pass it unsolved.

Functions on hidden inputs have more of them in ``test_judging_attacks``, clusters in ``tests/long/hostile``. The main
tier makes the first attempt at each kind, and ``tests/long/runner`` the others.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace

import pytest

from runners.wire import check_messages as messages
from runners.wire.client import RunnerClient
from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import SessionClient, new_name
from tests.functional.runner.judged import Exercise


@dataclass(frozen=True)
class Kind:
    """An exercise, and cheats: their code, and what the learner is told of the check that they fail."""

    exercise: Exercise
    cheats: dict[str, tuple[str, str]]


VALUE = Kind(
    Exercise(
        needs=("import numpy as np\nreadings = np.random.normal(20, 5, size=(6, 3)).astype('float32')",),
        solution="means = readings.mean(axis=0)",
        checks="""
            @check("task", "The mean of each sensor")
            def means(work):
                readings = work.reference_value("readings")
                close(work.value("means"), readings.mean(axis=0), dtype=True)
        """,
    ),
    {
        "numbers of an earlier try": ("means = np.array([20.1, 19.4, 20.3], 'float32')", messages.DIFFERENT),
        "data of its own": ("readings[:] = 0\nmeans = np.zeros(3, 'float32')", messages.DIFFERENT),
        "one number for all": ("means = readings.mean()", messages.WRONG_SHAPE),
        "an array that broadcasts": ("means = readings.mean(axis=0, keepdims=True)", messages.WRONG_SHAPE),
        "another dtype": ("means = readings.mean(axis=0, dtype='float64')", messages.WRONG_DTYPE),
        "another value each time": (
            """
            class Means:
                def numpy(self): return np.random.normal(20, 5, 3).astype("float32")
            means = Means()
            """,
            messages.DIFFERENT,
        ),
    },
)
TOLERANCE = Kind(
    Exercise(
        needs=("import numpy as np",),
        solution="def norm(x): return np.sqrt(np.mean(x ** 2))",
        checks="""
            @check("task", "The norm")
            def norm(work):
                for _ in range(3):  # one of 1,250 results is within the tolerance around the usual one
                    x = work.rng.normal(size=50)
                    close(work.call("norm", x), work.reference("norm", x))
        """,
    ),
    {
        "what is usual": ("def norm(x): return 1.0", messages.DIFFERENT),
        "almost": ("def norm(x): return np.sqrt(np.mean(x ** 2)) * 1.0005", messages.DIFFERENT),
        "everything between": ("def norm(x): return np.linspace(0, 2, 100_000)", messages.WRONG_SHAPE),
        "more than any tolerance": ("def norm(x): return np.inf", messages.NOT_A_NUMBER),
        "no number": ("def norm(x): return np.nan", messages.NOT_A_NUMBER),
    },
)
OUTPUT = Kind(
    Exercise(
        needs=("import random\nscores = [random.randrange(1000) for _ in range(3)]",),
        solution="for n, score in enumerate(scores): print(f'{n}: {score}')",
        checks="""
            @check("task", "A line for each score")
            def lines(work):
                equal(work.output, "".join(f"{n}: {s}\\n" for n, s in enumerate(work.reference_value("scores"))))
        """,
    ),
    {
        "lines of an earlier try": ("print('0: 517\\n1: 32\\n2: 860')", messages.DIFFERENT),
        "all that may be": (
            "for n in range(3):\n    for score in range(1000): print(f'{n}: {score}')",
            messages.DIFFERENT,
        ),
        "text that hides the rest": (
            "print(*range(1000), '\\r\\x1b[2J', *(f'{n}: {s}\\n' for n, s in enumerate(scores)), sep='', end='')",
            messages.DIFFERENT,
        ),
        "the other stream": (
            "import sys\nfor n, s in enumerate(scores): print(f'{n}: {s}', file=sys.stderr)",
            messages.DIFFERENT,
        ),
        "scores of its own": ("scores = [1, 2, 3]\nprint('0: 1\\n1: 2\\n2: 3')", messages.DIFFERENT),
    },
)
STRUCTURE = Kind(
    Exercise(
        needs=("import tensorflow as tf",),
        solution="@tf.function\ndef area(x):\n    return x * x",
        checks="""
            import ast
            @check("task", "A graph of the area")
            def compiled(work):
                definitions = [node for node in work.tree.body if getattr(node, "name", "") == "area"]
                if not definitions or "tf.function" not in map(ast.unparse, definitions[-1].decorator_list):
                    fail("There is no tf.function.")
                x = work.rng.normal(size=3)
                close(work.call("area", x), x * x)
        """,
    ),
    {
        "only a comment": ("# @tf.function\ndef area(x): return x * x", "There is no tf.function."),
        "only a text": ("'''@tf.function\ndef area(x): ...'''\ndef area(x): return x * x", "There is no tf.function."),
        "dead code": (
            "if False:\n    @tf.function\n    def area(x): ...\ndef area(x): return x * x",
            "There is no tf.function.",
        ),
        "replaced afterwards": (
            "@tf.function\ndef area(x): ...\ndef area(x): return x * x",
            "There is no tf.function.",
        ),
        "the form without the work": ("@tf.function\ndef area(x): return x", messages.DIFFERENT),
        "code as text": (
            "exec('@tf.function\\ndef area(x): return x * x')",
            "There is no tf.function.",
        ),
    },
)
TRAINING = Kind(
    Exercise(
        needs=("import numpy as np",),
        solution="""
            def train(x, y):
                weights = np.zeros(3)
                for _ in range(30): weights -= 0.2 * x.T @ (x @ weights - y) / len(y)
                return weights
        """,
        checks="""
            @check("task", "The loss halves")
            def halves(work):
                x = work.rng.normal(size=(40, 3))
                y = x @ work.rng.uniform(1, 2, size=3)
                weights = work.call("train", x, y)
                if not isinstance(weights, np.ndarray) or weights.shape != (3,) or weights.dtype.kind != "f":
                    fail("Return the three weights.")
                loss = np.mean((x @ weights - y) ** 2)
                if not loss < np.mean(y ** 2) / 2:  # so that NaN fails, too
                    fail("The loss does not halve.")
        """,
    ),
    {
        "no training": ("def train(x, y): return np.zeros(3)", "The loss does not halve."),
        "a loss that it reports": ("def train(x, y): return 0.0", "Return the three weights."),
        "a loss beside the weights": ("def train(x, y): return {'loss': 0.0}", "Return the three weights."),
        "weights of another data set": ("def train(x, y): return np.array([9.1, -7.2, 5.3])", "The loss does not"),
        "not a number": ("def train(x, y): return np.full(3, np.nan)", "The loss does not halve."),
        "infinity": ("def train(x, y): return np.full(3, np.inf)", "The loss does not halve."),
        "no weights": ("def train(x, y): return np.zeros((3, 0))", "Return the three weights."),
        "complex weights": ("def train(x, y): return np.zeros(3, complex)", "Return the three weights."),
        "data without a loss": ("def train(x, y):\n    x[:] = y[:] = 0\n    return x[0]", "The loss does not halve."),
    },
)
REPLICAS = Kind(
    Exercise(
        needs=("import numpy as np",),
        solution="""
            def step(weight, shares):
                count = sum(len(share) for share in shares)
                return weight - sum(np.sum(2 * share * (weight * share - 1)) / count for share in shares)
        """,
        checks="""
            @check("task", "One step equals one large batch")
            def equivalent(work):
                weight, x = float(work.rng.uniform(0.5, 1.5)), work.rng.normal(1.5, 1, size=10)
                shares = [x[:4], x[4:8], x[8:]]
                slopes = [2 * share * (weight * share - 1) for share in shares]
                mean, own = np.concatenate(slopes).mean(), [slope.mean() for slope in slopes]
                mistakes = {
                    "summed": sum(slope.sum() for slope in slopes),
                    "divided by the replica's batch": sum(own),
                    "each share counts the same": sum(own) / 3,
                    "applied three times": 3 * mean,
                    "the odd batch is left out": sum(slope.sum() for slope in slopes[:2]) / 8,
                }
                close(
                    work.call("step", weight, shares),
                    work.reference("step", weight, [x]),
                    mistakes={text: weight - slope for text, slope in mistakes.items()},
                )
        """,
    ),
    {
        "summed": (
            "def step(w, shares): return w - sum(np.sum(2 * s * (w * s - 1)) for s in shares)",
            "summed",
        ),
        "own batches": (
            "def step(w, shares): return w - sum(np.mean(2 * s * (w * s - 1)) for s in shares)",
            "divided by the replica's batch",
        ),
        "means of means": (
            "def step(w, shares): return w - np.mean([np.mean(2 * s * (w * s - 1)) for s in shares])",
            "each share counts the same",
        ),
        "three times": (
            """
            def step(w, shares):
                x = np.concatenate(shares)
                return w - 3 * np.mean(2 * x * (w * x - 1))
            """,
            "applied three times",
        ),
        "without the odd batch": (
            """
            def step(w, shares):
                x = np.concatenate(shares[:2])
                return w - np.mean(2 * x * (w * x - 1))
            """,
            "the odd batch is left out",
        ),
        "no step": ("def step(w, shares): return w", messages.DIFFERENT),
    },
)
COUNT = Kind(
    Exercise(
        needs=("import tensorflow as tf",),
        solution="@tf.function\ndef total(x): return tf.add_n([x[0], x[1], x[2]])",
        checks="""
            @check("task", "One reduction")
            def one(work):
                x = work.rng.normal(size=(3, 4)).astype("float32")
                graph = work.graph("total", x)
                close(graph.result, x.sum(axis=0))
                equal(graph.count("AddN"), 1)
                equal(graph.count("Add", "AddV2", "Sum", "While", "StatelessWhile"), 0)
        """,
    ),
    {
        "one for show": (
            "def total(x):\n    tf.add_n([x[0], x[1]])\n    return tf.einsum('ij->j', x)",
            messages.DIFFERENT,
        ),
        "several in one function": (
            """
            pair = tf.function(lambda a, b: tf.add_n([a, b]))
            def total(x): return pair(pair(x[0], x[1]), x[2])
            """,
            messages.DIFFERENT,
        ),
        "a loop": (
            "def total(x): return tf.foldl(lambda a, b: tf.add_n([a, b]), x)",
            messages.DIFFERENT,
        ),
        "a constant": ("def total(x): return tf.add_n([tf.zeros(4), tf.zeros(4)])", messages.DIFFERENT),
        "a result without a graph": (
            "class Total:\n    def __call__(self, x): return tf.zeros(4)\n"
            "    def get_concrete_function(self, x): return self\ntotal = Total()",
            messages.RAISED,
        ),
        "forged counts": (
            """
            import runners.guest.judging.graphs as graphs
            graphs.export = lambda *_: {"ops": {"AddN": 1}, "nbytes": 9, "result": [0.0] * 4}
            def total(x): return x
            """,
            messages.NOT_PLAIN,
        ),
    },
)
NUMBER = Kind(
    Exercise(
        solution="def seconds(size, workers, rate): return 2 * (workers - 1) / workers * size / rate",
        checks="""
            @check("task", "The time of a ring all-reduce")
            def ring(work):
                for _ in range(3):
                    size, rate = (float(n) for n in work.rng.uniform(1, 1000, size=2))
                    workers = int(work.rng.integers(2, 65))
                    close(work.call("seconds", size, workers, rate), 2 * (workers - 1) / workers * size / rate)
        """,
    ),
    {
        "the number of the example": ("def seconds(size, workers, rate): return 1.5", messages.DIFFERENT),
        "what it was given": ("def seconds(size, workers, rate): return size", messages.DIFFERENT),
        "a table of earlier tries": (
            "def seconds(*a): return {(100.0, 2, 10.0): 10.0, (512.0, 4, 64.0): 12.0}.get(a, 10.0)",
            messages.DIFFERENT,
        ),
        "right in the first call": (
            """
            calls = []
            def seconds(size, workers, rate):
                calls.append(1)
                return 2 * (workers - 1) / workers * size / rate if len(calls) == 1 else calls and 1.0
            """,
            messages.DIFFERENT,
        ),
        "whatever the caller compares with": (
            """
            import sys
            def seconds(*a):
                frame = sys._getframe()
                while frame := frame.f_back:
                    if "wanted" in frame.f_locals: return frame.f_locals["wanted"]
                return 0.0
            """,
            messages.DIFFERENT,
        ),
        "an answer to another question": ("def seconds(*a): return list(a)", messages.WRONG_SHAPE),
    },
)
KINDS = {
    "value": VALUE,
    "tolerance": TOLERANCE,
    "output": OUTPUT,
    "structure": STRUCTURE,
    "training": TRAINING,
    "replicas": REPLICAS,
    "count": COUNT,
    "number": NUMBER,
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_the_solution_of_each_kind_passes(client: RunnerClient, kind: Kind) -> None:
    told = await kind.exercise.judge(client)
    assert told.verdict == "passed", [*told.checks, told.text[-1500:]]


@pytest.mark.parametrize(
    ("exercise", "code", "message"),
    [
        pytest.param(kind.exercise, code, message, id=f"{name}: {title}", marks=[pytest.mark.long] if number else [])
        for name, kind in KINDS.items()
        for number, (title, (code, message)) in enumerate(kind.cheats.items())
    ],
)
async def test_no_cheat_passes(client: RunnerClient, exercise: Exercise, code: str, message: str) -> None:
    told = await exercise.judge(client, code)
    (check,) = told.checks
    assert (told.verdict, told.outcome) == ("failed", Outcome.ok), told.checks
    assert message in check.message


# --- whatever the kind ------------------------------------------------------------------------------------------------

KEEPER = """
    import os, signal, socket
    from multiprocessing import shared_memory
    NAME = "answer-to-keep"
    SOCKETS = {"a socket": (socket.AF_UNIX, "\\0" + NAME), "a port": (socket.AF_INET, ("127.0.0.1", 47611))}

    def folders():
        for folder, names, _ in os.walk("/"):
            names[:] = [name for name in names if name not in ("proc", "sys", "usr", "site-packages")]
            if os.access(folder, os.W_OK): yield folder

    def keep():
        os.kept = True
        for folder in folders():
            try: open(os.path.join(folder, NAME), "w").close()
            except OSError: pass
        os.memory = shared_memory.SharedMemory(NAME + "-memory", create=True, size=8)
        for family, address in SOCKETS.values():
            server = socket.socket(family)
            server.bind(address)
            server.listen()
            if not os.fork():
                os.setsid()
                signal.pause()
            server.close()

    def found():
        places = [folder for folder in folders() if os.path.exists(os.path.join(folder, NAME))]
        places += ["memory"] * hasattr(os, "kept")
        try:
            shared_memory.SharedMemory(NAME + "-memory")
            places.append("shared memory")
        except OSError: pass
        for place, (family, address) in SOCKETS.items():
            with socket.socket(family) as client: places += [place] * (client.connect_ex(address) == 0)
        return places
"""
"""Leaves something wherever it can, and looks for it."""


async def test_nothing_is_left_of_earlier_calls_earlier_tries_or_the_learners_session(client: RunnerClient) -> None:
    exercise = Exercise(
        checks="""
            @check("task", "Nothing was there before")
            def new(work): equal(work.call("found"), [])
            @check("task", "Something is there now")
            def kept(work):
                work.call("keep")
                places = work.call("found")
                if not {"/tmp", "memory", "shared memory", "a socket", "a port"} <= set(places):
                    fail("It is only in {got}", got=places)
            @check("task", "Nothing is in a new sandbox")
            def fresh(work): equal(work.fresh().call("found"), [])
        """,
    )
    learner = SessionClient(client, topology="cpu", owner=new_name())
    told = await learner.run(textwrap.dedent(KEEPER) + "keep()\nfound()")
    assert "'a port'" in told.result, told
    for _ in range(2):
        accepted = await exercise.submit(client, KEEPER, learner.spec.owner)
        told = await learner.read(accepted)
        assert told.verdict == "passed", [*told.checks, told.text[-1500:]]
    await learner.leave()


async def test_a_right_answer_that_comes_too_late_does_not_count(client: RunnerClient) -> None:
    late = """
        import time
        def norm(x):
            try: time.sleep(60)
            except BaseException: return np.sqrt(np.mean(x ** 2))
    """
    told = await replace(TOLERANCE.exercise, seconds=1).judge(client, late)
    assert [(check.outcome, told.verdict) for check in told.checks] == [("too-slow", "failed")]


async def test_what_passed_before_the_time_was_up_is_no_pass_of_the_exercise(client: RunnerClient) -> None:
    exercise = Exercise(
        seconds=1,
        checks="""
            @check("task", "first")
            def first(work): equal(work.call("f"), 1)
            @check("task", "second")
            def second(work): equal(work.call("f"), 2)
            @check("task", "third")
            def third(work):
                if 3 in work.per_task("f"): fail("three")
        """,
    )
    told = await exercise.judge(
        client, "calls = []\ndef f():\n    calls.append(1)\n    while len(calls) > 1: pass\n    return 1"
    )
    assert [check.outcome for check in told.checks] == ["passed", "too-slow", "not-reached"]
    assert told.verdict == "failed"
