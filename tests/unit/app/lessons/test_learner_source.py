"""A lesson's text for learners: however options are written, what they tell about an answer is gone."""

from __future__ import annotations

import pytest

from app.lessons.document import parse_document
from app.lessons.learner_source import learner_source
from tests.factories.lesson_source import lesson_text

MARKS = "### BEGIN SOLUTION\n#: x = ...\nx = 1  # secret\n### END SOLUTION\n"
RUN = "```{code-cell} python\n:name: run\n\nprint(7)\n```\n"


def public(body: str) -> str:
    document = parse_document(lesson_text(body), "en")
    assert document.faults == ()
    return learner_source(document).removeprefix(lesson_text(""))


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (":name: a\n:expect: secret\n:tags: [exercise]\n\n", ":name: a\n:tags: [exercise]\n\n"),
        (":name: a\n:tags: [exercise]\n:expect: secret\n\n", ":name: a\n:tags: [exercise]\n\n"),
        (":tags: [exercise]\n:name: a\n:expect: secret\n", ":tags: [exercise]\n:name: a\n"),
        (
            "---\nname: a\nexpect: ['secret 1',\n  'secret 2']\ntags: [exercise]\n---\n",
            "---\nname: a\ntags: [exercise]\n---\n",
        ),
        (
            "---\nexpect:\n- secret\n- secret 2\nname: a\ntags: [exercise]\n---\n\n",
            "---\nname: a\ntags: [exercise]\n---\n\n",
        ),
        (
            "---\nname: a\ntags: [exercise]\nexpect: |-\n  secret\n---\n",
            "---\nname: a\ntags: [exercise]\n---\n",
        ),
    ],
)
def test_what_the_solution_prints_goes_with_its_option(options: str, left: str) -> None:
    body = f"Words.\n\n```{{code-cell}} python\n{options}{MARKS}```\n\nMore.\n"
    assert public(body) == f"Words.\n\n```{{code-cell}} python\n{left}x = ...\n```\n\nMore.\n"


def test_the_expectation_of_any_other_cell_stays() -> None:
    body = RUN.replace("\n\n", "\n:expect: '7'\n\n")
    assert public(body) == body


def test_options_of_questions_may_be_yaml_and_strange() -> None:
    body = f"""\
:::{{predict}} What: `x`?
---
name: p
cell: run
unit: "it's: 'µs'"
answer: 7
tolerance: 5%
---
Words with a list:

- one

More words.
:::

{RUN}"""
    assert public(body).startswith(
        ":::{predict} What: `x`?\n:name: p\n:cell: run\n:unit: 'it''s: ''µs'''\n\n"
        "Words with a list:\n\n- one\n\nMore words.\n:::\n\n```{code-cell}"
    )
    document = parse_document(lesson_text(public(body)), "en")
    assert [question.unit for question in document.questions] == ["it's: 'µs'"]


def test_a_choice_of_several_lines_and_a_loose_list_stay_lists() -> None:
    body = "```{quiz} What?\n:name: q\n\n* [x] one\n  line more\n\n  Feedback.\n\n      secret = 1\n\n* [ ] two\n```\n"
    assert public(body) == "```{quiz} What?\n:name: q\n\n- [ ] one\n  line more\n- [ ] two\n```\n"


def test_a_solution_at_the_end_of_the_file_leaves_nothing_behind() -> None:
    cell = f"```{{code-cell}} python\n:name: a\n:tags: [exercise]\n\n{MARKS}```\n"
    assert "secret" not in public(f"{cell}\n```{{solution}} a\nsecret\n```")
    assert public(f"```{{solution}} a\nsecret\n```\n\nWords.\n\n{cell}").startswith("Words.\n")
