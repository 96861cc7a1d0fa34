"""Every page: contrast and landmarks, on phone and desktop, with and without scripts, light and fast."""

from __future__ import annotations

import asyncio
import gzip
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Request, Response, Route, expect

from tests.browser.accessibility import (
    PHONE,
    assert_accessible,
    assert_accessible_everywhere,
    assert_fits,
    assert_fits_phones_in,
    assert_readable_in_both_themes,
)
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.loopback import Loopback
from tests.browser.polling import wait_until
from tests.browser.site import Site
from tests.factories.lesson_source import write_lesson, write_toml
from tests.factories.shipped_lessons import LESSONS as SHIPPED

COURSE = "/en/courses/distributed-tensorflow"
LESSON = f"{COURSE}/distribution-strategies"
MISSING = f"{COURSE}/no-such-lesson"
LESSONS = sorted(file.parent.name for file in (SHIPPED / "distributed-tensorflow").glob("*/lesson.md"))
PAGES = {"home": "/en/", "course": COURSE, "lesson": LESSON, "missing": MISSING}
MOST_BYTES = 150_000
NOT_FOUND = "status of 404"


@pytest.mark.parametrize("name", PAGES)
async def test_axe_finds_nothing_on_pages_for_anyone(hall: VisitorFactory, name: str) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append(NOT_FOUND)
    page = await visitor.open(PAGES[name])
    await page.evaluate("document.fonts.ready")

    await assert_accessible_everywhere(page, name)
    for language in ("ko", "zh"):
        await assert_fits_phones_in(language, page, [visitor.site.url(PAGES[name].replace("/en/", f"/{language}/"))])


async def test_axe_finds_nothing_in_an_editor_with_output(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    cell = CellPageObject(page, "strategy")
    await cell.write(
        f"# {'a line that is wider than the page ' * 5}\n"
        "import sys, tensorflow as tf\nprint(*[f'\\x1b[{c}m{c}\\x1b[0m' for c in [*range(30, 38), *range(90, 98)]])\n"
        "print('err', file=sys.stderr)\ntf.reshape(tf.range(16), (3, 5))"
    )
    await cell.run()
    await cell.finished("error")

    await assert_readable_in_both_themes(page, "an editor with output", "#cell-strategy")


async def test_a_cell_shows_the_name_that_the_prose_uses(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=360, height=800)).open(LESSON)

    names = await page.locator(".cell").evaluate_all("cells => cells.map(cell => cell.dataset.cell)")

    assert await page.locator(".cell .cell-name").all_inner_texts() == names
    await expect(page.locator(".cell-name").first).to_be_visible()


@pytest.mark.parametrize("lang", ["en", *(pytest.param(lang, marks=pytest.mark.long) for lang in ("ko", "zh"))])
async def test_the_top_of_a_cell_is_two_lines(hall: VisitorFactory, lang: str) -> None:
    page = await (await hall.admit()).open(LESSON.replace("/en/", f"/{lang}/"))
    for width in (1280, 360):
        await page.set_viewport_size({"width": width, "height": 800})

        button, *links = await page.locator("#cell-strategy .cell-top :is(.machine-button, .discuss)").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect().toJSON())"  # at once: what is above may still move
        )

        assert len(links) == 2
        assert all(button["top"] <= link["top"] < button["bottom"] for link in links), f"at {width} px"
    title, session = await page.locator("#cell-strategy .cell-top :is(.cell-title, .session-open)").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().toJSON())"
    )
    assert abs(title["top"] + title["bottom"] - session["top"] - session["bottom"]) < 4, "one line, on the phone"
    assert session["width"] >= 24


async def test_on_a_phone_the_outline_leads_to_the_course_and_the_playground(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(LESSON)
    await page.locator("button[popovertarget=outline]:visible").first.click()
    links = page.locator(".outline-links a")
    addresses = await links.evaluate_all("links => links.map(link => new URL(link.href).pathname)")
    assert addresses == [COURSE, "/en/playground"]
    await assert_accessible(page, "the outline with links", "#outline")
    await links.last.click()
    await page.wait_for_url("**/en/playground")


async def test_a_published_lesson_says_nothing_of_its_state(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)

    assert [await chip.inner_text() for chip in await page.locator(".meta .status").all()] == []
    await expect(page.locator(".meta")).not_to_contain_text("published")


@pytest.mark.long
@pytest.mark.parametrize("slug", LESSONS)
async def test_axe_finds_nothing_in_any_lesson_and_it_fits_a_phone(hall: VisitorFactory, slug: str) -> None:
    page = await (await hall.admit()).open(f"{COURSE}/{slug}")

    await assert_accessible(page, slug)
    await page.set_viewport_size(PHONE)
    await assert_fits(page, f"{slug} on a phone")


@pytest.mark.long
async def test_the_first_load_of_the_largest_lesson_is_light(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    start = await visitor.open("/en/")
    text = "async path => (await fetch(path)).text()"
    sizes = {slug: len(gzip.compress((await start.evaluate(text, f"{COURSE}/{slug}")).encode())) for slug in LESSONS}
    page = await (await hall.admit()).page()
    responses: list[Response] = []
    page.on("response", lambda response: responses.append(response))

    await page.goto(visitor.site.url(f"{COURSE}/{max(sizes, key=lambda slug: sizes[slug])}"))
    await expect(page.locator("#progress-header-button")).to_be_visible()
    await page.evaluate("document.fonts.ready")
    await page.wait_for_load_state("networkidle")  # alone, it comes too early where the scripts take long to begin

    weights = {response.url: await _weight(response) for response in responses}
    assert any("woff2" in url for url in weights), "the fonts are not among what was measured"
    assert any("/chunks/" in url for url in weights), "chunks have another address"
    early = [url for url in weights if re.search("/chunks/(editor|chart|lanes|pictures|progress-bars)-", url)]
    assert early == [], "they came before anything was touched"
    total = sum(weights.values())
    assert total <= MOST_BYTES, "\n".join(f"{size:8,} {url}" for url, size in weights.items())


async def test_the_first_fonts_are_asked_for_before_the_style_sheet_has_come_and_only_once(
    hall: VisitorFactory,
) -> None:
    visitor = await hall.admit()
    page = await visitor.page()
    fonts: list[str] = []
    first = asyncio.Event()

    def note(request: Request) -> None:
        if request.resource_type == "font":
            fonts.append(request.url)
            first.set()

    async def after_a_font(route: Route) -> None:
        await first.wait()
        await route.continue_()

    page.on("request", note)
    await page.route("**/dist/app.css?*", after_a_font)

    await page.goto(visitor.site.url("/en/"))
    await page.evaluate("document.fonts.ready")

    assert sum("/inter-" in url for url in fonts) == 1
    assert sum("/source-serif-" in url for url in fonts) == 1


async def _weight(response: Response) -> int:
    """Bytes of the body as they came over the wire."""
    body = await response.body() if response.ok and response.status != 204 else b""
    if response.headers.get("content-encoding"):
        return (await response.request.sizes())["responseBodySize"] or len(gzip.compress(body))
    return len(body)


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_reads_without_a_script(hall: VisitorFactory, name: str) -> None:
    visitor = await hall.admit(script=False)
    visitor.tolerated.append(NOT_FOUND)
    page = await visitor.open(PAGES[name])

    await expect(page.locator("h1")).to_be_visible()
    for button in await page.get_by_role("button").all():
        sends = await button.locator("xpath=ancestor::form[@method='post']").count()
        assert sends or await button.get_attribute("popovertarget"), "a button that does nothing"


async def test_a_lesson_without_a_script_shows_its_code_and_says_what_is_missing(hall: VisitorFactory) -> None:
    page = await (await hall.admit(script=False)).open(LESSON)

    await expect(page.locator("#cell-strategy pre.code")).to_contain_text("MirroredStrategy()")
    await expect(page.get_by_text("you need it to run cells")).to_be_visible()


async def test_on_a_phone_the_outline_is_a_sheet_with_or_without_a_script(hall: VisitorFactory) -> None:
    for script in (True, False):
        page = await (await hall.admit(width=360, height=740, script=script)).open(LESSON)
        link = page.locator("#outline").get_by_role("link", name="Scaling the loss")
        await expect(link).to_be_hidden()

        await page.get_by_role("button", name="Outline").click()

        await expect(link).to_be_visible()
        close = page.get_by_role("button", name="Close")
        await page.locator("#outline li").last.scroll_into_view_if_needed()
        await page.locator("#outline").evaluate("outline => (outline.scrollTop = 999)")
        await expect(close).to_be_in_viewport(ratio=1)
        above, lessons = await close.bounding_box(), await page.locator(".outline-inner").bounding_box()
        assert above is not None
        assert lessons is not None
        assert above["y"] + above["height"] <= lessons["y"], "Close lies over no lesson"
        await close.click()
        await expect(link).to_be_hidden()


async def test_on_a_phone_run_stays_within_reach_of_the_thumb(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=360, height=740)).open(LESSON)
    cell = CellPageObject(page, "in-step")
    top = await cell.root.evaluate("element => element.getBoundingClientRect().top + window.scrollY")
    await page.evaluate("top => window.scrollTo(0, top - 300)", top)

    box = await cell.button("run").bounding_box()

    assert box is not None
    assert 740 * 0.6 < box["y"] < 740 - box["height"]
    assert box["height"] >= 44


@pytest.mark.parametrize("width", [390, 1280])
async def test_code_out_of_view_is_not_laid_out_but_has_its_height(hall: VisitorFactory, width: int) -> None:
    page = await (await hall.admit(width=width)).open(f"{COURSE}/script-to-cluster")
    code = page.locator("pre.code")
    laid_out = "[...document.querySelectorAll('pre.code code')].at(-1).checkVisibility({ contentVisibilityAuto: true })"
    heights = "all => all.map((code) => code.offsetHeight)"
    assert not await page.evaluate(laid_out)
    reserved = await code.evaluate_all(heights)

    await code.last.scroll_into_view_if_needed()
    await wait_until(page, laid_out)
    await code.evaluate_all("all => all.forEach((code) => (code.style.contentVisibility = 'visible'))")
    assert await code.evaluate_all(heights) == reserved


async def test_the_language_switch_keeps_the_place(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)

    await page.get_by_role("navigation", name="Language", exact=True).get_by_role("link", name="한국어").click()

    await expect(page).to_have_url(re.compile("/ko/courses/distributed-tensorflow/distribution-strategies$"))
    await expect(page.locator("html")).to_have_attribute("lang", "ko")


@pytest.mark.long
async def test_the_map_says_which_lessons_are_not_translated(
    chromium: Browser, network: Loopback, tmp_path: Path
) -> None:
    folder = write_toml(tmp_path, "one", "two")
    for slug in ("one", "two"):
        write_lesson(folder / slug, "Words.\n")
    write_lesson(folder / "two", "글.\n", name="lesson.ko.md", header="title: 둘째 레슨\nsummary: 요약\n")
    with Site(network=network, runner=False, lessons_dir=str(tmp_path)) as site:
        page = await (visitor := await VisitorFactory(chromium, site).admit()).open("/ko/courses/course")

        stop = page.locator(".lane-stop")
        await expect(stop.filter(has=page.locator("a[href$='/one']")).locator(".lane-language")).to_have_text("English")
        await expect(stop.filter(has=page.locator("a[href$='/two']")).locator(".lane-language")).to_have_count(0)
        await assert_accessible(page, "a course in Korean")
        await visitor.context.close()


async def test_a_chosen_theme_is_there_before_the_first_paint(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await page.get_by_label("Theme").select_option("dark")
    assert await background(page) == "rgb(20, 22, 28)"

    await page.route("**/app.js*", lambda route: route.abort())
    hall.visitors[0].tolerated.append("ERR_FAILED")
    await page.reload()

    assert await background(page) == "rgb(20, 22, 28)"


async def background(page: Page) -> str:
    colour: str = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


async def test_an_unknown_lesson_offers_the_outline(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated.append(NOT_FOUND)
    page = await visitor.open(MISSING)

    outline = page.get_by_role("navigation", name="Course outline")
    await outline.get_by_role("link", name="Distribution strategies").click()

    await expect(page.locator("h1")).to_have_text("Distribution strategies")


@pytest.mark.parametrize(("lang", "style", "weight"), [("en", "italic", "400"), ("ko", "normal", "600")])
async def test_scripts_without_italics_stress_by_weight(
    hall: VisitorFactory, lang: str, style: str, weight: str
) -> None:
    page = await (await hall.admit()).open(LESSON.replace("/en/", f"/{lang}/"))

    shown = await page.evaluate(
        """() => {
            const stressed = document.createElement("em");
            document.querySelector(".prose p").append(stressed);
            const { fontStyle, fontWeight } = getComputedStyle(stressed);
            return [fontStyle, fontWeight];
        }"""
    )

    assert shown == [style, weight]


async def test_motion_is_off_when_asked(hall: VisitorFactory) -> None:
    page = await (await hall.admit(still=True)).open("/en/")

    running = await page.evaluate("document.getAnimations().filter(a => a.playState === 'running').length")

    assert running == 0


async def test_fractions_on_successive_lines_do_not_touch(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(f"{COURSE}/cost-of-collectives")
    formula = page.locator(".prose p > math:has(mfrac)").first

    gap = await formula.evaluate("""(math) => {
        const again = math.cloneNode(true);
        math.after(document.createElement("br"), again);
        const [upper, lower] = [math, again].map((one) => one.querySelector("mfrac").getBoundingClientRect());
        return lower.top - upper.bottom;
    }""")

    assert gap >= 4


async def test_no_line_begins_with_the_punctuation_after_a_formula(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open("/zh/courses/distributed-tensorflow/gradient-by-hand")
    alone = """() => [...document.querySelectorAll(".unbroken")].filter((whole) => {
        const sign = document.createRange();
        sign.selectNodeContents(whole.lastChild);
        return sign.getBoundingClientRect().top > whole.firstChild.getBoundingClientRect().bottom - 2;
    }).length"""
    assert await page.locator(".prose .unbroken").count() >= 5
    for width in range(320, 440, 15):
        await page.set_viewport_size({"width": width, "height": 844})
        assert await page.evaluate(alone) == 0, f"at {width} px"


async def test_a_lesson_prints_without_buttons_and_with_its_answers(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await page.emulate_media(media="print")

    await expect(page.locator("#cell-strategy")).to_be_visible()
    for selector in (".bar", ".outline", ".rail", "#cell-strategy .cell-actions"):
        await expect(page.locator(selector)).to_be_hidden()
    await expect(page.locator(".prose details p").first).to_be_visible()  # nobody can open a fold on paper


async def test_the_switch_of_languages_keeps_the_place(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await expect(page.locator("html.formulas")).to_be_attached()
    await page.wait_for_load_state("networkidle")
    await page.locator("#cell-in-step").evaluate("cell => cell.scrollIntoView()")
    await page.locator(".languages a[lang=ko]").evaluate("link => link.click()")  # Playwright's own scrolls the page
    await expect(page).to_have_url(re.compile(r"/ko/courses/.*#cell-in-step$"))
    await page.goto(page.url.replace("#cell-in-step", "/comments?cell=in-step#new-comment"))
    await page.locator(".foot-languages a[lang=zh]").click()
    await expect(page).to_have_url(re.compile(r"/zh/courses/.*/comments\?cell=in-step#new-comment$"))
