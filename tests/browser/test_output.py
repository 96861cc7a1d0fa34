"""How output looks: text as in a terminal, pictures, HTML in its own frame, folded errors, and limited length."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.accessibility import assert_fits
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.polling import wait_until

PAGE = "/en/"
"""The front page has one cell: a browser draws it several times as fast as a lesson."""


async def opened(hall: VisitorFactory, code: str) -> CellPageObject:
    page = await (await hall.admit()).open(PAGE)
    cell = CellPageObject(page, "strategy")
    await cell.write(code)
    await cell.run()
    return cell


async def test_a_progress_bar_redraws_in_place(hall: VisitorFactory) -> None:
    cell = await opened(hall, r"""for i in range(5): print(f"\r\x1b[1m{i}/4\x1b[0m", end="")""")

    await cell.finished()

    assert await cell.lines() == ["4/4"]
    await expect(cell.rows.locator(".bold")).to_have_text("4/4")


async def test_colours_can_be_read_whatever_the_program_chose(hall: VisitorFactory) -> None:
    cell = await opened(hall, r"""print("\x1b[38;2;255;255;0mbright\x1b[0m \x1b[31mred\x1b[0m")""")

    await cell.finished()

    bright = cell.rows.get_by_text("bright")
    assert await bright.evaluate("element => getComputedStyle(element).color") != "rgb(255, 255, 0)"
    await expect(cell.rows.locator(".fg-1")).to_have_text("red")


async def test_standard_error_is_marked(hall: VisitorFactory) -> None:
    cell = await opened(hall, "import sys\nprint('warning', file=sys.stderr)")

    await cell.finished()

    await expect(cell.root.locator(".row.err")).to_have_text("warning")


@pytest.mark.long
async def test_20_000_lines_are_folded_and_can_be_had_as_text(hall: VisitorFactory) -> None:
    cell = await opened(hall, "for i in range(20_000): print('row', i)")

    await cell.finished()

    await cell.has_row("row 19999")
    await cell.has_row("row 0")
    assert await cell.rows.count() < 3_000
    await expect(cell.root.locator(".fold")).to_contain_text("lines folded")
    async with cell.page.expect_download() as download:
        await cell.root.get_by_role("button", name="Download as text").click()
    path = await (await download.value).path()
    text = await asyncio.to_thread(Path(path).read_text)
    assert text.splitlines() == [f"row {i}" for i in range(20_000)]


async def test_a_traceback_shows_the_learners_frames_and_folds_the_others(hall: VisitorFactory) -> None:
    cell = await opened(hall, "import tensorflow as tf\ntf.reshape(tf.range(16), (3, 5))")

    await cell.finished("error")

    traceback = cell.root.locator(".traceback")
    await expect(traceback.locator(".own").first).to_contain_text("tf.reshape")
    await expect(traceback.locator(".own").last).to_contain_text("InvalidArgumentError")
    hidden = traceback.locator("details .frame").first
    await expect(hidden).to_be_hidden()
    await traceback.locator("summary").first.click()
    await expect(hidden).to_be_visible()
    await expect(cell.status).to_contain_text("Ended with InvalidArgumentError")


async def test_html_stays_in_a_frame_without_rights(hall: VisitorFactory) -> None:
    code = """from IPython.display import HTML
HTML("<b id=x>bold</b><script>parent.document.title = 'taken'</script>")"""
    cell = await opened(hall, code)
    hall.visitors[0].tolerated.append("Blocked script execution")

    await cell.finished()

    frame = cell.root.locator("iframe")
    assert await frame.get_attribute("sandbox") == ""
    await expect(frame.content_frame.locator("#x")).to_have_text("bold")
    assert "taken" not in await cell.page.title()
    assert await cell.page.locator("#x").count() == 0


@pytest.mark.long
async def test_of_many_html_displays_the_last_are_live_and_the_others_links(hall: VisitorFactory) -> None:
    cell = await opened(hall, "from IPython.display import HTML\nfor i in range(150): display(HTML(f'<b>{i}</b>'))")

    await cell.finished()

    await expect(cell.root.locator(".display.html")).to_have_count(150)
    await expect(cell.root.locator("iframe")).to_have_count(20)
    await expect(cell.root.locator("iframe").last.content_frame.locator("b")).to_have_text("149")
    async with cell.page.expect_popup() as popup:
        await cell.root.locator(".display.html a").first.click()
    await expect((await popup.value).locator("b")).to_have_text("0")


async def test_a_row_that_goes_on_for_ever_leaves_the_page_alive_and_can_be_had_as_text(hall: VisitorFactory) -> None:
    cell = await opened(
        hall,
        r"""print("".join(f"\x1b[3{1+i%7}mx" for i in range(150000)))
print("\x1b[9999C"*60000+"x")""",
    )

    await cell.finished()

    assert len((await cell.lines())[1]) == 1_001
    await expect(cell.rows.locator(".folded")).to_contain_text("142,000 characters folded")
    assert await cell.rows.locator("span").count() < 1_100
    async with cell.page.expect_download() as download:
        await cell.root.get_by_role("button", name="Download as text").click()
    path = await (await download.value).path()
    assert len(await asyncio.to_thread(Path(path).read_text)) == 150_001 + 1_002


async def test_a_picture_has_its_size_before_it_is_there(hall: VisitorFactory) -> None:
    cell = await opened(hall, "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()")

    await cell.finished()

    picture = cell.root.locator("img")
    assert int(await picture.get_attribute("width") or 0) > 100
    assert await picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100


async def test_a_picture_is_never_in_a_scroller_that_is_lower_than_it(hall: VisitorFactory) -> None:
    code = "import matplotlib.pyplot as plt\nplt.figure(figsize=(6, 9)); plt.plot([1, 2]); plt.show()"
    cell = await opened(hall, code)
    await cell.finished()
    output, picture = cell.root.locator(".output"), cell.root.locator("img")

    assert await output.evaluate("box => box.scrollHeight <= box.clientHeight"), "alone, it needs no scroller"
    await cell.write('print("\\n".join(f"line {n}" for n in range(60)))\n' + code)
    await cell.run()
    await cell.finished()
    await expect(picture).to_have_count(1)
    heights = await output.evaluate("box => [box.clientHeight, box.querySelector('img').clientHeight, innerHeight]")
    assert heights[2] > heights[0] >= heights[1] > 500, heights


async def test_a_vector_picture_is_an_image_and_never_part_of_the_page(hall: VisitorFactory) -> None:
    code = """from IPython.display import SVG
SVG("<svg xmlns='http://www.w3.org/2000/svg' width='20' height='20'><script>alert(1)</script><circle r='9'/></svg>")"""
    cell = await opened(hall, code)

    await cell.finished()

    await expect(cell.root.locator(".output img")).to_have_count(1)
    assert await cell.root.locator(".output svg").count() == 0


async def test_an_updated_display_changes_where_it_stands(hall: VisitorFactory) -> None:
    code = "h = display('first', display_id=True)\nprint('below')\nh.update('second')"
    cell = await opened(hall, code)

    await cell.finished()

    await expect(cell.root.locator(".display")).to_have_text("'second'")
    assert await cell.lines() == ["below"]


async def test_cleared_output_is_gone(hall: VisitorFactory) -> None:
    code = "from IPython.display import clear_output\nprint('old')\nclear_output(wait=True)\nprint('new')"
    cell = await opened(hall, code)

    await cell.finished()

    assert await cell.lines() == ["new"]


FAILING_STEP = """
import tensorflow as tf
def step(features):
    with tf.GradientTape() as tape:
        predictions = tf.matmul(features, tf.ones((3, 5))) + tf.reshape(tf.range(15.0), (3, 5))
    raise ValueError("a message that is wider than a phone " * 3)
step(tf.ones((3, 3)))
"""


async def test_on_a_phone_code_in_a_traceback_scrolls_and_its_message_wraps(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(PAGE)
    cell = CellPageObject(page, "strategy")
    await cell.write(FAILING_STEP)
    await cell.run()
    await cell.finished("error")
    output, own = cell.root.locator(".output"), cell.root.locator(".traceback .own")
    line_height = await output.evaluate("output => parseFloat(getComputedStyle(output).lineHeight)")
    code = own.locator(".row", has_text="predictions =").first
    message = own.locator(".row", has_text="a message").last

    assert (await code.evaluate("row => row.offsetHeight")) < 1.5 * line_height
    assert (await message.evaluate("row => row.offsetHeight")) > 1.5 * line_height
    assert await message.evaluate("row => row.scrollWidth <= row.clientWidth")
    await output.focus()
    await page.keyboard.press("ArrowRight")
    await wait_until(page, "document.querySelector('#cell-strategy .output').scrollLeft > 0")
    await assert_fits(page, "a traceback on a phone")
    await page.emulate_media(media="print")
    assert (await code.evaluate("row => row.offsetHeight")) > 1.5 * line_height, "paper does not scroll"
