"""Comments in a real browser: written, answered, changed, deleted, and never lost or duplicated."""

from __future__ import annotations

import secrets

import pytest
from playwright.async_api import Locator, Page, expect

from app.accounts.models import Role
from app.comments.models import Comment, CommentState
from app.db import Database, now
from tests.browser.accessibility import (
    PHONE,
    assert_accessible_everywhere,
    assert_fits,
    assert_fits_phones_in,
    assert_readable_in_both_themes,
)
from tests.browser.conftest import VisitorFactory
from tests.browser.network_control import drop_responses, hold_requests, requests_to, wait_for_requests
from tests.browser.polling import wait_until
from tests.browser.signed_in_visitors import admit_signed_in, switch_account
from tests.factories.xss_payloads import XSS_PAYLOADS

COURSE = "/en/courses/distributed-tensorflow"
LESSON = f"{COURSE}/distribution-strategies"
COMMENTS = f"{LESSON}/comments"
QUESTION = """\
Why is the **loss** divided?

```python
loss = tf.reduce_sum(loss) / 64
```

| a | b |
|---|---|
| 1 | 2 |
"""


async def write(page: Page, text: str) -> Locator:
    """Fill in the form for a new comment and send it; returns its thread."""
    await page.get_by_label("Your comment").fill(text)
    await page.get_by_role("button", name="Send").click()
    thread = page.locator(".thread", has_text=text)
    await expect(thread).to_have_count(1)
    return thread


def unique(words: str) -> str:
    """A text that no other test writes."""
    return f"{words} {secrets.token_hex(4)}"


async def draft_is_stored(page: Page) -> None:
    """Wait until the browser has what was typed: the script that stores it may have come after the text."""
    await wait_until(page, "Object.keys(localStorage).some((key) => key.startsWith('lockstep:comment:'))")


async def test_a_comment_is_written_answered_changed_and_deleted_on_the_lessons_page(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open(LESSON)
    await page.locator("#comments").scroll_into_view_if_needed()
    question = unique("How many replicas?")
    thread = await write(page, question)
    await expect(page.get_by_label("Your comment")).to_have_value("")

    await thread.get_by_role("link", name="Reply").click()
    await expect(page.get_by_label("Your reply")).to_be_focused()
    await page.keyboard.type("Four, with `MirroredStrategy`")
    await page.keyboard.press("Control+Enter")
    reply = thread.locator(".replies .comment")
    await expect(reply).to_contain_text("Four, with MirroredStrategy")
    await expect(thread.get_by_label("Your reply")).to_have_count(0)

    await reply.get_by_text("More").click()
    await reply.get_by_role("link", name="Edit").click()
    await reply.get_by_label("Your comment").fill("Four of them")
    await page.get_by_role("button", name="Save").click()
    await expect(reply).to_contain_text("Four of them")
    await expect(reply).to_contain_text("edited")

    await reply.get_by_text("More").click()
    await reply.get_by_role("link", name="Delete").click()
    await reply.get_by_role("button", name="Delete").click()
    await expect(reply).to_have_count(0)
    await expect(thread).to_contain_text(question)
    await page.reload()
    await page.locator("#comments").scroll_into_view_if_needed()
    await expect(page.locator(".thread", has_text=question)).to_have_count(1)


async def test_the_number_of_comments_beside_them_is_right_without_a_reload(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open(COMMENTS)
    count = page.locator("#comments-count")
    before = int((await count.inner_text()).split()[0].replace(",", ""))
    thread = await write(page, unique("How many?"))
    await expect(count).to_contain_text(f"{before + 1} comment")

    await thread.get_by_text("More").click()
    await thread.get_by_role("link", name="Delete").click()
    await thread.get_by_role("button", name="Delete").click()

    await expect(thread).to_have_count(0)
    await expect(count).to_contain_text(f"{before} comment")


async def test_a_bare_address_is_a_link_that_vouches_for_nothing(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open(COMMENTS)
    address = f"https://example.org/{secrets.token_hex(4)}"

    thread = await write(page, f"Read {address}, please")

    link = thread.get_by_role("link", name=address, exact=True)
    await expect(link).to_have_attribute("href", address)
    await expect(link).to_have_attribute("rel", "nofollow ugc noopener")


async def test_a_double_click_writes_once(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open(COMMENTS)
    text = unique("Only once")
    await page.get_by_label("Your comment").fill(text)

    await page.get_by_role("button", name="Send").dblclick()
    await expect(page.locator(".thread", has_text=text)).to_have_count(1)
    await page.reload()

    await expect(page.locator(".thread", has_text=text)).to_have_count(1)


async def test_the_second_click_of_a_double_click_does_not_send_the_emptied_form(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open(COMMENTS)
    text = unique("Answered between two clicks")
    await page.get_by_label("Your comment").fill(text)
    send = page.get_by_role("button", name="Send")
    await send.click()
    await expect(page.locator(".thread", has_text=text)).to_have_count(1)
    await expect(page.get_by_label("Your comment")).to_have_value("")
    sent = requests_to(page, "/comments", "POST")

    await send.hover()
    await page.mouse.down(click_count=2)
    await page.mouse.up(click_count=2)
    await wait_for_requests(page)

    assert sent == []


async def test_what_was_sent_into_a_network_that_failed_is_sent_again_once(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    ada.tolerated += ["ERR_", "Failed to fetch", "htmx"]
    page = await ada.open(COMMENTS)
    text = unique("Through a tunnel")
    await page.get_by_label("Your comment").fill(text)

    await drop_responses(page, "**/comments")
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_text("Your text is kept")).to_be_visible()
    await expect(page.get_by_label("Your comment")).to_have_value(text)
    await page.unroute("**/comments")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".thread", has_text=text)).to_have_count(1)
    await page.reload()

    await expect(page.locator(".thread", has_text=text)).to_have_count(1)


async def test_a_draft_outlives_a_reload_and_goes_with_the_comment(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open(COMMENTS)
    text = unique("Half a thought")
    await page.get_by_label("Your comment").fill(text)
    await draft_is_stored(page)
    await page.reload()
    await expect(page.get_by_label("Your comment")).to_have_value(text)

    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".thread", has_text=text)).to_have_count(1)
    await page.reload()
    await expect(page.get_by_label("Your comment")).to_have_value("")


async def test_a_draft_is_gone_once_another_account_signs_in_at_the_same_browser(hall: VisitorFactory) -> None:
    stranger = await hall.admit()
    page = await stranger.open(COMMENTS)
    text = unique("Between us")
    await page.get_by_label("Your comment").fill(text)
    await draft_is_stored(page)
    (ada, _), (bob, _) = await admit_signed_in(hall, "Ada Byron"), await admit_signed_in(hall, "Bob Moore")
    for owner, shown in ((ada, text), (bob, ""), (ada, "")):
        await switch_account(stranger, owner)
        await page.goto(stranger.site.url(COMMENTS))
        field = page.get_by_label("Your comment")
        await expect(field).to_have_attribute("aria-autocomplete", "list")  # the script has had its turn
        await expect(field).to_have_value(shown)


async def test_what_a_stranger_types_is_kept_and_the_way_to_sign_in_leads_back(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(LESSON)
    await page.locator("#comments").scroll_into_view_if_needed()
    text = unique("I am new")
    await page.get_by_label("Your comment").fill(text)
    link = page.locator("#comments").get_by_role("link", name="Sign in to comment")
    await expect(link).to_have_attribute("href", f"/en/sign-in?next={LESSON.replace('/', '%2F')}%23comments")
    await draft_is_stored(page)

    await page.reload()
    await page.locator("#comments").scroll_into_view_if_needed()
    await expect(page.get_by_label("Your comment")).to_have_value(text)


async def test_a_name_is_suggested_and_mentioned_by_keyboard(hall: VisitorFactory) -> None:
    bob, account = await admit_signed_in(hall, "Bob Moore")
    await write(await bob.open(COMMENTS), unique("Here I am"))
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open(COMMENTS)
    field = page.get_by_label("Your comment")
    await field.focus()
    await page.keyboard.type(f"Hello @{account.handle[:-1]}")
    option = page.get_by_role("option", name=account.handle)
    await expect(option).to_be_visible()
    box = await field.bounding_box()
    assert box is not None
    await page.set_viewport_size({"width": 1280, "height": int(box["y"] + box["height"]) + 20})  # no room below
    await page.keyboard.press("Backspace")
    await expect(option).to_be_in_viewport(ratio=1)
    await page.keyboard.press("Enter")
    await expect(field).to_have_value(f"Hello @{account.handle} ")
    await page.keyboard.type(unique("you"))
    await page.keyboard.press("Control+Enter")

    link = page.locator(".thread a.mention", has_text=account.handle)
    await expect(link).to_have_attribute("href", f"/learners/{account.handle}/comments")
    await link.click()
    await expect(page.get_by_role("heading", name="Comments by Bob Moore")).to_be_visible()


@pytest.mark.parametrize("height", [844, 440])
async def test_suggested_names_are_within_the_window_and_uncovered_on_a_phone(
    hall: VisitorFactory, height: int
) -> None:
    bob, account = await admit_signed_in(hall, "Bob Moore")
    await write(await bob.open(f"{COMMENTS}?cell=strategy"), unique("Here I am"))
    ada, _ = await admit_signed_in(hall, "Ada Byron", width=390, height=height)
    page = await ada.open(LESSON)
    await page.locator("#cell-strategy [data-discuss]").click()
    field = page.locator("#discuss textarea").first

    await field.press_sequentially(f"Hello @{account.handle}")

    people = page.locator("#discuss").get_by_role("listbox", name="@")
    await expect(people.get_by_role("option", name=account.handle)).to_be_visible()
    await expect(people).to_be_in_viewport(ratio=1)
    uncovered = """list => {
        const { left, right, top, bottom } = list.getBoundingClientRect();
        return [top + 2, bottom - 2].every((y) => list.contains(document.elementFromPoint((left + right) / 2, y)));
    }"""
    assert await people.evaluate(uncovered)


async def test_a_name_typed_before_the_script_has_loaded_is_suggested(hall: VisitorFactory) -> None:
    bob, account = await admit_signed_in(hall, "Bob Moore")
    page = await bob.open(COMMENTS)
    await write(page, unique("Here I am"))
    script = await hold_requests(page, "**/chunks/comments-*")
    await page.reload()
    await page.get_by_label("Your comment").focus()
    await page.keyboard.type(f"Hello @{account.handle}")
    script.set()
    await expect(page.get_by_role("option", name=account.handle)).to_be_visible()


async def test_a_text_that_is_too_long_comes_back_with_the_reason_beside_it(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    ada.tolerated.append("status of 422")
    page = await ada.open(COMMENTS)
    field = page.get_by_label("Your comment")
    await field.evaluate("field => field.removeAttribute('maxlength')")
    await field.fill("x" * 10_001)
    await page.get_by_role("button", name="Send").click()

    await expect(page.locator(".comment-error")).to_contain_text("10,001 characters")
    await expect(field).to_be_focused()
    assert len(await field.input_value()) == 10_001


async def test_reactions_and_the_orders_of_an_instructor_show_at_once(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    text = unique("A question")
    thread = await write(await ada.open(COMMENTS), text)
    address = await thread.locator(".moment").get_attribute("href")
    teacher, _ = await admit_signed_in(hall, "Tea Cher", Role.instructor)
    page = await teacher.open(address or "")
    helpful = page.get_by_role("button", name="Helpful")
    await helpful.focus()
    await page.keyboard.press("Enter")
    await expect(helpful).to_have_attribute("aria-pressed", "true")
    await expect(helpful).to_be_focused()
    await page.get_by_text("More").click()
    await page.get_by_role("button", name="Pin").click()
    await expect(page.locator(".comment-head .chip", has_text="pinned")).to_be_visible()
    await page.get_by_text("More").click()
    await page.get_by_role("link", name="Hide").click()
    await page.get_by_label("Why hide it").fill("A test")
    await page.get_by_role("button", name="Hide").click()
    await expect(page.locator(".comment-note")).to_contain_text("Hidden by an instructor: A test")


async def test_everything_works_without_a_script(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron", script=False)
    page = await ada.open(LESSON)
    await page.get_by_role("link", name="Read and write comments").click()
    text = unique("Without a script")
    await page.get_by_label("Your comment").fill(text)
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".comment-text")).to_contain_text(text)
    await page.get_by_role("link", name="Reply").click()
    await page.get_by_label("Your reply").fill("Indeed")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".replies")).to_contain_text("Indeed")
    await page.go_back()
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".replies .comment")).to_have_count(1)


async def test_no_attack_runs_in_a_browser(hall: VisitorFactory) -> None:
    ada, account = await admit_signed_in(hall, "Ada <img src=x onerror=window.caught=1>")
    from app.comments.markdown import to_html

    db = Database(ada.site.database)
    async with db.writing() as session:
        for number, attack in enumerate(XSS_PAYLOADS):
            session.add(
                Comment(
                    id=f"{number:032x}",
                    lesson="distributed-tensorflow/distribution-strategies",
                    cell="strategy",
                    thread_id=f"{0:032x}" if number else None,
                    author_id=account.id,
                    idempotency_key=str(number),
                    source=attack,
                    html=to_html(attack),
                    renderer_version=1,
                    language="en",
                    state=CommentState.shown,
                    created_at=now(),
                    reply_count=0 if number else len(XSS_PAYLOADS) - 1,
                )
            )
            await session.flush()
    await db.close()
    page = await ada.open(f"/en/comments/{0:032x}")
    await wait_for_requests(page)
    for link in await page.locator(".comment-text a").all():
        href = await link.get_attribute("href")
        assert href is None or href.startswith(("https://", "http://", "mailto:", "/"))

    assert await page.evaluate("window.caught") is None
    assert await page.locator(".comment-text :is(img, script, svg, form, iframe, style, input)").count() == 0


async def test_axe_finds_nothing_in_comments(hall: VisitorFactory) -> None:
    teacher, _ = await admit_signed_in(hall, "Tea Cher", Role.instructor)
    page = await teacher.open(f"{COMMENTS}?cell=in-step")
    await page.get_by_label("Your comment").fill(QUESTION)
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".thread")).to_have_count(1)
    await page.get_by_role("link", name="Reply").click()
    await page.get_by_label("Your reply").fill("Because `fit` sums over replicas, see <https://example.org>.")
    await page.get_by_role("button", name="Send").nth(1).click()
    await expect(page.locator(".replies .comment")).to_have_count(1)
    await page.locator(".comment-actions summary").first.click()
    await page.locator(".comment-foot > a.comment-action").first.click()
    await expect(page.locator(".slot textarea")).to_be_focused()
    await assert_accessible_everywhere(page, "comments")

    await page.goto(teacher.site.url("/en/moderation?kind=newest"))
    await assert_accessible_everywhere(page, "moderation")
    korean = (f"/ko{COMMENTS[3:]}?cell=in-step", "/ko/moderation?kind=newest")
    await assert_fits_phones_in("ko", page, [teacher.site.url(path) for path in korean])


async def test_the_comments_of_a_cell_open_beside_it_and_the_focus_returns(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.open(LESSON)
    link, panel = page.locator("#cell-strategy [data-discuss]"), page.locator("#discuss")
    text = f"Why {secrets.token_hex(4)}?"
    await link.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#discuss-title")).to_be_focused()
    await panel.get_by_text("Show the code").click()
    await expect(panel.locator("#discuss-code")).to_contain_text("MirroredStrategy()")
    await panel.locator("textarea").fill(text)
    await panel.get_by_role("button", name="Send").click()
    await expect(panel.locator(".thread", has_text=text)).to_have_count(1)
    await expect(page.locator("#comments .comments")).to_have_count(0)
    await expect(page.locator("#cell-strategy")).to_be_in_viewport()
    await assert_readable_in_both_themes(page, "the comments of a cell", "#discuss")
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await expect(link).to_be_focused()
    await expect(page.locator("#comments > div")).to_have_count(1)

    await page.set_viewport_size(PHONE)
    await link.click()
    await expect(panel.locator(".thread", has_text=text)).to_have_count(1)
    await assert_fits(page, "the comments of a cell on a phone")
    await panel.get_by_role("button", name="Close").click()
    await expect(link).to_be_focused()


async def test_a_comment_sent_before_the_script_has_loaded_is_sent_once(
    hall: VisitorFactory,
) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.page()
    script = await hold_requests(page, "**/chunks/comments-*")
    await page.goto(ada.site.url(COMMENTS))
    sent = requests_to(page, "/comments", "POST")
    text = unique("Faster than the script")
    field = page.get_by_label("Your comment")
    await field.fill(text)
    await page.get_by_role("button", name="Send").dblclick()
    await page.evaluate("new Promise(requestAnimationFrame)")
    assert sent == [], "its answer could come before the script"
    script.set()
    await expect(page.locator(".thread", has_text=text)).to_have_count(1)
    assert len(sent) == 1
    await expect(field).to_have_value("")
    await page.reload()
    await expect(page.locator(".thread", has_text=text)).to_have_count(1)
    await expect(field).to_have_value("")


async def test_a_comment_is_sent_if_the_script_does_not_load(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    ada.tolerated += ["Failed to load resource", "Failed to fetch dynamically imported module"]
    page = await ada.page()
    await page.route("**/chunks/comments-*", lambda route: route.abort())
    await page.goto(ada.site.url(COMMENTS))
    await write(page, unique("Without the script"))


async def test_the_comments_of_a_cell_open_once_the_script_of_the_panel_has_loaded(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    page = await ada.page()
    script = await hold_requests(page, "**/chunks/discuss-*")
    await page.goto(ada.site.url(LESSON))
    panel = page.locator("#discuss")
    asked = requests_to(page, "/comments?cell=")
    await page.locator("#cell-strategy [data-discuss]").click()
    await page.locator("#cell-components [data-discuss]").click()
    await page.evaluate("new Promise(requestAnimationFrame)")
    assert asked == [], "the answer could come before the panel is open"
    script.set()
    await expect(panel).to_be_visible()
    await expect(panel.get_by_label("Your comment")).to_be_visible()
    assert await panel.locator("input[name=cell]").first.get_attribute("value") == "components"


async def test_the_comments_of_a_cell_are_a_page_if_the_script_of_the_panel_does_not_load(hall: VisitorFactory) -> None:
    ada, _ = await admit_signed_in(hall, "Ada Byron")
    ada.tolerated.append("Failed to load resource")
    page = await ada.page()
    await page.route("**/chunks/discuss-*", lambda route: route.abort())
    await page.goto(ada.site.url(LESSON))
    await page.locator("#cell-strategy [data-discuss]").click()
    await page.wait_for_url("**/comments?cell=strategy")
