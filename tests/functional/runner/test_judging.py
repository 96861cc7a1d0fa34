"""Submissions are judged outside their own process, on hidden inputs, against a reference."""

from __future__ import annotations

import asyncio

import pytest

from runners.wire import check_messages as messages
from runners.wire.client import RequestRefused, RunnerClient
from runners.wire.protocol import Outcome, SessionState
from tests.factories.real_supervisor import SessionClient, new_name
from tests.functional.runner.judged import Exercise

DIVIDE = Exercise(
    needs=("import numpy as np\nGLOBAL = 8",),
    solution="""
        def loss_of(per_example):
            return np.sum(per_example) / GLOBAL
    """,
    checks="""
        @check("task", "The loss is divided by the global batch", xp=20, hints=["Divide by what?"])
        def divided(work):
            x = work.rng.uniform(1, 2, size=6).astype("float32")
            want = work.reference("loss_of", x, topology="cpu")
            close(work.call("loss_of", x), want, mistakes={"It was divided by the replica's batch.": x.mean()})

        @check("task", "It prints nothing")
        def silent(work):
            equal(work.output, "")
    """,
)
EQUIVALENT = Exercise(
    topology="gpu:4",
    needs=(
        """
        import tensorflow as tf
        strategy = tf.distribute.MirroredStrategy()
        GLOBAL = 8
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
        """,
    ),
    solution="""
        def gradient(x, y):
            def replica(features, labels):
                with tf.GradientTape() as tape:
                    error = tf.square(model(features)[:, 0] - labels)
                    loss = tf.nn.compute_average_loss(error, global_batch_size=GLOBAL)
                return tape.gradient(loss, model.trainable_variables[0])
            data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)).batch(GLOBAL))
            each = strategy.run(replica, next(iter(data)))
            return strategy.reduce("SUM", each, axis=None)
    """,
    checks="""
        @check("task", "The gradient is that of one large batch", xp=40)
        def equivalent(work):
            x, y = work.rng.normal(size=(8, 3)).astype("float32"), work.rng.normal(size=8).astype("float32")
            want = work.reference("gradient", x, y, topology="cpu")
            mistakes = {"Each replica divided by its own batch, and the gradients were added.": want * 4}
            close(work.call("gradient", x, y), want, mistakes=mistakes)
    """,
)


async def test_the_solution_passes_every_check(client: RunnerClient) -> None:
    told = await DIVIDE.judge(client)
    assert [(check.name, check.outcome) for check in told.checks] == [
        ("The loss is divided by the global batch", "passed"),
        ("It prints nothing", "passed"),
    ]
    assert (told.outcome, told.verdict, told.text) == (Outcome.ok, "passed", "")


async def test_a_mistake_has_its_diagnosis_and_what_was_got(client: RunnerClient) -> None:
    told = await DIVIDE.judge(client, "def loss_of(x):\n    return np.mean(x)")
    first, second = told.checks
    assert (first.outcome, first.message) == ("failed", "It was divided by the replica's batch.")
    assert first.got
    assert first.wanted is None
    assert (second.outcome, told.outcome, told.verdict) == ("passed", Outcome.ok, "failed")


async def test_an_error_in_a_call_is_shown_with_the_learners_line(client: RunnerClient) -> None:
    told = await DIVIDE.judge(client, "def loss_of(x):\n    y = 0\n    return 1 / y")
    assert (told.checks[0].outcome, told.checks[0].message) == ("error", messages.RAISED)
    assert told.checks[0].values == {"error": "ZeroDivisionError", "text": "division by zero"}
    assert (told.error.name, told.verdict) == ("ZeroDivisionError", "failed")
    own = "".join(frame.text for frame in told.error.frames if frame.own)
    assert "return" in own
    assert "judging" not in own


async def test_an_error_in_the_cell_leaves_every_check_unreached(client: RunnerClient) -> None:
    told = await DIVIDE.judge(client, "print('here')\nraise NotImplementedError")
    assert [check.outcome for check in told.checks] == ["not-reached", "not-reached"]
    assert (told.outcome, told.error.name, told.stdout, told.verdict) == (
        Outcome.error,
        "NotImplementedError",
        "here\n",
        "failed",
    )


async def test_what_the_submission_prints_is_shown_and_what_came_before_is_not(client: RunnerClient) -> None:
    exercise = Exercise(
        needs=("print('needed')\nimport sys",),
        checks="""
            @check("task", "It prints the answer")
            def answers(work):
                if "42" not in work.output: fail("It printed {got}.", got=work.output)
            @check("task", "It greets")
            def greets(work):
                equal(work.call("greet", "Ada"), None)
                print("never seen")
        """,
    )
    told = await exercise.judge(client, "print(41, 'or so', file=sys.stderr)\ndef greet(who): print('Hi', who)")
    assert (told.text, told.stdout) == ("41 or so\nHi Ada\n", "Hi Ada\n")
    assert [check.outcome for check in told.checks] == ["failed", "passed"]


async def test_replicas_are_judged_against_one_large_batch(client: RunnerClient) -> None:
    assert (await EQUIVALENT.judge(client)).verdict == "passed"
    wrong = EQUIVALENT.solution.replace("global_batch_size=GLOBAL", "global_batch_size=GLOBAL // 4")
    told = await EQUIVALENT.judge(client, wrong)
    assert told.checks[0].message.startswith("Each replica divided by its own batch")


async def test_the_structure_of_the_code_and_its_values_are_seen(client: RunnerClient) -> None:
    exercise = Exercise(
        checks="""
            import ast
            @check("task", "It uses a scope")
            def scope(work):
                names = [node.attr for node in ast.walk(work.tree) if isinstance(node, ast.Attribute)]
                if "scope" not in names: fail("There is no scope.")
            @check("task", "Shape and dtype")
            def shape(work):
                equal(work.value("model.weights"), np.zeros((2, 3), "int8"), dtype=True, show=True)
        """,
        needs=("import numpy as np",),
    )
    good = """
        %matplotlib inline
        class Model:
            weights = np.zeros((2, 3), "int8")
            def scope(self): return 1
        model = Model()
        model.scope()
    """
    assert (await exercise.judge(client, good)).verdict == "passed"
    told = await exercise.judge(client, good.replace("int8", "int16").replace("model.scope()", ""))
    assert [check.message for check in told.checks] == ["There is no scope.", messages.WRONG_DTYPE]


async def test_a_hidden_seed_makes_training_comparable(client: RunnerClient) -> None:
    exercise = Exercise(
        needs=("import tensorflow as tf\nstart = tf.random.normal([3])",),
        solution="def draw(n):\n    return start + tf.random.uniform([3]) * n",
        checks="""
            @check("task", "Same random numbers")
            def same(work):
                n = float(work.rng.uniform())
                close(work.call("draw", n), work.reference("draw", n))
                close(work.fresh().call("draw", n), work.reference("draw", n))
        """,
    )
    assert (await exercise.judge(client)).verdict == "passed"


async def test_state_from_earlier_calls_is_gone_in_a_fresh_sandbox(client: RunnerClient) -> None:
    exercise = Exercise(
        solution="seen = []\ndef count():\n    seen.append(1)\n    return len(seen)",
        checks="""
            @check("task", "Counts")
            def counts(work):
                equal([work.call("count"), work.call("count"), work.fresh().call("count")], [1, 2, 1])
        """,
    )
    assert (await exercise.judge(client)).verdict == "passed"


@pytest.mark.parametrize(
    ("exercise", "detail"),
    [
        (Exercise(checks='@check("task", "a")\ndef a(work): raise KeyError("mine")'), "KeyError: 'mine'"),
        (Exercise(checks="def"), "SyntaxError"),
        (Exercise(checks=""), "no check of task"),
        (Exercise(checks='@check("task", "a")\ndef a(work): pass', needs=("1 / 0",)), "ZeroDivisionError"),
        (
            Exercise(checks='@check("task", "a")\ndef a(work): work.reference("f")', solution="1 / 0"),
            "ZeroDivisionError",
        ),
        (Exercise(checks='@check("task", "a")\ndef a(work): work.reference("f")'), "defines no f"),
        (Exercise(checks='@check("task", "a")\ndef a(work): work.reference("f", topology="gpu:x")'), "no topology"),
        (Exercise(checks='@check("task", "a")\ndef a(work): __import__("os")._exit(3)'), "the judge ended crash"),
    ],
    ids=["check", "syntax", "no checks", "needed", "solution", "no reference", "topology", "judge ends"],
)
async def test_what_is_not_the_submissions_doing_is_a_fault(
    client: RunnerClient, exercise: Exercise, detail: str
) -> None:
    told = await exercise.judge(client, "pass")
    assert told.verdict == "fault"
    assert {check.outcome for check in told.checks} == {"fault"}
    assert detail in told.checks[0].detail
    assert told.checks[0].message == messages.FAULT


async def test_a_call_that_takes_too_long_is_too_slow_and_what_follows_is_not_reached(client: RunnerClient) -> None:
    exercise = Exercise(
        seconds=1,
        checks="""
            @check("task", "first")
            def first(work): work.call("f")
            @check("task", "second")
            def second(work): work.call("f")
        """,
    )
    told = await exercise.judge(client, "def f():\n    while True: pass")
    assert [check.outcome for check in told.checks] == ["too-slow", "not-reached"]
    assert told.checks[0].values == {"seconds": "1"}
    assert told.verdict == "failed"


async def test_a_judgement_is_stopped_like_a_run_and_is_no_try(client: RunnerClient) -> None:
    exercise = Exercise(checks='@check("task", "a")\ndef a(work): work.call("f")')
    accepted = await exercise.submit(client, "print('going', flush=True)\nwhile True: pass")
    async for event in client.events(accepted.id):
        if event.kind == "text":
            await client.stop(accepted.id)
    told = await SessionClient(client).read(accepted)
    assert (told.outcome, told.verdict) == (Outcome.interrupted, "lost")


async def test_the_same_request_twice_is_one_judgement(client: RunnerClient) -> None:
    request = DIVIDE.request(DIVIDE.solution)
    first, second = await client.submit(request), await client.submit(request)
    told = await SessionClient(client).read(first)
    assert told.events == (await SessionClient(client).read(second)).events
    assert len(told.checks) == 2


async def test_a_learner_is_judged_once_at_a_time_and_keeps_their_sessions(client: RunnerClient) -> None:
    owner = new_name()
    learners = [SessionClient(client, owner=owner, topology="cpu") for _ in range(3)]
    for learner in learners:
        await learner.run("x = 1")
    accepted = [await DIVIDE.submit(client, "import time; time.sleep(25)", owner) for _ in range(3)]
    with pytest.raises(RequestRefused, match="already waiting"):
        await DIVIDE.submit(client, "", owner)
    states = [(await client.session(each.session.id)).state for each in accepted]
    assert states.count(SessionState.queued) == 2
    for each in accepted:
        await client.stop(each.id)
    await asyncio.gather(*(SessionClient(client).read(each) for each in accepted))
    for learner in learners:
        assert (await learner.run("x")).result == "1"
        await learner.leave()


async def test_a_judgement_needs_a_session_of_its_own(client: RunnerClient) -> None:
    learner = SessionClient(client, topology="cpu")
    await learner.run("secret = 1")
    request = DIVIDE.request(DIVIDE.solution).model_copy(update={"session": learner.session, "spec": learner.spec})
    with pytest.raises(RequestRefused, match="has one of its own"):
        await client.submit(request)
    await learner.leave()
