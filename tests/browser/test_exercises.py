"""Exercises as a learner meets them: guess, fail with a diagnosis, take a hint, pass, and read the solution."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.async_api import Locator, Page, Route, expect

from app.accounts.models import Role
from app.db import Database, now
from app.groups.models import Group, GroupMember
from tests.browser.accessibility import PHONE, assert_accessible_everywhere, assert_fits
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.loopback import Loopback
from tests.browser.signed_in_visitors import admit_signed_in
from tests.browser.site import Site
from tests.factories.exercises import write_exercise_lesson
from tests.factories.long_cases import long_only

LESSON = "/en/courses/course/one"
RIGHT = "def mean(values):\n    return sum(values) / len(values)\n\n\nprint(mean(DATA))"
WRONG = "def mean(values):\n    print('adding up')\n    return sum(values)"
BESIDE_ITS_LABEL_PX = """field => {
    const words = document.createRange();
    words.selectNode(field.labels[0].firstChild);
    return field.getBoundingClientRect().left - words.getBoundingClientRect().right;
}"""
UNENDING = "import time\n\ntime.sleep(300)"


@pytest.fixture(scope="module")
def site(site: Site, network: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Another site on the same runner. Its one lesson has an exercise, predictions and a quiz."""
    root = tmp_path_factory.mktemp("lessons")
    lesson = write_exercise_lesson(root) / "lesson.md"
    options = ":seconds: 300\n:review: manual"  # for checks that tests stop; only learners in a group are reviewed
    lesson.write_text(lesson.read_text().replace(":seconds: 20", options))
    for file in lesson.parent.glob("checks*"):  # a diagnosis with code in it
        file.write_text(file.read_text().replace("This is the sum,", "This is the `sum`,"))
    with Site(network=network, runner=site, lessons_dir=str(root)) as own:
        yield own


class Exercise(CellPageObject):
    """The cell of an exercise with its checks."""

    def __init__(self, page: Page, name: str = "mean") -> None:
        super().__init__(page, name)
        self.panel = page.locator(f"#exercise-{name}")
        self.line = self.panel.locator(".exercise-status")
        self.rows = self.root.locator(".result .output .row")

    async def judged(self, line: str) -> None:
        """Wait for this verdict, and for the panel that comes with it."""
        await expect(self.line).to_have_text(line, timeout=60_000)
        await expect(self.panel).not_to_have_attribute("data-at-work", "")

    def check(self, name: str) -> Locator:
        return self.panel.locator(f'.check[data-check="{name}"]')


async def height_of(place: Locator) -> float:
    box = await place.bounding_box()
    assert box is not None
    return round(box["height"])


async def test_a_learner_fails_with_a_diagnosis_takes_a_hint_passes_and_reads_the_solution(
    hall: VisitorFactory,
) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise = Exercise(page)
    mean, one = exercise.check("It is the mean"), exercise.check("It takes one value")
    await exercise.write(WRONG)

    await exercise.panel.get_by_role("button", name="Check").click()

    await exercise.judged("1 of 2 checks passed")
    await expect(mean).to_have_attribute("data-outcome", "failed")
    await expect(mean).to_contain_text("This is the sum, not the mean.")
    await expect(mean.locator("code")).to_have_text("sum")
    await expect(mean).to_contain_text("Not passed")
    await expect(one).to_have_attribute("data-outcome", "passed")
    await expect(exercise.panel.locator(".exercise-output")).to_contain_text("adding up")
    await expect(exercise.panel).to_contain_text("after 2 more failed tries")

    await mean.get_by_role("button", name="Show a hint").click()
    await expect(mean.get_by_text("Divide by what?")).to_be_visible()
    await expect(mean.get_by_text("By the number of values.")).to_have_count(0)
    await mean.get_by_role("button", name="Next hint").click()
    await expect(mean.get_by_text("By the number of values.")).to_be_visible()
    await expect(mean.get_by_role("button")).to_have_count(0)

    await exercise.write(RIGHT)
    await exercise.panel.get_by_role("button", name="Check").click()

    await exercise.judged("2 of 2 checks passed")
    await expect(exercise.panel).to_contain_text("You have passed this exercise.")
    await expect(mean.get_by_text("Divide by what?")).to_be_visible()
    await expect(page.locator("#progress-header-button")).to_contain_text("XP")
    await exercise.panel.get_by_role("button", name="Show the solution").click()
    await expect(exercise.panel.locator(".solution")).to_contain_text("SOLVED_BY_THE_AUTHOR")
    await expect(exercise.panel.locator(".solution .added")).not_to_have_count(0)

    await page.reload()
    await expect(exercise.line).to_have_text("2 of 2 checks passed")
    await exercise.panel.get_by_text("Your tries").click()
    await exercise.panel.get_by_role("button", name="Not passed").click()
    await exercise.panel.get_by_role("button", name="Put this code into the cell").click()
    assert await exercise.code() == WRONG


@pytest.mark.long
async def test_an_instructor_reviews_what_has_passed_line_by_line_with_the_keyboard_alone(hall: VisitorFactory) -> None:
    ada, learner = await admit_signed_in(hall, "Ada Byron")
    grace, instructor = await admit_signed_in(hall, "Grace Hopper", Role.instructor)
    group = secrets.token_hex(16)
    db = Database(ada.site.database)
    async with db.writing() as session:
        session.add(Group(id=group, name="Autumn", course="course", time_zone="UTC", created_at=now()))
        await session.flush()
        for account, role in ((learner, "learner"), (instructor, "instructor")):
            row = {"group_id": group, "account_id": account.id, "role": role, "joined_at": now()}
            session.add(GroupMember(**row, accepts_reminders=False, note=""))
    await db.close()
    page, desk = await ada.open(LESSON), await grace.page()
    exercise = Exercise(page)
    await expect(exercise.panel).to_contain_text("Your instructors review this exercise.")
    await exercise.write(RIGHT)
    await exercise.panel.get_by_role("button", name="Check").click()
    await exercise.judged("2 of 2 checks passed")
    await expect(exercise.panel).not_to_contain_text("You have passed this exercise.")
    await exercise.panel.get_by_role("button", name="Ask for a review").click()
    await expect(exercise.panel.get_by_role("status")).to_contain_text("Your code is waiting for a review.")
    await expect(exercise.panel.locator(".review-place")).to_be_focused()
    await assert_accessible_everywhere(page, "an exercise that waits for a review")

    await desk.goto(grace.site.url(f"/en/groups/{group}/reviews"))
    await assert_accessible_everywhere(desk, "the queue of reviews")
    await desk.get_by_role("link", name="Your turn").click()
    await desk.get_by_role("radio", name="Line 1", exact=True).focus()
    await desk.keyboard.press("ArrowDown")
    await expect(desk.get_by_role("radio", name="Line 2", exact=True)).to_be_checked()
    await desk.get_by_label("Comment on the chosen line").focus()
    await desk.keyboard.type("What about an *empty* list?")
    await desk.keyboard.press("Tab")
    await desk.keyboard.press("Enter")
    await expect(desk.get_by_role("article", name="Comment on line 2")).to_contain_text("What about an empty list?")
    await assert_accessible_everywhere(desk, "a review")
    await desk.get_by_label("Remark on the whole").fill("Nearly there.")
    await desk.get_by_label("Comment on the chosen line").fill("Spare me.")
    await desk.get_by_role("radio", name="Line 1", exact=True).press("Space")
    await desk.keyboard.press("Enter")
    spare = desk.get_by_role("article", name="Comment on line 1")
    await expect(spare).to_contain_text("Spare me.")
    await spare.get_by_role("button", name="Remove").press("Enter")
    await expect(spare).to_have_count(0)
    await expect(desk.get_by_label("Remark on the whole")).to_have_value("Nearly there.")
    await desk.get_by_role("button", name="Request changes").click()
    await expect(desk.get_by_text("The learner was asked for changes.")).to_be_visible()

    await page.reload()
    await expect(exercise.panel).to_contain_text("Grace Hopper asks for changes.")
    await exercise.panel.get_by_role("button", name="Show the comments").click()
    await expect(exercise.panel.get_by_role("article", name="Comment on line 2")).to_contain_text("an empty list?")
    await assert_accessible_everywhere(page, "an exercise with comments on its code")


async def test_a_cell_asks_for_a_guess_before_it_runs_and_shows_it_beside_the_result(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "last")
    number, printed = page.locator("#prediction-which-number"), page.locator("#prediction-printed")
    run_all = page.get_by_role("button", name="Stop after this cell")
    await page.get_by_role("button", name="Run all cells").click()

    await expect(number.get_by_label("Your guess")).to_be_focused()
    assert await number.get_by_label("Your guess").evaluate(BESIDE_ITS_LABEL_PX) >= 7  # its focus ring takes 4.5
    why = "First predict what “Last” will show, or skip the prediction. Then it runs, and so do the cells after it."
    await expect(number.get_by_role("status")).to_have_text(why)
    await expect(run_all).to_have_attribute("aria-pressed", "true")
    await run_all.click()
    await cell.run()
    await expect(number.get_by_role("status")).to_have_text(why.partition(" Then")[0])
    await page.get_by_role("button", name="Run all cells").click()
    await expect(number.get_by_role("status")).to_have_text(why)
    await number.get_by_label("Your guess").fill("forty")
    await page.keyboard.press("Enter")
    await expect(number.get_by_text("Enter a number")).to_be_visible()
    await number.get_by_label("Your guess").fill("40.6")
    await page.keyboard.press("Enter")
    await expect(number.get_by_text("Run the cell to see it.")).to_be_visible()

    await expect(printed.get_by_label("Your guess")).to_be_focused()
    await expect(printed.get_by_role("status")).to_have_text(why)
    await printed.get_by_label("Your guess").fill("8")
    await page.keyboard.press("Enter")
    await expect(printed).to_have_attribute("data-state", "waiting")  # each answer moves the page to the next question
    order = page.locator("#prediction-order")
    for step, place in (("Forward", "1"), ("Backward", "2"), ("All-reduce", "3")):
        await order.get_by_label(step).select_option(place)
    await order.get_by_role("button", name="Guess and run").click()
    await expect(order).to_have_attribute("data-state", "waiting")
    await page.locator("#prediction-choice").get_by_role("button", name="Skip and run").click()

    await cell.finished()
    await expect(page.get_by_role("button", name="Run all cells")).to_have_attribute("aria-pressed", "false")
    await expect(number).to_contain_text("You guessed right.")
    await expect(printed).to_contain_text("The run showed something else.")
    await expect(order).to_contain_text("Forward → Backward → All-reduce")
    await expect(page.locator("#prediction-choice")).to_contain_text("skipped")

    await page.reload()
    await expect(number).to_contain_text("You guessed right.")
    await cell.run()
    await cell.finished()


async def test_a_quiz_says_of_each_choice_why_and_may_be_answered_again(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    quiz = page.get_by_role("group", name="What divides?")
    await quiz.get_by_label("The number of replicas").check()
    await page.get_by_role("button", name="Answer").click()
    await expect(quiz).to_contain_text("feedback-only-for-answers: replicas.")

    await quiz.get_by_label("The number of examples").check()
    await page.get_by_role("button", name="Answer again").click()

    await expect(quiz).to_contain_text("feedback-only-for-answers: right.")
    await expect(page.locator("#quiz-what-divides")).to_contain_text("Correct.")
    await page.reload()
    await expect(quiz.get_by_label("The number of examples")).to_be_checked()


async def test_a_reload_keeps_the_space_of_checks_and_answers(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise, quiz, order = Exercise(page), page.locator("#quiz-what-divides"), page.locator("#prediction-order")
    await exercise.write(WRONG)
    await exercise.panel.get_by_role("button", name="Check").click()
    await exercise.judged("1 of 2 checks passed")
    await exercise.check("It is the mean").get_by_role("button", name="Show a hint").click()
    await expect(exercise.panel).to_contain_text("Divide by what?")
    await quiz.get_by_label("The number of replicas").check()
    await quiz.get_by_role("button", name="Answer").click()
    await expect(quiz).to_have_attribute("data-state", "wrong")
    await order.get_by_role("button", name="Skip and run").click()
    await expect(order).not_to_have_attribute("data-state", "open")
    body = exercise.panel.locator(".exercise-body")
    places = {"mean": body, "quiz": quiz, "order": order}
    heights = {name: await height_of(place) for name, place in places.items()}
    await page.route("**/work", lambda _route: None)  # it never answers

    await page.reload()

    await expect(body).not_to_have_attribute("data-passed", "no")
    assert {name: await height_of(place) for name, place in places.items()} == heights


async def test_a_question_without_its_answer_has_the_height_of_its_form_after_a_reload(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    quiz = page.locator("#quiz-what-divides")
    height = await height_of(quiz)
    await quiz.get_by_label("The number of replicas").check()
    await quiz.get_by_role("button", name="Answer").click()
    await expect(quiz).to_have_attribute("data-state", "wrong")
    assert await height_of(quiz) != height
    await page.route("**/work", lambda route: route.fulfill(body=""))  # as after signing out

    await page.reload()

    await expect(page.locator("html[data-work-shown]")).to_be_attached()
    assert await height_of(quiz) == height


async def test_an_exercise_is_done_by_keyboard_alone(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise = Exercise(page)
    await exercise.root.locator("pre.code").focus()
    await expect(exercise.editor).to_be_focused()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(WRONG)
    await page.keyboard.press("Alt+Enter")
    await exercise.judged("1 of 2 checks passed")
    await expect(page.locator("#announcements")).to_contain_text("This is the sum, not the mean.")
    assert await exercise.code() == WRONG

    hint = exercise.panel.get_by_role("button", name="Show a hint")
    await hint.first.focus()
    await page.keyboard.press("Enter")
    await expect(exercise.panel.get_by_text("Divide by what?")).to_be_visible()
    await expect(exercise.panel.get_by_role("button", name="Next hint")).to_be_focused()

    await exercise.editor.focus()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(RIGHT)
    await page.keyboard.press("Alt+Enter")
    await exercise.judged("2 of 2 checks passed")
    await expect(exercise.editor).to_be_focused()


async def test_a_page_that_is_reloaded_goes_on_showing_the_judgement(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise = Exercise(page)
    await exercise.write(UNENDING)
    async with page.expect_response(lambda response: response.url.endswith("/submissions")):
        await exercise.panel.get_by_role("button", name="Check").click()
    await expect(exercise.line).to_have_text("Checking")

    await page.reload()

    await expect(exercise.line).to_have_text("Checking")
    await exercise.panel.get_by_role("button", name="Stop checking").click()
    await exercise.judged("The check did not finish. It does not count as a try.")


async def test_a_check_that_is_stopped_is_no_try(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise = Exercise(page)
    await exercise.write(UNENDING)
    await exercise.panel.get_by_role("button", name="Check").click()
    await exercise.panel.get_by_role("button", name="Stop checking").click()

    await exercise.judged("The check did not finish. It does not count as a try.")
    await expect(exercise.panel).to_contain_text("after 3 more failed tries")


async def test_a_question_shows_why_an_answer_has_to_wait(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append("429 (Too Many Requests)")
    page = await visitor.open(LESSON)
    quiz = page.locator("#quiz-what-divides")

    async def refuse(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, status=429, body=(await answer.text()).replace("Not quite", "Wait"))

    await page.route("**/quizzes/*", refuse)
    await quiz.get_by_label("The number of replicas").check()
    await quiz.get_by_role("button", name="Answer").click()

    await expect(quiz.get_by_role("status")).to_have_text("Wait. Try again.")
    await expect(quiz.get_by_role("button", name="Answer again")).to_be_visible()


async def test_predictions_and_a_quiz_are_answered_by_keyboard_alone(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    quiz = page.locator("#quiz-what-divides")
    await quiz.get_by_label("The number of replicas").focus()
    await page.keyboard.press("Space")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(quiz.get_by_text("feedback-only-for-answers: replicas.")).to_be_visible()
    await expect(quiz.get_by_role("status")).to_have_text("Not quite. Try again.")
    await expect(quiz.get_by_role("button", name="Answer again")).to_be_focused()
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(quiz.get_by_text("feedback-only-for-answers: right.")).to_be_visible()

    cell = CellPageObject(page, "last")
    await cell.button("run").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#prediction-which-number").get_by_label("Your guess")).to_be_focused()
    why = page.locator("#prediction-which-number").get_by_role("status")
    await expect(why).to_have_text("First predict what “Last” will show, or skip the prediction.")
    await page.keyboard.type("41")
    await page.keyboard.press("Enter")
    await expect(page.locator("#prediction-printed").get_by_label("Your guess")).to_be_focused()
    await page.keyboard.type("7")
    await page.keyboard.press("Enter")
    await expect(page.locator("#prediction-order select").first).to_be_focused()
    for place in ("2", "1", "3"):
        await page.keyboard.type(place)
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("#prediction-choice input").first).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(page.locator("#prediction-choice").get_by_role("button", name="Skip and run")).to_be_focused()
    await page.keyboard.press("Enter")

    await cell.finished()
    await expect(page.locator("#prediction-printed")).to_contain_text("You guessed right.")
    await expect(page.locator("#prediction-order")).to_contain_text("Forward → All-reduce → Backward")


@dataclass(frozen=True)
class Words:
    """What a learner reads and presses."""

    guess: str
    guess_and_run: str
    skip: str
    replicas: str
    answer: str
    wrong: str
    check: str
    verdict: tuple[str, str]
    mistake: str
    hint: str
    hint_text: str
    solution: str


KOREAN = Words(
    guess="예측",
    guess_and_run="예측하고 실행",
    skip="건너뛰고 실행",
    replicas="복제본 수",
    answer="답하기",
    wrong="아쉽습니다. 다시 답해 보세요.",
    check="확인",
    verdict=("검사 2개 중 1개 통과", "검사 2개 중 2개 통과"),
    mistake="평균이 아니라 합계입니다.",
    hint="힌트 보기",
    hint_text="무엇으로 나눌까요?",
    solution="풀이 보기",
)
CHINESE = Words(  # the lesson has no translation: its own words are English
    guess="你的预测",
    guess_and_run="预测并运行",
    skip="跳过并运行",
    replicas="The number of replicas",
    answer="作答",
    wrong="不太对，再试一次。",
    check="检查",
    verdict=("2 项检查中通过 1 项", "2 项检查中通过 2 项"),
    mistake="This is the sum, not the mean.",
    hint="显示提示",
    hint_text="Divide by what?",
    solution="显示解答",
)


@pytest.mark.long
@pytest.mark.parametrize(("language", "words"), [("ko", KOREAN), ("zh", CHINESE)])
async def test_a_whole_exercise_fits_a_phone_in_another_language(
    hall: VisitorFactory, language: str, words: Words
) -> None:
    page = await (await hall.admit(width=360, height=800)).open(f"/{language}/courses/course/one")
    quiz, number = page.locator("#quiz-what-divides"), page.locator("#prediction-which-number")
    await quiz.get_by_label(words.replicas).check()
    await quiz.get_by_role("button", name=words.answer, exact=True).click()
    await expect(quiz).to_contain_text(words.wrong)
    await number.get_by_label(words.guess).fill("41")
    await number.get_by_role("button", name=words.guess_and_run).click()
    for name in ("printed", "order", "choice"):
        await page.locator(f"#prediction-{name}").get_by_role("button", name=words.skip).click()
    await CellPageObject(page, "last").finished()
    await assert_fits(page, "a prediction")

    exercise = Exercise(page)
    await exercise.write(WRONG)
    await exercise.panel.get_by_role("button", name=words.check, exact=True).click()
    await exercise.judged(words.verdict[0])
    await expect(exercise.check("It is the mean")).to_contain_text(words.mistake)
    await exercise.check("It is the mean").get_by_role("button", name=words.hint).click()
    await expect(exercise.panel.get_by_text(words.hint_text)).to_be_visible()
    await assert_fits(page, "a failed exercise")

    await exercise.write(RIGHT)
    await exercise.panel.get_by_role("button", name=words.check, exact=True).click()
    await exercise.judged(words.verdict[1])
    await exercise.panel.get_by_role("button", name=words.solution).click()
    await expect(exercise.panel.locator(".solution")).to_be_visible()
    await assert_fits(page, "a solution")


async def test_everything_fits_and_everybody_can_use_it(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    for name in long_only("exercises untouched"):  # what was failed below has all of it, and more
        await assert_accessible_everywhere(page, name)
    exercise = Exercise(page)
    await exercise.write(WRONG)
    await exercise.panel.get_by_role("button", name="Check").click()
    await exercise.judged("1 of 2 checks passed")
    await exercise.check("It is the mean").get_by_role("button", name="Show a hint").click()
    await exercise.panel.get_by_text("Your tries").click()
    await exercise.panel.get_by_role("button", name="Not passed").click()
    await expect(exercise.panel.get_by_role("button", name="Put this code into the cell")).to_be_visible()
    quiz = page.locator("#quiz-what-divides")
    await quiz.get_by_label("The number of replicas").check()
    await quiz.get_by_role("button", name="Answer").click()
    await expect(quiz).to_contain_text("Not quite.")
    await page.locator("#prediction-which-number").get_by_label("Your guess").fill("x")
    await page.locator("#prediction-which-number").get_by_role("button", name="Guess and run").click()
    await expect(page.get_by_text("Enter a number")).to_be_visible()

    await assert_accessible_everywhere(page, "exercises failed")

    await exercise.write(RIGHT)
    await exercise.panel.get_by_role("button", name="Check").click()
    await exercise.judged("2 of 2 checks passed")
    await exercise.panel.get_by_role("button", name="Show the solution").click()
    await expect(exercise.panel.locator(".solution")).to_be_visible()
    await assert_accessible_everywhere(page, "an exercise passed", "#exercise-mean")
    await page.set_viewport_size(PHONE)
    button = await exercise.panel.get_by_role("button", name="Check").bounding_box()
    checks = await exercise.panel.locator(".checks").bounding_box()
    assert button is not None
    assert checks is not None
    assert (button["x"], button["width"]) == pytest.approx((checks["x"], checks["width"]), abs=1), "their edges align"


async def test_results_are_announced_as_they_come_and_then_the_verdict(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise = Exercise(page)
    await page.evaluate("""() => {
        window.announced = [];
        new MutationObserver((changes) => {
            for (const { addedNodes } of changes) for (const { textContent } of addedNodes) announced.push(textContent);
        }).observe(document.getElementById("announcements"), { childList: true });
    }""")
    await exercise.write(WRONG)
    await exercise.panel.get_by_role("button", name="Check").click()
    await exercise.judged("1 of 2 checks passed")

    announced: list[str] = await page.evaluate("announced")
    *results, verdict = [text for text in announced if "passed" in text.lower()]
    assert ". ".join(results) == "It is the mean: Not passed. It takes one value: Passed"
    assert verdict.startswith("Your turn: 1 of 2 checks passed. It is the mean. This is the sum, not the mean.")


async def test_a_panel_that_cannot_be_loaded_does_not_bring_back_the_verdict_before(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append("Failed to load resource")
    page = await visitor.open(LESSON)
    exercise = Exercise(page)
    await exercise.write(WRONG)
    await exercise.panel.get_by_role("button", name="Check").click()
    await exercise.judged("1 of 2 checks passed")
    await page.route("**/exercises/mean?hints=*", lambda route: route.fulfill(status=500))
    await exercise.write(RIGHT)
    await exercise.panel.get_by_role("button", name="Check").click()

    line = "2 of 2 checks passed. Your tries could not be loaded. Reload the page to see them."
    await exercise.judged(line)
    await expect(page.locator("#announcements")).to_contain_text(line)


async def test_a_new_visitor_who_answers_everything_at_once_is_one_visitor(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "last")
    opened = await page.evaluate("performance.timeOrigin")

    await page.locator(".prediction[data-for=last] [name=skip]").evaluate_all("all => all.forEach(one => one.click())")

    await cell.finished()
    assert await page.evaluate("performance.timeOrigin") == opened, "the page was not loaded again"
    await page.reload()
    await cell.finished()
    await expect(page.locator(".prediction[data-for=last][data-state=open]")).to_have_count(0)


async def test_a_run_that_does_not_show_the_result_says_so_and_can_be_repeated(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "last")
    printed = page.locator("#prediction-printed")
    await cell.write("print('nothing')")
    for name in ("which-number", "order", "choice"):
        await page.locator(f"#prediction-{name}").get_by_role("button", name="Skip and run").click()
    await printed.get_by_label("Your guess").fill("7")
    await printed.get_by_role("button", name="Guess and run").click()
    await cell.finished()
    await expect(printed).to_contain_text("The last run did not show the result, perhaps because the code")
    await expect(page.locator("#announcements")).to_contain_text("The last run did not show the result")

    await cell.root.get_by_role("button", name="Reset").click()
    await printed.get_by_role("button", name="Run the cell again").click()

    await expect(cell.button("run")).to_be_focused()
    await expect(printed).to_contain_text("You guessed right.")
