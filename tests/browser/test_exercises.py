"""Exercises as a learner meets them: guess, fail with a diagnosis, take a hint, pass, and read the solution."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.accessibility import assert_accessible_everywhere, assert_fits
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.loopback import Loopback
from tests.browser.site import Site
from tests.factories.exercises import write_exercise_lesson

LESSON = "/en/courses/course/one"
RIGHT = "def mean(values):\n    return sum(values) / len(values)\n\n\nprint(mean(DATA))"
WRONG = "def mean(values):\n    print('adding up')\n    return sum(values)"


@pytest.fixture(scope="module")
def site(network: Loopback, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with one lesson, which has an exercise, predictions and a quiz."""
    root = tmp_path_factory.mktemp("lessons")
    write_exercise_lesson(root)
    with Site(network=network, lessons_dir=str(root)) as site:
        yield site


@pytest_asyncio.fixture(loop_scope="session")
async def hall(chromium: Browser, site: Site) -> AsyncIterator[VisitorFactory]:
    hall = VisitorFactory(chromium, site)
    yield hall
    for visitor in hall.visitors:
        await visitor.context.close()
    assert [text for visitor in hall.visitors for text in visitor.unexpected()] == []
    assert [url for visitor in hall.visitors for url in visitor.elsewhere] == []


class Exercise(CellPageObject):
    """The cell of an exercise with its checks."""

    def __init__(self, page: Page, name: str = "mean") -> None:
        super().__init__(page, name)
        self.panel = page.locator(f"#exercise-{name}")
        self.line = self.panel.locator(".exercise-status")
        self.rows = self.root.locator(".result .output .row")

    def check(self, name: str) -> Locator:
        return self.panel.locator(f'.check[data-check="{name}"]')


async def test_a_learner_fails_with_a_diagnosis_takes_a_hint_passes_and_reads_the_solution(
    hall: VisitorFactory,
) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise = Exercise(page)
    mean, one = exercise.check("It is the mean"), exercise.check("It takes one value")
    await exercise.write(WRONG)

    await exercise.panel.get_by_role("button", name="Check").click()

    await expect(exercise.line).to_have_text("1 of 2 checks passed", timeout=60_000)
    await expect(mean).to_have_attribute("data-outcome", "failed")
    await expect(mean).to_contain_text("This is the sum, not the mean.")
    await expect(mean).to_contain_text("Not passed")
    await expect(one).to_have_attribute("data-outcome", "passed")
    await expect(exercise.panel.locator(".exercise-output")).to_contain_text("adding up")
    await expect(exercise.panel).to_contain_text("after 2 more failed tries")

    await mean.get_by_role("button", name="Hint").click()
    await expect(mean.get_by_text("Divide by what?")).to_be_visible()
    await expect(mean.get_by_text("By the number of values.")).to_have_count(0)
    await mean.get_by_role("button", name="Next hint").click()
    await expect(mean.get_by_text("By the number of values.")).to_be_visible()
    await expect(mean.get_by_role("button")).to_have_count(0)

    await exercise.write(RIGHT)
    await exercise.panel.get_by_role("button", name="Check").click()

    await expect(exercise.line).to_have_text("2 of 2 checks passed", timeout=60_000)
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


async def test_a_cell_asks_for_a_guess_before_it_runs_and_shows_it_beside_the_result(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "last")
    number, printed = page.locator("#prediction-which-number"), page.locator("#prediction-printed")
    await cell.run()

    await expect(number.get_by_label("Your guess")).to_be_focused()
    await expect(page.locator("#announcements")).to_contain_text("First predict what")
    await number.get_by_label("Your guess").fill("forty")
    await page.keyboard.press("Enter")
    await expect(number.get_by_text("Enter a number")).to_be_visible()
    await number.get_by_label("Your guess").fill("40.6")
    await page.keyboard.press("Enter")
    await expect(number.get_by_text("Run the cell to see it.")).to_be_visible()

    await expect(printed.get_by_label("Your guess")).to_be_focused()
    await printed.get_by_label("Your guess").fill("8")
    await page.keyboard.press("Enter")
    order = page.locator("#prediction-order")
    for step, place in (("Forward", "1"), ("Backward", "2"), ("All-reduce", "3")):
        await order.get_by_label(step).select_option(place)
    await order.get_by_role("button", name="Guess and run").click()
    await page.locator("#prediction-choice").get_by_role("button", name="Skip and run").click()

    await cell.finished()
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


async def test_an_exercise_is_done_by_keyboard_alone(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise = Exercise(page)
    await exercise.root.locator("pre.code").focus()
    await expect(exercise.editor).to_be_focused()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(WRONG)
    await page.keyboard.press("Alt+Enter")
    await expect(exercise.line).to_have_text("1 of 2 checks passed", timeout=60_000)
    await expect(page.locator("#announcements")).to_contain_text("This is the sum, not the mean.")
    assert await exercise.code() == WRONG

    hint = exercise.panel.get_by_role("button", name="Hint")
    await hint.first.focus()
    await page.keyboard.press("Enter")
    await expect(exercise.panel.get_by_text("Divide by what?")).to_be_visible()
    await expect(exercise.panel.get_by_role("button", name="Next hint")).to_be_focused()

    await exercise.editor.focus()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(RIGHT)
    await page.keyboard.press("Alt+Enter")
    await expect(exercise.line).to_have_text("2 of 2 checks passed", timeout=60_000)
    await expect(exercise.editor).to_be_focused()


async def test_a_page_that_is_reloaded_goes_on_showing_the_judgement(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise = Exercise(page)
    await exercise.write(f"import time\n\ntime.sleep(4)\n{RIGHT}")
    async with page.expect_response(lambda response: response.url.endswith("/submissions")):
        await exercise.panel.get_by_role("button", name="Check").click()
    await expect(exercise.panel.get_by_role("button", name="Stop checking")).to_be_visible()
    await expect(exercise.line).to_have_text("Checking")

    await page.reload()

    await expect(exercise.line).to_have_text("Checking")
    await expect(exercise.line).to_have_text("2 of 2 checks passed", timeout=60_000)


async def test_a_check_that_is_stopped_is_no_try(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    exercise = Exercise(page)
    await exercise.write("import time\n\ntime.sleep(15)")
    await exercise.panel.get_by_role("button", name="Check").click()
    await exercise.panel.get_by_role("button", name="Stop checking").click()

    await expect(exercise.line).to_have_text("The check did not finish. It does not count as a try.", timeout=60_000)
    await expect(exercise.panel).to_contain_text("after 3 more failed tries")


async def test_checks_in_chinese_speak_chinese_around_an_untranslated_lesson(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=360, height=800)).open("/zh/courses/course/one")
    exercise = Exercise(page)
    await exercise.panel.get_by_role("button", name="检查", exact=True).click()

    await expect(exercise.line).to_have_text("2 项检查中通过 1 项", timeout=60_000)
    await assert_fits(page)


async def test_checks_in_korean_speak_korean(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open("/ko/courses/course/one")
    exercise = Exercise(page)
    await exercise.write(WRONG)
    await exercise.panel.get_by_role("button", name="확인", exact=True).click()

    await expect(exercise.line).to_have_text("체크 2개 중 1개 통과", timeout=60_000)
    await expect(exercise.check("It is the mean")).to_contain_text("평균입니다")
    await expect(exercise.check("It is the mean")).to_contain_text("평균이 아니라 합계입니다.")


async def test_everything_fits_and_everybody_can_use_it(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await assert_accessible_everywhere(page, "exercises untouched")
    exercise = Exercise(page)
    await exercise.write(WRONG)
    await exercise.panel.get_by_role("button", name="Check").click()
    await expect(exercise.line).to_have_text("1 of 2 checks passed", timeout=60_000)
    await exercise.check("It is the mean").get_by_role("button", name="Hint").click()
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
    await expect(exercise.line).to_have_text("2 of 2 checks passed", timeout=60_000)
    await exercise.panel.get_by_role("button", name="Show the solution").click()
    await expect(exercise.panel.locator(".solution")).to_be_visible()
    await assert_accessible_everywhere(page, "exercises passed")
