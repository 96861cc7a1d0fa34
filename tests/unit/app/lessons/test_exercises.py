"""Exercises, quizzes, and predictions: what is read, what learners get, and every error with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.lessons.catalog import Catalog
from app.lessons.model import Lesson
from tests.factories.exercises import BODY, CHECKS, KOREAN, KOREAN_CHECKS, SECRETS, WRONG, write_exercise_lesson
from tests.factories.lesson_source import FIRST_LINE, FRONT_MATTER, errors_in_body, write_lesson

HEADER = FRONT_MATTER + "topology: cpu\n"
MARKS = "### BEGIN SOLUTION\n#: x = ...\nx = 1\n### END SOLUTION\n"
EXERCISE = f"```{{code-cell}} python\n:name: mine\n:tags: [exercise]\n\n{MARKS}```\n"
RUN = "```{code-cell} python\n:name: run\n\nprint(7)\n```\n"


def predict(options: str, body: str = "") -> str:
    return f"```{{predict}} How many?\n:name: guess\n:cell: run\n{options}\n{body}```\n\n{RUN}"


def quiz(body: str, name: str = ":name: q\n") -> str:
    return f"```{{quiz}} What?\n{name}\n{body}```\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_exercise_lesson(tmp_path)


def read(folder: Path) -> Catalog:
    catalog = Catalog(folder.parent.parent, quiet=True)
    catalog.reload()
    return catalog


def problems(folder: Path) -> list[str]:
    return [str(problem).removeprefix(f"{folder}/") for problem in read(folder).problems]


def lesson(folder: Path, language: str = "en") -> Lesson:
    return read(folder).lesson("course", "one", language)


def line_of(text: str, body: str = BODY) -> int:
    """The line of the file that contains the text."""
    return FIRST_LINE + 1 + body[: body.index(text)].count("\n")


# --- what is read ----------------------------------------------------------------------------------------------


def test_a_lesson_has_its_exercise_with_checks_task_and_solution(folder: Path) -> None:
    assert problems(folder) == []
    (cell,) = lesson(folder).exercises
    exercise = cell.exercise
    assert exercise is not None
    assert cell.code == "def mean(values):\n    # Divide by what?\n    return sum(values)\n\n\nprint(mean(DATA))"
    assert "SOLVED" not in cell.highlighted
    assert "    return sum(values) / SOLVED_BY_THE_AUTHOR\n" in exercise.solution
    assert "###" not in exercise.solution
    assert "#:" not in exercise.solution
    assert (exercise.needs, exercise.seconds, exercise.xp) == (("make-data",), 20, 25)
    assert exercise.task.startswith('<p class="admonition-title">Exercise: Write the <em>mean</em></p>')
    assert exercise.solution_prose == "<p>Solved as the author did: <strong>divide</strong>.</p>"
    assert [(check.name, check.xp, len(check.hints)) for check in exercise.checks] == [
        ("It is the mean", 15, 2),
        ("It takes one value", 0, 0),
    ]
    assert exercise.checks_source == CHECKS
    assert [(answer.diagnosis, answer.code) for answer in exercise.wrong_answers] == [
        ("the sum, not the mean", WRONG.partition("\n")[2])
    ]


def test_an_exercise_says_whether_instructors_review_it(folder: Path) -> None:
    write_lesson(folder, BODY.replace(":xp: 25\n", ":xp: 25\n:review: manual\n"), header=HEADER)
    assert problems(folder) == []
    for language in ("en", "ko"):
        (cell,) = lesson(folder, language).exercises
        assert cell.exercise is not None
        assert cell.exercise.is_reviewed
    write_lesson(folder, BODY, header=HEADER)
    (cell,) = lesson(folder).exercises
    assert cell.exercise is not None
    assert not cell.exercise.is_reviewed


def test_a_lesson_has_its_quizzes_and_predictions_where_they_are_written(folder: Path) -> None:
    made = lesson(folder)
    kinds = [block.block_kind for block in made.blocks]
    assert kinds == ["cell", "cell", "quiz", *["prediction"] * 4, "cell"]
    (quiz,) = made.quizzes
    assert (quiz.question, quiz.several, quiz.line) == ("What <em>divides</em>?", False, line_of("````{quiz}"))
    assert "Think of a batch." in quiz.prose
    assert [(choice.html, choice.correct) for choice in quiz.choices] == [
        ("The number of replicas", False),
        ("The number of <code>examples</code>", True),
    ]
    assert quiz.choices[0].feedback == "<p>feedback-only-for-answers: replicas.</p>"
    number, printed, order, choice = made.predictions
    assert (number.kind, number.answer, number.tolerance, number.unit) == ("number", 41.0625, "2.375%", "ms")
    assert (printed.kind, printed.answer, printed.source) == ("number", None, "it prints {number}")
    assert (choice.kind, choice.source, [one.correct for one in choice.choices]) == (
        "choice",
        "it prints",
        [False, True],
    )
    assert [step.text for step in order.choices] == ["Forward", "Backward", "All-reduce"]
    assert sorted(step.text for _, step in order.shuffled) == ["All-reduce", "Backward", "Forward"]
    assert [step for _, step in order.shuffled] != list(order.choices)


@pytest.mark.parametrize("number", range(30))
def test_the_steps_of_an_order_are_never_in_order(number: int) -> None:
    from app.lessons.model import shuffled_keys

    for steps in (["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
        places = [place for _, place in shuffled_keys(f"name-{number}", steps)]
        assert sorted(places) == list(range(len(steps)))
        assert places != sorted(places)


def test_an_order_that_is_sorted_by_its_keys_is_not_the_right_one() -> None:
    """If only the steps that a shuffle left in place were moved, unsorted keys would give the right order away."""
    from app.lessons.model import shuffled_keys

    for number in range(20):
        for steps in (["first", "second"], ["first", "second", "third"]):
            shuffled = shuffled_keys(f"name-{number}", steps)
            assert shuffled == sorted(shuffled)
            assert [place for _, place in shuffled] != sorted(place for _, place in shuffled)
    assert len(shuffled_keys("name", ["same", "same"])) == 2


def test_several_right_choices_may_be_picked_together(folder: Path) -> None:
    write_lesson(folder, BODY.replace("- [ ] The number of replicas", "- [X] The number of replicas"), header=HEADER)
    assert lesson(folder).quizzes[0].several


def test_a_translation_has_its_own_words_and_the_english_answers(folder: Path) -> None:
    made = lesson(folder, "ko")
    exercise = made.exercises[0].exercise
    assert exercise is not None
    assert "연습" in exercise.task or "Exercise" in exercise.task
    assert "<em>평균</em>을 쓰세요" in exercise.task
    assert [(check.name, check.title, check.hints[:1]) for check in exercise.checks] == [
        ("It is the mean", "평균입니다", ("무엇으로 나눌까요?",)),
        ("It takes one value", "값 하나를 받습니다", ()),
    ]
    assert exercise.translations["This is the sum, not the mean."] == "평균이 아니라 합계입니다."
    assert exercise.solution == (lesson(folder).exercises[0].exercise or exercise).solution
    assert [choice.text for choice in made.quizzes[0].choices] == ["복제본 수", "예제 수"]
    number, printed, _, choice = made.predictions
    assert (number.answer, number.tolerance, number.unit) == (41.0625, "2.375%", "밀리초")
    assert (printed.source, choice.source) == ("it prints {number}", "it prints")


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_text_that_learners_get_has_no_answers(folder: Path, language: str) -> None:
    made = lesson(folder, language)
    assert not [secret for secret in SECRETS if secret in made.source]
    for words in ("[x]", "BEGIN SOLUTION", "#:", "{solution}", ":expect:", ":answer:", ":from:"):
        assert words not in made.source
    if language == "en":
        assert "    # Divide by what?\n    return sum(values)\n" in made.source
        assert "- [ ] The number of `examples`\n````\n" in made.source
        assert "batch = 4" in made.source


@pytest.mark.parametrize("name", ["checks.py", "checks.ko.toml", "wrong/mean--sum.py"])
def test_the_digest_changes_with_each_file_of_the_exercises(folder: Path, name: str) -> None:
    before = lesson(folder).digest
    path = folder / name
    path.write_text(path.read_text() + "\n# changed\n")
    assert lesson(folder).digest != before


# --- mistakes in the lesson ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        (EXERCISE.replace(MARKS, "x = 1\n"), 5, "the exercise 'mine' marks no solution; put ### BEGIN SOLUTION"),
        (EXERCISE.replace("### END SOLUTION\n", ""), 5, "the solution that begins here has no end"),
        (EXERCISE.replace(":tags: [exercise]\n", ""), 4, "has marks of a solution but is no exercise; add ':tags"),
        (EXERCISE.replace("#: x = ...", "#: x ="), 5, "what learners get of 'mine' is not Python: line 1 of it"),
        (EXERCISE.replace("x = 1", "x ="), 7, "the cell 'mine' is not Python"),
        (EXERCISE.replace("#: x = ...", "#: x = 1"), 5, "learners get the solution of 'mine'"),
        (EXERCISE.replace("[exercise]", "[exercise, skip-execution]"), 1, "an exercise cannot have the tag skip-exec"),
        (EXERCISE.replace("\n\n", "\n:needs: [mine]\n\n"), 4, "the exercise 'mine' needs itself"),
        (EXERCISE.replace("\n\n", "\n:needs: [run]\n\n"), 4, "needs 'run', which is not a cell; no cell comes"),
        (EXERCISE.replace("\n\n", "\n:needs: [run]\n\n") + RUN, 4, "needs 'run', which comes later; move that cell"),
        (EXERCISE + EXERCISE.replace("mine\n", "next\n:needs: [mine]\n"), 12, "needs the exercise 'mine', which learn"),
        (
            RUN.replace("\n\n", "\n:tags: [raises-exception]\n\n") + EXERCISE.replace("\n\n", "\n:needs: [run]\n\n"),
            10,
            "needs 'run', which does not run to its end",
        ),
        (EXERCISE.replace("\n\n", "\n:needs: run\n\n"), 4, "'needs' must be a list of cells; write it as [make-data"),
        (EXERCISE.replace("\n\n", "\n:needs: [run, run]\n\n"), 4, "'needs' names the cell 'run' twice; keep one"),
        (EXERCISE.replace("\n\n", "\n:seconds: 301\n\n"), 4, "'seconds' must be a whole number from 1 to 300"),
        (EXERCISE.replace("\n\n", "\n:xp: -1\n\n"), 4, "'xp' must be a whole number from 0 to 100"),
        (EXERCISE.replace("\n\n", "\n:review: peer\n\n"), 4, "'review' must be 'manual': instructors review"),
        (RUN.replace("\n\n", "\n:review: manual\n\n"), 3, "'review' is for exercises; add"),
        (RUN.replace("\n\n", "\n:xp: 5\n\n"), 3, "'xp' is for exercises; add ':tags: [exercise]', or remove it"),
        (
            f"```{{exercise}} Title\n:label: run\n\nDo.\n```\n\n{RUN}",
            1,
            "{exercise} is for 'run', which is not an exercise; no cell has the tag exercise",
        ),
        (f"```{{exercise}} Title\n\nDo.\n```\n\n{EXERCISE}", 1, "this {exercise} names no cell; add ':label: name'"),
        (f"{EXERCISE}\n```{{exercise}} Title\n:label: mine\n\nDo.\n```\n", 11, "comes after its cell 'mine'; move it"),
        (f"{EXERCISE}\n```{{solution}}\nDo.\n```\n", 11, "{solution} needs the name of the exercise's cell"),
        (f"{EXERCISE}\n```{{solution}} mime\nDo.\n```\n", 11, "which is not an exercise; use one of mine"),
        (f"{EXERCISE}\n" + "```{solution} mine\nDo.\n```\n" * 2, 14, "'mine' already has an {solution} on line 17"),
        ("> ```{quiz} What?\n> :name: q\n>\n> - [x] a\n> - [ ] b\n> ```\n", 1, "{quiz} cannot be inside another block"),
        (f"{EXERCISE}\n```{{solution}} mine\n## Heading\n```\n", 12, "a heading cannot be inside {solution}"),
        (f"{EXERCISE}\n```{{solution}} mine\nDo[^a].\n```\n\n[^a]: Note.\n", 12, "a footnote cannot be inside"),
    ],
)
def test_a_mistake_in_an_exercise_has_its_line(body: str, line: int, words: str) -> None:
    found = errors_in_body(body)
    assert [number for number, text in found if words in text] == [line], found


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        (quiz("- [x] a\n- [ ] b\n", name=""), 1, "this {quiz} has no name; add ':name: what-it-asks'"),
        (quiz("- [x] a\n- [ ] b\n", name=":name: A b\n"), 2, "the name 'A b' is not valid"),
        (quiz("- a\n- b\n"), 1, "the quiz 'q' has no choices; end it with a list of '- [x] right'"),
        (quiz("Words only.\n"), 1, "the quiz 'q' has no choices"),
        (quiz("- [x] a\n"), 1, "has 1 choices; write 2 to 12"),
        (quiz("- [ ] a\n- [ ] b\n"), 1, "the quiz 'q' has no right choice; mark it with '- [x]'"),
        (quiz("- [x] a\n- b\n"), 5, "this choice of the quiz 'q' has no mark"),
        (quiz("- [x] a\n- [ ] b- [ ] c\n"), 5, "a choice of the quiz 'q' has a mark in its text"),
        (quiz("- [x] a\n- [ ] a\n"), 5, "has the choice of line 10 twice; remove one"),
        (quiz("- [x]\n- [ ] a\n"), 4, "a choice of the quiz 'q' has no text"),
        (quiz("- [x] a\n- [ ] b\n") * 2, 8, "the name 'q' is already used on line 7; choose another one"),
        (RUN + quiz("- [x] a\n- [ ] b\n", name=":name: run\n"), 7, "the name 'run' is already used on line 7"),
        (predict(""), 1, "the predict 'guess' has no answer; add ':answer: 16'"),
        (predict(":answer: 1\n:from: 'a {number}'\n"), 5, "has both 'answer' and 'from'; keep one"),
        (predict(":answer: many\n"), 4, "'answer' must be a number, not 'many'"),
        (predict(":answer: nan\n"), 4, "'answer' must be a number"),
        (predict(":from: 'a number'\n"), 4, "'from' must have {number} once"),
        (predict(":from: '{number} {number}'\n"), 4, "'from' must have {number} once"),
        (predict(":answer: 1\n:tolerance: some\n"), 5, "'tolerance' must be a number or a percentage, as in 5%"),
        (
            predict(":answer: 1\n", "- [x] a\n- [ ] b\n"),
            4,
            "'answer' is for a number, but the predict 'guess' ends with",
        ),
        (predict(":from: 'a {number}'\n", "- [x] a\n- [ ] b\n"), 4, "is a choice, so 'from' cannot have {number}"),
        (predict("", "- [x] a\n- [x] b\n"), 1, "the predict 'guess' has 2 right choices; mark one"),
        (predict("", "1. a\n"), 1, "has 1 choices; write 2 to 12"),
        (predict(":from: a\n", "1. a\n2. b\n"), 4, "'from' is for a number"),
        (predict("", "1. a\n\n   more\n2. b\n"), 5, "a step of the predict 'guess' has feedback"),
        (
            predict(":answer: 1\n").replace(":cell: run\n", ""),
            1,
            "the predict 'guess' names no cell; add ':cell: name'",
        ),
        (
            predict(":answer: 1\n").replace(":cell: run", ":cell: walk"),
            3,
            "by 'walk', which is not a cell; use one of run",
        ),
        (
            RUN + predict(":answer: 1\n").replace(RUN, ""),
            8,
            "by 'run', which comes before it; move the {predict} above",
        ),
        (
            predict(":answer: 1\n").replace("run\n\nprint", "run\n:tags: [skip-execution]\n\nprint"),
            3,
            "by 'run', which learners do not run",
        ),
        (
            predict(":answer: 1\n").replace("run\n\nprint", "run\n:tags: [raises-exception]\n\nprint"),
            3,
            "by 'run', whose error has no name; add ':expect: ValueError' to the cell",
        ),
    ],
)
def test_a_mistake_in_a_question_has_its_line(body: str, line: int, words: str) -> None:
    found = errors_in_body(body)
    assert [number for number, text in found if words in text] == [line], found


# --- mistakes between files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "anchor", "words"),
    [
        ("[x] 예제", "[ ] 예제", "- [x] 예제", "this choice of the quiz 'what-divides' has [x] in the English lesson"),
        ("- [ ] 복제본 수\n\n  feedback-only-for-answers: 복제본.\n", "", "```{quiz}", "has other choices than in Eng"),
        (":unit: 밀리초", ":answer: 42", ":unit:", "'answer' of the predict 'which-number' differs"),
        (
            "```{solution} mean\nSolved as the author did: 나눕니다.\n```\n",
            "",
            "",
            "the {solution} of 'mean' is missing",
        ),
        (":name: order", ":name: reihe", "", "the {predict} 'order' of the English lesson is missing"),
        (
            ":name: order",
            ":name: reihe",
            "```{predict} 무엇이 먼저",
            "the English lesson has no {predict} 'reihe'; add it",
        ),
        (
            ":caption: 여러분 차례\n",
            ":xp: 99\n",
            "```{code-cell} python\n:name: mean",
            "'xp' of 'mean' differs from the",
        ),
    ],
)
def test_a_translation_has_to_agree_with_the_english_lesson(
    folder: Path, before: str, after: str, anchor: str, words: str
) -> None:
    assert before in KOREAN
    write_lesson(folder, KOREAN.replace(before, after, 1), name="lesson.ko.md", header="title: 수업\nsummary: 요약\n")
    line = 5 + KOREAN[: KOREAN.index(anchor)].count("\n") if anchor else 1
    found = problems(folder)
    assert any(problem.startswith(f"lesson.ko.md:{line}: ") and words in problem for problem in found), found


def test_the_code_of_a_translated_exercise_has_the_marks_of_the_english_one(folder: Path) -> None:
    for code in (MARKS, "def mean(values):\n    return sum(values)\n"):
        body = KOREAN.replace(":caption: 여러분 차례\n", f"\n{code}")
        write_lesson(folder, body, name="lesson.ko.md", header="title: 수업\nsummary: 요약\n")
        assert [problem for problem in problems(folder) if "has other marks or code than the English one" in problem]


def test_a_translation_may_say_its_comments_in_its_own_words(folder: Path) -> None:
    code = BODY[BODY.index("def mean") : BODY.index("print(mean(DATA))")]
    mine = code.replace("Divide by what?", "무엇으로?").replace("expected-of", "예상-of")
    body = KOREAN.replace(":caption: 여러분 차례\n", f"\n{mine}print(mean(DATA))\n")
    write_lesson(folder, body, name="lesson.ko.md", header="title: 수업\nsummary: 요약\n")
    assert problems(folder) == []
    assert "# 무엇으로?" in lesson(folder, "ko").exercises[0].code


@pytest.mark.parametrize(
    ("name", "text", "where", "words"),
    [
        ("checks.py", "def f(:\n", "checks.py:1", "this is not Python"),
        ("checks.py", CHECKS.replace("xp=15", "xp=XP"), "checks.py:6", "'xp' of @check must be a literal"),
        (
            "checks.py",
            CHECKS.replace("It takes one value", "It is the mean"),
            "checks.py:16",
            "already has a check named",
        ),
        (
            "checks.py",
            CHECKS.replace('"mean", "It takes', '"mode", "It takes'),
            "checks.py:16",
            "there is no exercise 'mode'",
        ),
        (
            "checks.py",
            "x = 1\n",
            "lesson.md:LINE",
            "the exercise 'mean' has no check; add @check(\"mean\", …) to checks.py",
        ),
        ("checks.ko.toml", KOREAN_CHECKS + "x = 1\n", "checks.ko.toml:7", "must be a string in quotation marks"),
        ("checks.ko.toml", KOREAN_CHECKS + "x =\n", "checks.ko.toml:7", "the file is not TOML"),
        (
            "checks.ko.toml",
            KOREAN_CHECKS + '"Neither" = "아니오"\n',
            "checks.ko.toml:7",
            "checks.py never says 'Neither'",
        ),
        (
            "checks.ko.toml",
            KOREAN_CHECKS.partition("\n")[2],
            "checks.ko.toml:1",
            "checks.py:6 says 'It is the mean', which has",
        ),
        ("wrong/mode--x.py", WRONG, "wrong/mode--x.py:1", "there is no exercise 'mode' in the lesson; use one of mean"),
        ("wrong/mean.py", WRONG, "wrong/mean.py:1", "the name must be CELL--WHAT.py; rename it to mean--what"),
        ("wrong/mean--x.py", "x = 1\n", "wrong/mean--x.py:1", "the first line must be '# diagnosis: …'"),
        ("wrong/mean--x.py", WRONG + "x =\n", "wrong/mean--x.py:5", "this is not Python"),
    ],
)
def test_a_mistake_in_a_file_of_the_exercises_has_its_line(
    folder: Path, name: str, text: str, where: str, words: str
) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    where = where.replace("LINE", str(line_of("```{code-cell} python\n:name: mean\n")))
    found = problems(folder)
    assert any(problem.startswith(f"{where}: ") and words in problem for problem in found), found


def test_a_wrong_answer_without_a_diagnosis_is_one_mistake(folder: Path) -> None:
    (folder / "wrong" / "mean--x.py").write_text("def mean(values):\n    return 0\n")

    (problem,) = problems(folder)

    assert problem.startswith("wrong/mean--x.py:1: the first line must be '# diagnosis: …'")


def test_checks_of_a_translated_lesson_have_to_be_translated(folder: Path) -> None:
    (folder / "checks.ko.toml").unlink()
    sentence = "the file is missing; translate the sentences of checks.py for lesson.ko.md"
    assert problems(folder) == [f"checks.ko.toml:1: {sentence}"]
    exercise = lesson(folder, "ko").exercises[0].exercise
    assert exercise is not None
    assert exercise.checks[0].title == "It is the mean"

    (folder / "lesson.ko.md").unlink()
    assert problems(folder) == []


@pytest.mark.parametrize("text", ["def f(:\n", "x = 1\n", "\x00", "é".encode("latin-1")])
def test_broken_checks_leave_the_last_good_version_up(folder: Path, text: str | bytes) -> None:
    catalog = read(folder)
    good = catalog.lesson("course", "one", "en")
    (folder / "checks.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    catalog.reload()

    assert catalog.problems
    assert catalog.lesson("course", "one", "en") == good
    assert catalog.lesson("course", "one", "ko").exercises

    (folder / "checks.py").write_text(CHECKS)
    catalog.reload()
    assert catalog.problems == ()


def test_checks_are_read_and_never_run(folder: Path) -> None:
    (folder / "checks.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n{CHECKS}")
    assert lesson(folder).exercises
    assert not (folder / "ran").exists()


def test_the_title_of_a_check_is_also_plain_text_without_backticks(tmp_path: Path) -> None:
    folder = write_exercise_lesson(tmp_path)
    checks = folder / "checks.py"
    checks.write_text(checks.read_text().replace("It is the mean", "It is `np.mean`"))
    catalog = Catalog(tmp_path)
    catalog.reload()
    lesson = next(one for one in catalog.every() if one.exercises)
    (cell,) = lesson.exercises
    assert cell.exercise
    titles = [catalog.check_title(lesson.key, cell.name, check.name, "en") for check in cell.exercise.checks]

    assert "It is np.mean" in titles
    assert "It is `np.mean`" in [check.title for check in cell.exercise.checks]
