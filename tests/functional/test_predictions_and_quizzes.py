"""Predictions and quizzes: recorded once, awarded once, and shown with only what may be shown by then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select

from app.exercises import quizzes
from app.exercises.models import PredictionAnswer, QuizAnswer
from app.exercises.quizzes import VISITOR_ANSWERS_PER_ADDRESS
from app.lessons.model import CellTag, Lesson
from app.main import create_app
from app.progress.events import PREDICTION_XP, QUIZ_XP
from app.progress.models import LedgerEntry
from app.progress.requirements import LESSON_XP
from app.runs.event_log import run_topic
from app.settings import Settings
from app.web.dependencies import BUS
from tests.factories import judged_lesson
from tests.factories.accounts import signed_in_browser
from tests.factories.browser_client import browser_client, press_run
from tests.factories.course import LESSON
from tests.factories.judged_lesson import FACTOR, SHAPE, add_exercise
from tests.factories.request_statements import statements_of_requests
from tests.factories.scripted_supervisor import ScriptedSupervisor

LESSON_URL = "/en/courses/small/first"
QUIZ_URL = f"{LESSON_URL}/quizzes/which"
PREDICTION_URL = f"{LESSON_URL}/predictions/how-many"


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    app = create_app(settings)
    add_exercise(app)
    async with app.router.lifespan_context(app):
        yield app


async def ledger(app: FastAPI, *kinds: str) -> set[tuple[str, str, int]]:
    async with app.state.db.session() as session:
        entries = await session.scalars(select(LedgerEntry).where(LedgerEntry.kind.in_(kinds)))
        return {(entry.kind, entry.subject, entry.xp) for entry in entries}


async def guess(client: httpx.AsyncClient, number: str) -> str:
    response = await client.post(PREDICTION_URL, data={"guess": number})
    assert response.status_code == 200, response.text
    return response.text


async def run_cell(
    client: httpx.AsyncClient,
    supervisor: ScriptedSupervisor,
    *printed: str,
    code: str = 'print("hello")',
    outcome: str = "ok",
    error: str | None = None,
    **machine: Any,
) -> None:
    run = await press_run(client, code, **machine)
    scripted = await supervisor.run(run["id"])
    await supervisor.emit(scripted, kind="started")
    await supervisor.say(scripted, *printed)
    if error is not None:
        await supervisor.emit(scripted, kind="error", name=error, value="in worker 0: why", frames=[])
    await supervisor.finish(scripted, outcome if error is None else "error")
    await ended(client, run["id"])


async def ended(client: httpx.AsyncClient, run_id: str) -> None:
    """Return once the end of the run is stored."""
    async with asyncio.timeout(20), client.stream("GET", f"/runs/{run_id}/stream") as stream:
        async for _line in stream.aiter_lines():
            pass


async def pass_exercise(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    body = {"code": "x", "key": "k" * 20}
    run = (await client.post(f"{LESSON_URL}/exercises/double/submissions", json=body)).json()
    scripted = await supervisor.run(run["id"])
    for name in (FACTOR, SHAPE):
        await supervisor.emit(scripted, kind="check", name=name, outcome="passed")
    await supervisor.finish(scripted)
    await ended(client, run["id"])


# --- predictions ------------------------------------------------------------------------------------------------------


async def test_the_guess_is_shown_beside_the_result_of_the_next_run(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    assert 'data-state="waiting"' in await guess(client, "16")
    await run_cell(client, supervisor, "each sees 1", "6 of them\n")

    shown = (await client.get(PREDICTION_URL)).text

    assert 'data-state="done"' in shown
    assert "You guessed right." in shown
    assert await ledger(app, "prediction", "foresight") == {
        ("prediction", f"{LESSON}#how-many", PREDICTION_XP),
        ("foresight", f"{LESSON}#how-many", 0),
    }


async def test_only_the_first_guess_counts(app: FastAPI, client: httpx.AsyncClient) -> None:
    await guess(client, "16")
    await guess(client, "17")

    async with app.state.db.session() as session:
        assert [answer.guess for answer in await session.scalars(select(PredictionAnswer))] == ["16"]


async def test_skipping_is_recorded_and_earns_no_xp(app: FastAPI, client: httpx.AsyncClient) -> None:
    shown = (await client.post(PREDICTION_URL, data={"skip": "yes", "guess": "16"})).text

    assert "skipped" in shown
    assert await ledger(app, "prediction") == {("prediction", f"{LESSON}#how-many", 0)}


async def test_what_is_no_guess_comes_back_with_a_sentence_and_is_not_recorded(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    shown = await guess(client, "many")

    assert "Enter a number" in shown
    assert 'data-state="open"' in shown
    assert await ledger(app, "prediction") == set()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({}, "The last run did not show the result."),
        ({"code": "print(2)"}, "perhaps because the code of the cell was changed"),
        ({"outcome": "error"}, "The last run ended with an error before it showed the result."),
        ({"outcome": "interrupted"}, "The last run did not finish"),
        ({"topology": "gpu:2"}, "a run on 4 GPUs, simulated, Keras 3."),
    ],
)
async def test_a_run_that_does_not_give_the_result_says_why(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, more: dict[str, Any], sentence: str
) -> None:
    assert "Run the cell to see it." in await guess(client, "16")
    await run_cell(client, supervisor, "nothing", **more)

    shown = (await client.get(PREDICTION_URL)).text

    assert 'data-state="waiting"' in shown
    assert sentence in shown
    assert 'data-action="run-predicted"' in shown

    await run_cell(client, supervisor, "sees 16 of them")
    assert "You guessed right." in (await client.get(PREDICTION_URL)).text


@pytest.fixture
def stated_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lesson states the result of the prediction, which the cell does not print."""
    monkeypatch.setattr(judged_lesson, "PREDICTION", replace(judged_lesson.PREDICTION, source=None, answer=16.0))


@pytest.mark.usefixtures("stated_result")
async def test_a_run_that_failed_does_not_reveal_a_result_that_the_lesson_states(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await guess(client, "16")
    await run_cell(client, supervisor, outcome="error")
    shown = (await client.get(PREDICTION_URL)).text
    assert "The last run ended with an error before it showed the result." in shown
    assert "You guessed right." not in shown

    await run_cell(client, supervisor)

    assert "You guessed right." in (await client.get(PREDICTION_URL)).text


@pytest.fixture
def raising_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cell of the prediction is to end with an error that it names."""
    with_exercise = judged_lesson.with_exercise

    def with_error(*args: Any, **more: Any) -> Lesson:
        lesson = with_exercise(*args, **more)
        hello, *others = lesson.cells
        hello = replace(hello, tags=frozenset({CellTag.raises_exception}), expect=("UnavailableError",))
        return replace(lesson, cells=(hello, *others))

    monkeypatch.setattr(judged_lesson, "with_exercise", with_error)


@pytest.mark.usefixtures("stated_result", "raising_cell")
@pytest.mark.parametrize("other", ["NameError", None])
async def test_of_a_cell_that_is_to_raise_only_its_own_error_reveals_the_result(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor, other: str | None
) -> None:
    await guess(client, "16")
    await run_cell(client, supervisor, error=other)
    shown = (await client.get(PREDICTION_URL)).text
    assert "The last run did not end with the error that the lesson expects" in shown
    assert "You guessed right." not in shown

    await run_cell(client, supervisor, error="UnavailableError")

    assert "You guessed right." in (await client.get(PREDICTION_URL)).text


async def test_only_the_machine_that_the_cell_names_gives_the_result(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await guess(client, "8")
    await run_cell(client, supervisor, "sees 8 of them", topology="gpu:2")
    assert 'data-state="waiting"' in (await client.get(PREDICTION_URL)).text

    await run_cell(client, supervisor, "sees 16 of them")

    assert "The run showed something else." in (await client.get(PREDICTION_URL)).text
    assert await ledger(app, "foresight") == set()


async def test_a_cell_that_runs_without_an_answer_counts_as_skipped(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await run_cell(client, supervisor, "sees 16 of them")

    shown = await guess(client, "16")

    assert 'data-state="done"' in shown
    assert "skipped" in shown
    assert "You guessed right." not in shown
    assert await ledger(app, "prediction", "foresight") == {("prediction", f"{LESSON}#how-many", 0)}


async def test_a_run_that_never_started_skips_nothing(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    await supervisor.finish(await supervisor.run(run["id"]), "interrupted")
    await ended(client, run["id"])

    assert 'data-state="open"' in (await client.get(PREDICTION_URL)).text


async def test_colors_do_not_hide_the_result(client: httpx.AsyncClient, supervisor: ScriptedSupervisor) -> None:
    await guess(client, "16")
    await run_cell(client, supervisor, "\x1b[1msees \x1b[31m16\x1b[0m of them")

    assert "You guessed right." in (await client.get(PREDICTION_URL)).text


async def test_a_guess_while_the_cell_runs_is_made_with_knowledge(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    run = await press_run(client)
    scripted = await supervisor.run(run["id"])
    await supervisor.emit(scripted, kind="started")
    with BUS.get(app).subscribe(run_topic(run["id"])) as stored:
        while (await client.get(f"/runs/{run['id']}")).json()["state"] != "running":
            await stored.wait(0.1)
    await guess(client, "16")
    await supervisor.finish(scripted)
    await ended(client, run["id"])
    await run_cell(client, supervisor, "sees 16 of them")

    assert "You guessed right." in (await client.get(PREDICTION_URL)).text
    assert await ledger(app, "prediction", "foresight") == {("prediction", f"{LESSON}#how-many", 0)}


async def test_others_are_shown_once_there_is_a_result_and_no_one_of_them_is_named(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    for number in ("8", "8", "16"):
        async with browser_client(app) as other:
            await guess(other, number)
    assert "other learners guessed" not in await guess(client, "16")
    await run_cell(client, supervisor, "sees 64 of them")

    shown = (await client.get(PREDICTION_URL)).text

    assert "What 3 other learners guessed" in shown
    assert "The run showed something else." in shown


async def test_changed_code_that_prints_the_guess_is_not_foresight(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await guess(client, "7")
    await run_cell(client, supervisor, "sees 7 of them", code='print("sees 7 of them")')

    assert "You guessed right." in (await client.get(PREDICTION_URL)).text
    assert await ledger(app, "foresight") == set()


async def test_the_page_without_an_answer_says_nothing_of_others(
    app: FastAPI, client: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    await guess(client, "12345")

    assert "12345" not in (await stranger.get(PREDICTION_URL)).text
    assert "12345" not in (await stranger.get(f"{LESSON_URL}/work")).text


# --- quizzes ----------------------------------------------------------------------------------------------------------


async def test_an_answer_gets_its_own_feedback_and_the_right_one_all(client: httpx.AsyncClient) -> None:
    wrong = (await client.post(QUIZ_URL, data={"choice": "1"})).text
    assert "Feedback of two." in wrong
    assert "Feedback of one." not in wrong
    assert "Try again" in wrong
    assert "Why not the other answers" not in wrong

    right = (await client.post(QUIZ_URL, data={"choice": "0"})).text
    assert "Feedback of one." in right
    assert "Correct." in right
    why_not = right.partition("Why not the other answers</summary>")[2].partition("</details>")[0]
    assert "Feedback of two." in why_not
    assert "Feedback of one." not in why_not


async def test_the_first_try_is_recorded_and_later_ones_cost_nothing(app: FastAPI, client: httpx.AsyncClient) -> None:
    await client.post(QUIZ_URL, data={"choice": "1"})
    await client.post(QUIZ_URL, data={"choice": "0"})

    async with app.state.db.session() as session:
        answer = (await session.scalars(select(QuizAnswer))).one()
    assert (answer.first_choices, answer.first_right, answer.choices, answer.tries) == ("1", False, "0", 2)
    assert await ledger(app, "quiz", "knew") == {("quiz", f"{LESSON}#which", QUIZ_XP)}


@pytest.mark.parametrize("fields", [{}, {"choice": "2"}, {"choice": "x"}, {"choice-0": "on", "choice-1": "on"}])
async def test_an_answer_that_makes_no_sense_is_not_recorded(
    app: FastAPI, client: httpx.AsyncClient, fields: dict[str, str]
) -> None:
    assert "Choose an answer first." in (await client.post(QUIZ_URL, data=fields)).text
    assert await ledger(app, "quiz") == set()


@pytest.mark.parametrize("path", ["quizzes/none", "predictions/none", "quizzes/how-many"])
async def test_what_the_lesson_does_not_ask_cannot_be_answered(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.post(f"{LESSON_URL}/{path}", data={"choice": "0"})).status_code == 404


@pytest.fixture
def allowance(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many visitors of one address may answer a question at once: fewer than on a real site."""
    monkeypatch.setattr(quizzes, "VISITOR_ANSWERS_PER_ADDRESS", replace(VISITOR_ANSWERS_PER_ADDRESS, free_attempts=40))
    return 40


@pytest.mark.usefixtures("allowance", "rate_limit_clock")
@pytest.mark.parametrize(("url", "fields"), [(PREDICTION_URL, {"guess": "8"}), (QUIZ_URL, {"choice": "1"})])
@pytest.mark.parametrize("address", ["203.0.113.9", "192.168.0.9"])
async def test_new_cookies_do_not_multiply_the_answers_of_one_address(
    app: FastAPI, client: httpx.AsyncClient, address: str, url: str, fields: dict[str, str]
) -> None:
    async def answer(cookies: httpx.Cookies | None = None) -> httpx.Response:
        async with browser_client(app, address) as visitor:
            visitor.cookies = cookies or visitor.cookies
            return await visitor.post(url, data=fields)

    answers = [await answer() for _ in range(45)]

    assert [answer.status_code for answer in answers] == [200] * 40 + [429] * 5
    assert 'class="question' in answers[-1].text, "the sentence is at the question"
    assert "Wait " in answers[-1].text
    assert int(answers[-1].headers["retry-after"]) > 0
    assert "hx-trigger" not in answers[-1].headers, "progress has not changed"
    assert await stored_answers(app) == 40
    assert (await answer(answers[0].cookies)).status_code == 200, "a recorded answer can be given again"
    assert (await client.post(url, data=fields)).status_code == 200, "another address has an allowance of its own"
    other = QUIZ_URL if url == PREDICTION_URL else PREDICTION_URL
    async with browser_client(app, address) as visitor:
        assert (await visitor.post(other, data={"choice": "0", "guess": "8"})).status_code == 200, (
            "so has each question"
        )


@pytest.mark.usefixtures("rate_limit_clock")
async def test_an_account_answers_where_visitors_have_used_up_the_allowance(app: FastAPI, allowance: int) -> None:
    for _ in range(allowance):
        async with browser_client(app) as visitor:
            await guess(visitor, "8")
    async with browser_client(app) as visitor, await signed_in_browser(app) as account:
        assert (await visitor.post(PREDICTION_URL, data={"guess": "8"})).status_code == 429
        await guess(account, "8")
        skipped = await visitor.post(PREDICTION_URL, data={"skip": "1"})
        assert skipped.status_code == 200, "otherwise nobody here could run the cell"


async def stored_answers(app: FastAPI) -> int:
    async with app.state.db.session() as session:
        return sum(
            [await session.scalar(select(func.count()).select_from(one)) for one in (PredictionAnswer, QuizAnswer)]
        )


# --- the lesson -------------------------------------------------------------------------------------------------------


async def test_passing_its_exercises_and_answering_its_questions_completes_a_lesson(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await client.post(QUIZ_URL, data={"choice": "1"})
    await client.post(PREDICTION_URL, data={"skip": "yes"})
    assert await ledger(app, "lesson") == set()

    await pass_exercise(client, supervisor)

    assert await ledger(app, "lesson") == {("lesson", LESSON, LESSON_XP)}


async def test_one_answer_brings_all_of_a_learners_work_to_the_page(client: httpx.AsyncClient) -> None:
    await client.post(QUIZ_URL, data={"choice": "0"})
    await guess(client, "3")

    work = (await client.get(f"{LESSON_URL}/work")).text

    for target in ("#exercise-double-body", "#prediction-how-many", "#quiz-which"):
        assert f'hx-target="{target}"' in work


@pytest.mark.parametrize("copies", [2, 5])
async def test_the_work_in_a_lesson_takes_seven_queries_however_much_it_is(
    settings: Settings, supervisor: ScriptedSupervisor, copies: int
) -> None:
    """One identifies the learner, and six load the work."""
    app = create_app(settings)
    add_exercise(app, copies)
    async with app.router.lifespan_context(app), browser_client(app) as client, browser_client(app) as other:
        for number in range(1, copies + 1):
            suffix = f"-{number}" if number > 1 else ""
            body = {"code": "x", "key": f"{number:020}"}
            run = (await client.post(f"{LESSON_URL}/exercises/double{suffix}/submissions", json=body)).json()
            await supervisor.finish(await supervisor.run(run["id"]))
            await ended(client, run["id"])
            for learner in (client, other):
                await learner.post(f"{PREDICTION_URL}{suffix}", data={"guess": "3"})
            await client.post(f"{QUIZ_URL}{suffix}", data={"choice": "0"})
        async with app.state.db.writing() as session:
            for answer in (await session.scalars(select(PredictionAnswer))).all():
                answer.result = None if answer.prediction == "how-many" else "3"
        asked = statements_of_requests(app)

        work = (await client.get(f"{LESSON_URL}/work")).text

    assert work.count("<hx-partial") == 3 * copies
    assert work.count("What 1 other learner guessed") == copies - 1
    assert len(asked) == 7, asked


async def test_the_end_of_a_lesson_says_what_is_left_to_do(client: httpx.AsyncClient) -> None:
    await client.post(QUIZ_URL, data={"choice": "0"})

    end = (await client.get(f"{LESSON_URL}/end")).text

    for words in ("0 of 1 exercise passed", "0 of 1 prediction made", "1 of 1 question answered"):
        assert words in end
    assert 'href="#cell-double"' in end
    assert 'href="#prediction-how-many"' in end
    assert '<li data-done="no" data-end-mark>' not in end, "reading is not what completes this lesson"


async def test_the_outline_counts_exercises(
    app: FastAPI, client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    async def outline() -> tuple[int, int]:
        [state] = (await client.get("/en/progress/outline", params={"course": "small"})).json()["lessons"]
        return state["exercises_done"], state["exercises"]

    assert await outline() == (0, 1)
    await pass_exercise(client, supervisor)
    assert await outline() == (1, 1)


async def test_the_history_names_checks_exercises_and_questions(
    client: httpx.AsyncClient, supervisor: ScriptedSupervisor
) -> None:
    await pass_exercise(client, supervisor)
    await client.post(QUIZ_URL, data={"choice": "0"})
    await guess(client, "3")

    page = (await client.get("/en/achievements")).text

    for words in (FACTOR, "Double it · The first lesson", "Which? · The first lesson", "How many? · The first lesson"):
        assert words in page
