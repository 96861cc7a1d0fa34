"""View models of exercises."""

from __future__ import annotations

from app.exercises.views import DiffLine, diff_lines


def test_a_diff_leads_from_the_learners_code_to_the_solution() -> None:
    assert diff_lines("def f(x):\n    return x\n", "def f(x):\n    y = 2 * x\n    return y") == [
        DiffLine("same", "def f(x):"),
        DiffLine("removed", "    return x"),
        DiffLine("added", "    y = 2 * x"),
        DiffLine("added", "    return y"),
    ]


def test_long_code_that_resembles_the_solution_is_compared_in_linear_time() -> None:
    """``difflib.ndiff`` compares the characters of all pairs of lines, in the process that serves all learners."""
    solution = "\n".join(f"    value_{number} = compute(alpha, beta, {number})" for number in range(40))
    mine = "\n".join(f"    value_{number} = compute(alpha, bet, {number})" for number in range(2400))

    assert len(diff_lines(mine, solution)) == 2440
