"""Every error has its line and says what to write instead."""

from __future__ import annotations

import time

import pytest

from app.lessons.document import LessonDecodeError, decode_source, parse_document
from app.lessons.python_source import without_magics
from tests.factories.lesson_source import CELL, FRONT_MATTER, errors_in, errors_in_body, lesson_text

OPTIONS = "```{code-cell} python\n"


def test_a_good_lesson_has_no_mistakes() -> None:
    body = (
        f"# The lesson\n\n## One\n\nWords [on](../other/lesson.md), [off](https://tensorflow.org).\n\n{CELL}\n### Two\n"
    )

    assert errors_in_body(body) == []


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        (
            "```{cod-cell} python\nx\n```\n",
            1,
            "unknown directive {cod-cell}; did you mean 'code-cell'?",
        ),
        (
            "Words.\n\n```{code-cell} python\nprint(1)\n```\n",
            3,
            "a cell has no name, so the first words of the code are used; add",
        ),
        ("```{fgure} assets/x.png\n```\n", 1, "unknown directive {fgure}: did you mean 'figure'?"),
        (f"{OPTIONS}:name: one\nexpects: 'loss: 1.5'\nx = 1\n```\n", 3, "write ':expect: …' if it is meant as one"),
        ("```{figure} assets/x.png\nalt: A\n```\n", 2, "write ':alt: …' if it is meant as one"),
        (f"{CELL}\n{CELL}", 7, "a cell named 'one' is already on line 7; give this one another name"),
        (
            f"{OPTIONS}:name: One\n\nx\n```\n",
            2,
            "the cell's name 'One' is not valid, so it is called 'one' here; use at most 40",
        ),
        (
            f"{OPTIONS}:name: one\n:topology: gpu:9\n\nx\n```\n",
            3,
            "'topology' has a machine that is too large: 'gpu:9' (gpu:1 to gpu:8)",
        ),
        (f"{OPTIONS}:name: one\n:keras: 4\n\nx\n```\n", 3, "'keras' must be 2 or 3"),
        (
            f"{OPTIONS}:name: one\n:topologies: gpu:2\n\nx\n```\n",
            3,
            "'topologies' must be a list of 1 to 8; write it as [gpu:2, gpu:4]",
        ),
        (
            f"{OPTIONS}:name: one\n:topologies: [gpu:2, gpu:9]\n\nx\n```\n",
            3,
            "'topologies' has a machine that is too large: 'gpu:9' (gpu:1 to gpu:8)",
        ),
        (f"{OPTIONS}:name: one\n:topologies: [cpu, cpu]\n\nx\n```\n", 3, "'topologies' names cpu twice; keep one"),
        (
            f"{OPTIONS}:name: one\n:topology: cpu\n:topologies: [gpu:2]\n\nx\n```\n",
            4,
            "'topologies' does not include cpu, the value of 'topology'; add it, or change 'topology'",
        ),
        (f"{OPTIONS}:name: one\n:kerases: [2, 4]\n\nx\n```\n", 3, "'kerases' must be 2 or 3"),
        (f"{OPTIONS}:name: one\n:keras: 2\n:kerases: [3]\n\nx\n```\n", 4, "'kerases' does not include 2"),
        (
            f"{OPTIONS}:name: one\n:tags: [hide-inputs]\n\nx\n```\n",
            3,
            "unknown tag 'hide-inputs'; did you mean 'hide-input'?",
        ),
        (
            f"{OPTIONS}:name: one\n:expect: [loss 0.5, '...']\n\nx\n```\n",
            3,
            "'expect' has '...', which any output contains; write words or numbers that the cell prints",
        ),
        (
            f"{OPTIONS}:name: one\n:expect: {{loss: 0.5}}\n\nx\n```\n",
            3,
            "'expect' must contain strings of one line each; put each in quotation marks",
        ),
        (f"{OPTIONS}:name: one\n:expect: []\n\nx\n```\n", 3, "'expect' must be a string or a list of 1 to 20"),
        (
            f"{OPTIONS}:name: one\n:tags: [skip-execution]\n:expect: loss\n\nx\n```\n",
            4,
            "a cell tagged skip-execution prints nothing to compare 'expect' with; remove one of the two",
        ),
        (
            f"{OPTIONS}:name: one\n:nmae: two\n\nx\n```\n",
            3,
            "unknown option 'nmae' of {code-cell}; did you mean 'name'?",
        ),
        (f"{OPTIONS}:name: one\n:name: two\n\nx\n```\n", 3, "the option 'name' is given twice; keep one"),
        (f"{OPTIONS}:name one\n\nx\n```\n", 2, "the options cannot be read: it is not a list of 'key: value' lines"),
        (f"{OPTIONS}---\nname: one\ntags: [a\n---\nx\n```\n", 4, "the options cannot be read: "),
        (f"{OPTIONS}:name: one\n\nx = 1\ndef f(:\n    pass\n```\n", 5, "the cell 'one' is not Python: "),
        (f"{OPTIONS}:name: one\n\n\n```\n", 1, "the cell 'one' has no code; write some, or remove the cell"),
        (
            "```{code-cell} ruby\n:name: one\n\nx\n```\n",
            1,
            "a cell cannot run 'ruby', so its code is only shown; write python",
        ),
        (f"- item\n\n  {OPTIONS}  :name: one\n\n  x\n  ```\n", 3, "a code cell cannot be inside another block"),
        (":::{code-cell} python\n:name: one\n\nx = 1\n:::\n", 1, "a code cell needs ``` and not :::"),
        ("```{note}\nnever closed\n", 1, "the ``` opened here is never closed; put ``` at its end, and ````"),
        (":::note\nx\n:::\n", 1, ":::note is not a directive; write its name in braces"),
        ("## One\n\n#### Four\n", 3, "a heading of level 4 follows one of level 2; write ###"),
        ("### Three\n", 1, "a heading of level 3 follows one of level 1; write ##"),
        ("Words.\n\n# Another title\n", 3, "a lesson has one title; start this heading with ##"),
        ("## \n", 1, "the heading is empty"),
        (
            "Words\nand <b>bold</b>.\n",
            2,
            "raw HTML is reduced to its words and simple formatting: '<b>'; write Markdown, or `code`",
        ),
        ("<!-- hidden -->\n", 1, "raw HTML is not shown: '<!-- hidden -->'; use % for a comment"),
        ("![](assets/x.png)\n", 1, "the picture 'assets/x.png' has no alternative text; add words between ![ and ]"),
        ("![A](https://example.org/x.png)\n", 1, "is not in the lesson; put it in assets/"),
        ("```{figure} assets/x.png\n\nWords.\n```\n", 1, "has no alternative text; add an option ':alt: …'"),
        (
            "```{figure} assets/x.png\n:alt: A\n:width: wide\n```\n",
            3,
            "'width' must be a whole number of pixels, or a percentage",
        ),
        ("```{figure}\n:alt: A\n```\n", 1, "{figure} needs the path of a file in `assets` after its name"),
        ("```{admonition}\nWords.\n```\n", 1, "{admonition} needs a title after its name"),
        ("```{mermaid} x\ny\n```\n", 1, "{mermaid} takes no argument; put 'x' on the line below"),
        ("```{table} Caption\nWords.\n```\n", 1, "{table} contains no table"),
        ("One\n$\\frac{a$\n", 2, "the formula cannot be read, so its LaTeX is shown: "),
        ("$$\n\\nosuch{a}\n$$\n", 1, 'the formula cannot be read, so its LaTeX is shown: Unknown command "\\nosuch"'),
        ("{ref}`x`\n", 1, "nothing here has the name 'x'; write (x)= above it, or correct it"),
        ("(cost)=\n## One\n\n{numref}`t <costs>`\n", 4, "nothing here has the name 'costs'; did you mean 'cost'?"),
        ("$$\na\n$$ (mean)\n\n{eq}`maen`\n", 5, "no formula has the name 'maen'; did you mean 'mean'?"),
        ("{nmref}`x`\n", 1, "unknown role {nmref}: its words are shown as they are; did you mean 'numref'?"),
        ("[x](javascript:alert(1))\n", 1, "is not a kind of link that lessons support; write https://…"),
        ("[x](/en/courses/a/b)\n", 1, "is not a valid target; write ../other-lesson/lesson.md, assets/file, #heading"),
        ("Words.[^gone]\n", 1, "there is no footnote 'gone'; add a line '[^gone]: …'"),
        ("```pyhton\nx\n```\n", 1, "unknown language 'pyhton' for a code block"),
        ("(a b)=\n## One\n", 1, "the target 'a b' cannot be a name"),
        ("Words.\n\n(a)=\n", 3, "the target 'a' labels nothing; put it on the line above a heading"),
        ("(a)=\n## One\n\n(a)=\n## Two\n", 4, "the target 'a' is defined twice"),
        ("::::{note}\n:::{tip}\n## <b>\n:::\n::::\n", 3, "raw HTML is reduced"),
        ("", 1 - 6, "the lesson is empty; write its text below the front matter"),
    ],
)
def test_an_error_is_reported_with_its_line(body: str, line: int, words: str) -> None:
    faults = errors_in_body(body)

    assert any(at == line and words in text for at, text in faults), faults


@pytest.mark.parametrize("value", ["loss: 1.5", "‘loss: 1.5’", "loss: it's 1.5"])
def test_a_colon_in_an_option_is_one_error_that_shows_the_quotation_marks(value: str) -> None:
    quoted = '"loss: it\'s 1.5"' if "it's" in value else "'loss: 1.5'"
    problem = f"the value of 'expect' has a colon; put it in quotation marks: :expect: {quoted}"

    assert errors_in_body(f"{OPTIONS}:name: one\n:expect: {value}\n\nx = 1\n```\n") == [(3, problem)]


def test_an_annotated_variable_is_not_taken_for_an_option() -> None:
    assert errors_in_body(f'{OPTIONS}:name: one\n\nname: str = "x"\n```\n') == []


def test_the_roles_are_listed_once_in_a_lesson() -> None:
    said = [text for _, text in errors_in_body("{foo}`x`\n\n{bar}`y`\n")]

    assert ["use one of abbr" in text for text in said] == [True, False]


def test_a_broken_reference_is_an_error_and_shows_no_placeholder() -> None:
    document = parse_document(lesson_text("See {numref}`Table %s <costs>`.\n"), "en")

    assert [(fault.warning, fault.blocks) for fault in document.faults] == [(False, False)]


def test_a_second_title_does_not_blame_the_headings_below_the_first() -> None:
    assert [line for line, _ in errors_in_body("## One\n\n### Two\n\n# Second\n\n## Three\n")] == [5]


def test_a_block_that_is_not_closed_is_named_where_a_task_begins() -> None:
    cells = "```{code-cell} python\n:name: sum\n\nprint(3)\n```\n"
    body = f":::{{warning}}\nWords.\n\n:::{{predict}} How many?\n:name: q\n:cell: sum\n:answer: 3\n\n{cells}:::\n"
    said = dict(errors_in_body(body))

    assert said[4].startswith("{predict} cannot be inside the {warning} of line 7; close that with ::: above this")
    assert not [text for text in said.values() if "never closed" in text or "is not a cell" in text]


def test_front_matter_that_cannot_be_read_is_the_only_error() -> None:
    document = parse_document("---\ntitle: One: two\n---\nWords.\n", "en")

    assert [fault.text for fault in document.faults] == [
        "the value of 'title' has a colon; put it in quotation marks: title: 'One: two'"
    ]


def test_all_errors_in_a_file_are_reported_at_once_and_in_order() -> None:
    body = "#### Deep\n\n<b>\n\n```{nope}\n```\n\n[x](file:///etc/passwd)\n\n```{code-cell} python\nx\n```\n"

    assert [line for line, _ in errors_in_body(body)] == [1, 3, 5, 8, 10]


@pytest.mark.parametrize(
    ("header", "line", "words"),
    [
        (
            "summary: x\nminutes: 5\n",
            1,
            "the lesson has no title; start its text with '# …', or add 'title: …' to the front",
        ),
        (FRONT_MATTER + "titel: x\n", 6, "unknown key 'titel'; did you mean 'title'?"),
        (FRONT_MATTER + "title: again\n", 6, "'title' is given twice; keep one"),
        (f"{FRONT_MATTER}publish_at: 2027-03-01T09:00\n", 6, "'publish_at' must be a date, or a time with its zone"),
        (f"{FRONT_MATTER}publish_at: 2027-03-01 09:00\n", 6, "'publish_at' must be a date, or a time with its zone"),
        (
            FRONT_MATTER.replace("published", "draft") + "publish_at: 2027-03-01\n",
            6,
            "'publish_at' has no effect on a draft, which stays hidden; write status: published beside it",
        ),
        (f"{FRONT_MATTER}publish_at: soon\n", 6, "'publish_at' must be a date, or a time with its zone; write 2027-"),
        (f"{FRONT_MATTER}was: [Old]\n", 6, "'was' has a former name 'Old'; use lowercase letters"),
        (FRONT_MATTER.replace("minutes: 5", "minutes: soon"), 4, "'minutes' must be a whole number from 1 to 600"),
        (
            FRONT_MATTER.replace("published", "final"),
            5,
            "'status' cannot be 'final'; write one of draft, published, deprecated",
        ),
        (FRONT_MATTER + "topology: gpu:0\n", 6, "'topology' has an unknown machine 'gpu:0'; use cpu, "),
        (FRONT_MATTER + "keras: three\n", 6, "'keras' must be 2 or 3"),
        (FRONT_MATTER + "topologies: []\n", 6, "'topologies' must be a list of 1 to 8"),
        (FRONT_MATTER + "topology: cpu\ntopologies: [gpu:2]\n", 7, "'topologies' does not include cpu"),
        (FRONT_MATTER + "kerases: [2, 2]\n", 6, "'kerases' names 2 twice; keep one"),
        (FRONT_MATTER + "tags: one\n", 6, "'tags' must be a list; write it as [multi-worker, …]"),
        (FRONT_MATTER + "tags: [One Tag]\n", 6, "use lowercase letters, digits, and hyphens, as in multi-worker"),
        (FRONT_MATTER + "tags: [a, a]\n", 6, "'tags' names a tag twice; keep one"),
        (
            FRONT_MATTER.replace("The lesson", "The: lesson"),
            2,
            "the value of 'title' has a colon; put it in quotation marks: title: 'The: lesson'",
        ),
        pytest.param(
            FRONT_MATTER + f"tags: {'[' * 3_000}{']' * 3_000}\n",
            6,
            "the front matter cannot be read: it has too many brackets inside brackets",
            id="3,000 lists, one inside the other, which took seconds",
        ),
        ("- one\n- two\n", 2, "the front matter cannot be read: it is not a list of 'key: value' lines"),
        (FRONT_MATTER.replace("title: The lesson", "title:"), 2, "'title' must be a string"),
    ],
)
def test_an_error_in_the_front_matter_is_reported_with_its_line(header: str, line: int, words: str) -> None:
    faults = parse_document(lesson_text("Words.\n", header), "en").faults

    assert any(fault.line == line and words in fault.text for fault in faults), faults


def test_a_front_matter_that_is_not_closed_is_an_error() -> None:
    (fault,) = parse_document(f"---\n{FRONT_MATTER}\nWords.\n", "en").faults

    assert (fault.line, fault.text) == (1, "the front matter is not closed; write a line with --- below its last key")


def test_a_cell_that_is_not_closed_is_reported_where_the_next_block_begins() -> None:
    body = "```{code-cell} python\n:name: a\n\nx = 1\n\n```{code-cell} python\n:name: b\n\ny = 1\n```\n"

    assert errors_in_body(body) == [
        (6, "the cell 'a' is not closed, and another block begins here; write ``` above it")
    ]


def test_a_title_with_backticks_that_hides_a_block_is_an_error() -> None:
    hint = "remove them, or open and close the block with ~~~ in place of ```"

    assert errors_in_body("Words.\n\n```{note} What `x` is\nA note.\n```\n")[0] == (
        3,
        f"backticks in its title keep {{note}} from being a block; {hint}",
    )
    assert errors_in_body("~~~{note} What `x` is\nA note.\n~~~\n\n```{note}``` makes a `note`.\n") == []


def test_a_link_without_a_target_is_an_error() -> None:
    assert errors_in_body("Words [here]().\n") == [(1, "the link has no target; write where it leads between ( and )")]


def test_a_nul_character_is_reported_with_its_line() -> None:
    with pytest.raises(LessonDecodeError) as raised:
        decode_source(b"---\ntitle: \0\n")

    assert (raised.value.fault.line, raised.value.fault.text[:31]) == (2, "the line has a NUL character; r")


def test_a_translation_cannot_set_what_the_english_lesson_does_not() -> None:
    english = parse_document(lesson_text(), "en")
    korean = parse_document(lesson_text("Words.\n", "title: a\nsummary: b\ntopology: cpu\n"), "ko", english)

    assert [(fault.line, fault.text) for fault in korean.faults] == [
        (4, "'topology' is not in the English lesson; write it there instead")
    ]


def test_a_file_without_front_matter_takes_title_and_minutes_from_its_text() -> None:
    document = parse_document("# The *title*\n\nThe first `paragraph`.\n\n```{code-cell}\nx = 1\n```\n", "en")

    assert not [fault for fault in document.faults if not fault.warning]
    assert (document.header.title, document.header.summary) == ("The title", "The first paragraph.")
    assert document.header.minutes == 2


@pytest.mark.parametrize(
    ("words", "cells", "exercises", "minutes"),
    [(0, 0, 0, 1), (200, 1, 0, 2), (100, 0, 1, 7), (300, 8, 0, 10), (1000, 5, 1, 15), (1000, 8, 1, 20)],
)
def test_the_estimate_counts_words_cells_and_exercises(words: int, cells: int, exercises: int, minutes: int) -> None:
    text = f"# T\n\n{'word ' * (words - 1)}\n\n" + "```{code-cell}\nx = 1\n```\n\n" * cells
    text += "```{code-cell}\n:name: a\n:tags: [exercise]\n\n### BEGIN SOLUTION\nx\n### END SOLUTION\n```\n" * exercises

    assert parse_document(text, "en").header.minutes == minutes


@pytest.mark.parametrize(
    ("was", "words"),
    [
        ("two", "'was' has 'two', which is a name on line 14; a former name cannot be in use"),
        ("one", "'was' has 'one', which is a name on line 7; a former name cannot be in use"),
        ("[past, old]", "'was' has 'past', as line 14 has; work under that name can go to one place only"),
        ("[a#b, a#b]", "'was' has 'a#b', as line 14 has; work under that name can go to one place only"),
        ("a#b#c", "'was' has 'a#b#c', which cannot be a name; use lowercase letters, digits, and hyphens"),
        ("Old One", "'was' has 'Old One', which cannot be a name; use lowercase letters, digits, and hyphens"),
        ("[]", "'was' must be a former name or a list of 1 to 20"),
    ],
)
def test_a_former_name_belongs_to_one_cell_and_is_not_in_use(was: str, words: str) -> None:
    body = f"```{{code-cell}} python\n:name: one\n:was: {was}\n\nx\n```\n\n"
    body += "```{code-cell} python\n:name: two\n:was: past\n\nx\n```\n"

    faults = [fault.text for fault in parse_document(lesson_text(body), "en").faults]
    assert [text.replace("as line 7 has", "as line 14 has") for text in faults] == [words]


def test_jupyters_own_keys_are_left_alone() -> None:
    header = FRONT_MATTER + "jupytext:\n  text_representation: {extension: .md}\nkernelspec: {name: lockstep}\n"

    assert parse_document(lesson_text(header=header), "en").faults == ()


def test_a_cell_that_is_to_raise_may_be_no_python() -> None:
    assert errors_in_body("```{code-cell} python\n:name: one\n:tags: [raises-exception]\n\nprint(\n```\n") == []


def test_spaces_without_end_are_no_magic_and_take_no_time() -> None:
    """Learners' code is converted, too, when they download it."""
    began = time.process_time()
    without_magics(" " * 30_000 + "x")
    assert time.process_time() - began < 3


def test_magics_are_python_enough() -> None:
    code = "%matplotlib inline\nfiles = !ls\nif True:\n    %time x = 1\ny = 7\ny = (y\n     % 2)"

    assert errors_in_body(f"```{{code-cell}} ipython3\n:name: one\n\n{code}\n```\n") == []


def test_options_can_be_written_in_two_ways() -> None:
    colons = parse_document(
        lesson_text("```{code-cell} python\n:name: one\n:caption: Two words\n:tags: [hide-input]\n\nx\n```\n"), "en"
    )
    dashes = parse_document(
        lesson_text("```{code-cell} python\n---\nname: one\ncaption: Two words\ntags: [hide-input]\n---\nx\n```\n"),
        "en",
    )

    first, second = colons.cells[0], dashes.cells[0]
    assert (first.name, first.title, first.tags, first.code) == (second.name, second.title, second.tags, second.code)
    assert first.line == 12
    assert second.line == 13


def test_bytes_that_are_no_text_have_a_line_too() -> None:
    with pytest.raises(LessonDecodeError) as raised:
        decode_source(b"one\ntwo \xff\n")

    assert raised.value.fault.line == 2
    assert "the byte 0xff is not UTF-8" in raised.value.fault.text


def test_a_giant_file_is_refused() -> None:
    with pytest.raises(LessonDecodeError, match="1,000,001 bytes"):
        decode_source(b"x" * 1_000_001)


def test_code_that_is_too_long_to_run_is_reported() -> None:
    body = f"```{{code-cell}} python\n:name: one\n\nx = '{'a' * 100_001}'\n```\n"

    assert "the limit is 100,000; split the cell" in errors_in_body(body)[0][1]


@pytest.mark.parametrize(
    ("option", "texts"),
    [("replicas 4", ("replicas 4",)), ("4", ("4",)), ("[a, 'b: 2']", ("a", "b: 2"))],
)
def test_what_a_cell_is_expected_to_print_is_one_text_or_several(option: str, texts: tuple[str, ...]) -> None:
    document = parse_document(lesson_text(f"{OPTIONS}:name: one\n:expect: {option}\n\nx\n```\n"), "en")

    assert (document.faults, document.cells[0].expect) == ((), texts)


# --- translations ----------------------------------------------------------------------------------------------

ENGLISH = parse_document(
    lesson_text(
        "```{code-cell} python\n:name: one\n:caption: First\n:topology: cpu\n\n"
        '# say hi\nn = 4\nprint(f"Replicas: {n}")\n```\n'
        "```{code-cell} python\n:name: two\n\nprint(2)\n```\n",
        FRONT_MATTER + "topology: gpu:2\ntags: [mirrored]\n",
    ),
    "en",
)
_KOREAN_HEADER = "title: 수업\nsummary: 가르친다.\n"
_TWO = "```{code-cell} python\n:name: two\n```\n"


def _translated(body: str, header: str = _KOREAN_HEADER) -> list[str]:
    return [text for _, text in errors_in(parse_document(lesson_text(body, header), "ko", ENGLISH))]


def test_an_empty_cell_of_a_translation_takes_everything_from_the_english_one() -> None:
    document = parse_document(
        lesson_text(f"```{{code-cell}} python\n:name: one\n```\n{_TWO}", _KOREAN_HEADER), "ko", ENGLISH
    )

    assert document.faults == ()
    assert [cell.code for cell in document.cells] == [cell.code for cell in ENGLISH.cells]
    assert (document.cells[0].title, document.cells[0].topology) == ("First", "cpu")
    assert (document.header.title, document.header.topology, document.header.tags) == ("수업", "gpu:2", ("mirrored",))


def test_a_translation_may_change_comments_and_strings() -> None:
    one = '```{code-cell} python\n:name: one\n:caption: 처음\n\n# 인사\nn = 4\nprint(f"복제본 {n}개")\n```\n'

    assert _translated(one + _TWO) == []


@pytest.mark.parametrize(
    "code",
    [
        'n = 5\nprint(f"{n}")',
        'n = 4\nprint(f"{n + 1}")',
        'print(f"{4}")',
        'n = 4\nprint(f"{n}")\nprint(1)',
        "n = 4\n%time f",
    ],
)
def test_a_translation_may_not_change_what_the_code_does(code: str) -> None:
    one = f"```{{code-cell}} python\n:name: one\n\n{code}\n```\n"

    assert any(
        "the code of 'one' differs from the English cell in more than comments" in text
        for text in _translated(one + _TWO)
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (_TWO, "the cell 'one' of the English lesson is missing; add it with an empty body"),
        (
            f"{_TWO}```{{code-cell}} python\n:name: one\n```\n",
            "the cells are in a different order than in the English lesson",
        ),
        (f"{_TWO}{_TWO.replace('two', 'three')}", "the English lesson has no cell 'three'"),
        (
            _TWO.replace("two", "one").replace(":name: one", ":name: one\n:topology: gpu:3") + _TWO,
            "'topology' of 'one' differs",
        ),
        (
            _TWO.replace("two", "one").replace(":name: one", ":name: one\n:expect: n") + _TWO,
            "'expect' of 'one' differs from the English cell; leave it out here",
        ),
    ],
)
def test_the_cells_of_a_translation_are_those_of_the_english_lesson(body: str, words: str) -> None:
    assert any(words in text for text in _translated(body)), _translated(body)


def test_the_header_of_a_translation_may_not_contradict() -> None:
    faults = _translated(f"```{{code-cell}} python\n:name: one\n```\n{_TWO}", _KOREAN_HEADER + "topology: cpu\n")

    assert faults == ["'topology' differs from the English lesson; leave it out here"]
