"""Rich output on the page: Markdown, formulas, tables, audio and interactive plots, and programs that abuse them."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.accessibility import assert_accessible
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.polling import wait_until

PAGE = "/en/"

EVERYTHING = r"""
import math, struct
import altair, pandas
import plotly.graph_objects as go
from IPython.display import HTML, Audio, Markdown, Math
display(Markdown("# Results\n\n**Loss**: $L = \\frac{1}{n}\\sum_i \\ell_i$.\n\n| n | loss |\n|-|-|\n| 1 | 0.5 |"))
display(Math(r"\int_0^1 x^2\,dx = \frac{1}{3}"))
display(pandas.DataFrame({"epoch": [1, 2], "loss": [0.52, 0.31], "note": ["<b>high</b>", "low"]}))
display(Audio([math.sin(n / 9) for n in range(8000)], rate=8000))
display(HTML("<p>plain</p>"), HTML("<p style='color: navy'>in its own color</p>"))
display(go.Figure(go.Scatter(y=[3.0, 1.0, 2.0], name="loss"), layout_title_text="Loss"))
frame = pandas.DataFrame({"step": [1, 2, 3], "loss": [3.0, 1.5, 1.0]})
altair.Chart(frame, title="Altair").mark_line().encode(x="step:Q", y="loss:Q")
"""


async def opened(hall: VisitorFactory, code: str) -> CellPageObject:
    page = await (await hall.admit()).open(PAGE)
    cell = CellPageObject(page, "strategy")
    await cell.write(code)
    await cell.run()
    return cell


async def test_text_tables_and_audio_are_the_pages_own_and_plots_have_frames(hall: VisitorFactory) -> None:
    cell = await opened(hall, EVERYTHING)

    await cell.finished()

    text = cell.root.locator(".rich-text").first
    await expect(text.locator(".heading")).to_have_text("Results")
    await expect(text.locator("p math")).to_have_count(1)
    await expect(text.locator("td")).to_have_text(["1", "0.5"])
    await expect(cell.root.locator(".rich-text math mfrac").last).to_be_visible()
    table = cell.root.locator(".data-frame")
    await expect(table.get_by_role("columnheader")).to_have_text(["epoch", "loss", "note"])
    await expect(table.get_by_role("row").nth(1).locator("th, td")).to_have_text(["0", "1", "0.52", "<b>high</b>"])
    duration = "audio => audio.duration || new Promise(ended => audio.onloadedmetadata = () => ended(audio.duration))"
    assert await cell.root.locator("audio").evaluate(duration) == 1
    line, chart = (cell.root.locator(".plot iframe").nth(n) for n in (0, 1))
    assert await line.get_attribute("sandbox") == "allow-scripts"
    await expect(line.content_frame.locator(".gtitle")).to_have_text("Loss")
    await expect(line.content_frame.locator(".scatterlayer .trace")).to_have_count(1)
    await expect(chart.content_frame.locator(".mark-line path")).to_have_count(1)
    await expect(chart.content_frame.get_by_text("Altair")).to_be_visible()
    await expect(chart).not_to_have_attribute("height", "420")  # the plot has said how high it is
    await cell.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    await expect(line.content_frame.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(chart.content_frame.locator("html")).to_have_css("background-color", "rgb(15, 17, 22)")
    words, colored = (cell.root.locator(".html iframe").nth(n).content_frame.locator("body") for n in (0, 1))
    await expect(words).to_have_css("color", "rgb(233, 231, 225)")
    await expect(words).to_have_css("background-color", "rgb(15, 17, 22)")
    await expect(colored).to_have_css("background-color", "rgb(217, 214, 206)")  # light, but not glaring
    assert await line.evaluate("frame => { try { return frame.contentDocument } catch { return null } }") is None


WIDE_FORMULAS = r"""
from IPython.display import Markdown, Math
terms = " + ".join(f"a_{{{n}}}" for n in range(20))
display(Markdown(f"The loss ${terms}$ of all replicas, and $x^2$."), Math(terms))
"""


async def test_on_a_phone_each_wide_formula_scrolls_in_its_own_box_by_keyboard(hall: VisitorFactory) -> None:
    page = await (await hall.admit(width=390, height=844)).open(PAGE)
    cell = CellPageObject(page, "strategy")
    await cell.write(WIDE_FORMULAS)
    await cell.run()
    await cell.finished()
    boxes = cell.root.locator(".output .math")
    await expect(boxes).to_have_count(2)

    for box in await boxes.all():
        await box.focus()
        await page.keyboard.press("ArrowRight")
        await wait_until(page, "document.activeElement.matches('.math') && document.activeElement.scrollLeft > 0")
    assert await cell.root.locator(".output").evaluate("output => output.scrollWidth <= output.clientWidth")
    await assert_accessible(page, "wide formulas on a phone", "#cell-strategy .output")


HOSTILE = r"""
import pandas
from IPython.display import HTML, Markdown
evil = "</script><script>parent.document.title = 'taken'</script><img src=x onerror=\"parent.document.title='taken'\">"
display(Markdown(f"{evil} [x](javascript:document.title='taken') $\\text{{{evil}}}$"))
display(HTML(pandas.DataFrame({evil: [evil]}).to_html(escape=False)))
display(HTML(f"<audio src='https://evil.invalid/x' onerror='top.document.title=1'></audio>"))
plotly, vega = "application/vnd.plotly.v1+json", "application/vnd.vegalite.v5+json"
title = {"text": f"{evil}<a href='javascript:parent.document.title=1'>go</a>"}
display({plotly: {"data": [{"y": [1], "name": evil}], "layout": {"title": title, "height": 10**7}}}, raw=True)
data = {"url": "https://evil.invalid/data.csv"}
display({vega: {"data": data, "mark": "point", "encoding": {"x": {"field": "a"}}}}, raw=True)
values = {"values": [{"a": 1}]}
transform = [{"calculate": "constructor.constructor('parent.document.title=1')()", "as": "a"}]
display({vega: {"data": values, "transform": transform, "mark": "point"}}, raw=True)
display({vega: {"mark": {"type": evil}}}, raw=True)
"""


async def test_what_abuses_them_stays_text_or_stays_in_its_frame(hall: VisitorFactory) -> None:
    visitor = await hall.admit()
    visitor.tolerated.extend(("Blocked", "Refused", "Content Security Policy", "violates", "Loading", "WARN"))
    page = await visitor.open(PAGE)
    before = await page.title()
    cell = CellPageObject(page, "strategy")
    await cell.write(HOSTILE)
    await cell.run()

    await cell.finished()

    await expect(cell.root.locator(".rich-text")).to_contain_text("<script>parent.document.title")
    assert await cell.root.locator(".output :is(script, .rich-text img, .data-frame, audio)").count() == 0
    plots = cell.root.locator(".plot iframe")
    await expect(plots).to_have_count(4)
    await expect(plots.first).to_have_attribute("height", "1000")
    await expect(plots.last.content_frame.locator(".problem")).to_be_visible()
    assert await page.title() == before
    assert visitor.elsewhere == []
