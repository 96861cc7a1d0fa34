"""A check is a plain function: here it is called like one, without a server."""

from __future__ import annotations

import pytest

from runners.checks import CheckFailed, InProcessWork, Work, check, close, equal
from runners.checks.declare import checks_of
from runners.checks.results import run_check
from runners.checks.work import SubmissionFailed
from runners.wire import check_messages as messages

NEEDS = ["import numpy as np\nSIZE = 8"]
SOLUTION = "def loss(x):\n    return np.sum(x) / SIZE"


@check("loss", "The loss is divided by the global batch", xp=20, hints=["Divide by what?"])
def divided(work: Work) -> None:
    x = work.rng.uniform(1, 2, size=6)  # their sum is never close to 0 or to an eighth of itself
    close(work.call("loss", x), work.reference("loss", x, topology="cpu"), mistakes={"not divided": x.sum()})


def test_the_solution_passes_and_a_mistake_has_its_diagnosis() -> None:
    divided(InProcessWork(SOLUTION, SOLUTION, NEEDS))
    with pytest.raises(CheckFailed, match="not divided"):
        divided(InProcessWork("def loss(x):\n    return np.sum(x)", SOLUTION, NEEDS))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", messages.NOT_DEFINED),
        ("loss = 3", messages.NOT_CALLABLE),
        ("def loss(x): raise ValueError('no')", messages.RAISED),
        ("def loss(x): return object()", messages.NOT_PLAIN),
        ("1 / 0", messages.RAISED),
    ],
)
def test_a_submission_that_cannot_answer_is_an_error_with_the_reason(code: str, message: str) -> None:
    with pytest.raises(SubmissionFailed) as caught:
        divided(InProcessWork(code, SOLUTION, NEEDS))
    assert caught.value.message == message
    assert run_check(divided, InProcessWork(code, SOLUTION, NEEDS)).outcome == "error"


def test_the_outcome_of_a_check_is_a_value() -> None:
    assert run_check(divided, InProcessWork(SOLUTION, SOLUTION, NEEDS)).outcome == "passed"
    failed = run_check(divided, InProcessWork("def loss(x): return 0.0", SOLUTION, NEEDS))
    assert (failed.outcome, failed.name, failed.got) == ("failed", "The loss is divided by the global batch", "0")


def test_a_check_that_fails_itself_is_a_fault_with_its_traceback() -> None:
    @check("loss", "broken")
    def broken(work: Work) -> None:
        raise KeyError("of the author")

    result = run_check(broken, InProcessWork(""))
    assert result.outcome == "fault"
    assert "of the author" in result.detail


def test_output_source_tree_and_values_are_there() -> None:
    work = InProcessWork("print('Replicas:', SIZE)\ny = [SIZE]", SOLUTION, [*NEEDS, "print('not mine')"])
    assert work.output == "Replicas: 8\n"
    equal(work.value("y"), [8])
    assert [type(node).__name__ for node in work.tree.body] == ["Expr", "Assign"]


def test_a_fresh_one_has_no_state() -> None:
    work: Work = InProcessWork("seen = []\ndef count():\n    seen.append(1)\n    return len(seen)")
    assert [work.call("count"), work.call("count"), work.fresh().call("count")] == [1, 2, 1]


def test_a_module_has_the_checks_of_each_exercise_in_order() -> None:
    other = check("other", "other")(lambda work: None)
    last = check("loss", "last")(lambda work: None)
    assert checks_of({"divided": divided, "x": 1, "other": other, "last": last}, "loss") == [divided, last]


def test_the_only_worker_gets_the_first_of_the_workers_own_arguments() -> None:
    work = InProcessWork("def add(a, b): return a + b")
    assert work.per_task("add", 1, own=[2, 30]) == [3]
    assert work.per_task("add", 1, 4) == [5]
