"""The marks of a solution: starter and solution."""

from __future__ import annotations

from app.lessons.solution_marks import MarkedCode, has_marks, split_marked_code


def errors_in(code: str) -> list[tuple[int, str]]:
    return [(fault.line, fault.text) for fault in split_marked_code(code, 10)[1]]


def test_starter_has_the_lines_of_the_comment_in_place_of_the_solution() -> None:
    code = """\
def mean(x):
    ### BEGIN SOLUTION
    #: # Divide by what?
    #: if x:
    #:     return sum(x)
    #:
    return sum(x) / len(x)  # right
    ### END SOLUTION


print(mean([1, 2]))"""
    assert split_marked_code(code, 1) == (
        MarkedCode(
            "def mean(x):\n    # Divide by what?\n    if x:\n        return sum(x)\n\n\n\nprint(mean([1, 2]))",
            "def mean(x):\n    return sum(x) / len(x)  # right\n\n\nprint(mean([1, 2]))",
            1,
        ),
        [],
    )


def test_starter_raises_where_the_comment_says_nothing() -> None:
    marked, faults = split_marked_code("def f():\n  ### BEGIN SOLUTION\n  return 1\n  ### END SOLUTION", 1)
    assert marked.starter == "def f():\n  raise NotImplementedError"
    assert not faults


def test_each_region_is_replaced_by_itself() -> None:
    region = "### BEGIN SOLUTION\n#: {0} = ...\n{0} = 1\n### END SOLUTION\n"
    marked, faults = split_marked_code(region.format("a") + "b = a\n" + region.format("c"), 1)
    assert marked == MarkedCode("a = ...\nb = a\nc = ...\n", "a = 1\nb = a\nc = 1\n", 2)
    assert not faults


def test_marks_without_their_partner_are_errors() -> None:
    assert errors_in("x\n### END SOLUTION") == [
        (11, "this solution has no beginning; write ### BEGIN SOLUTION above it")
    ]
    assert errors_in("x\n### BEGIN SOLUTION") == [
        (11, "the solution that begins here has no end; write ### END SOLUTION below it")
    ]
    assert errors_in("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION") == [
        (11, "the solution that begins on line 10 has no end; write ### END SOLUTION")
    ]


def test_comments_outside_of_a_region_stay() -> None:
    assert split_marked_code("#: x\ny = 1", 1)[0] == MarkedCode("#: x\ny = 1", "#: x\ny = 1", 0)
    assert not has_marks("# BEGIN of the solution")
    assert has_marks("  # begin solution")
