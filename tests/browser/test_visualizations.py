"""What is drawn, for eyes, ears and keyboards: charts, progress bars, pictures, and drawings of lessons with steps."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.accessibility import assert_accessible, assert_accessible_everywhere, assert_fits
from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory

LESSON = "/en/courses/distributed-tensorflow/distribution-strategies"
MOVING = "/en/courses/distributed-tensorflow/parameter-servers"
"""It has a drawing with six steps."""
FRONT_PAGE = "/en/"
"""It has the same cell, and a browser draws it faster than a lesson: for what does not depend on the layout."""
REPORT = """import math, time
def show(data, lane=None):
    get_ipython().kernel.publish("display_data", {"data": data, "metadata": {}, "transient": {}}, lane)
def metric(step, per="step", lane=None, **values):
    show({"application/vnd.lockstep.metric+json": {"step": step, "per": per, "values": values}}, lane)
def progress(label, done, total, left_s=None, lane=None):
    show({"application/vnd.lockstep.progress+json":
          {"label": label, "done": done, "total": total, "unit": "step", "left_s": left_s}}, lane)
def picture(text, **content):
    show({"application/vnd.lockstep.picture+json": content, "text/plain": text})
"""
WIDTHS = (360, 800, 1100, 1920)
ALL_REDUCE = """
picture("in words", picture="replay", variable="dense/kernel", shape=[4, 2], operation="sum", algorithm="ring",
        replicas=[{"lane": f"replica {r}", "values": [r + 1, -2, 3, r / 2, 1, -r, 2, 1]} for r in range(REPLICAS)],
        reduced=[sum(r + 1 for r in range(REPLICAS)), -2 * REPLICAS, 3 * REPLICAS, 1, 2, -3, 4, 5],
        before=[1, 1, -1, 2, 1, 1, 1, 1], after=[0.6, 1.2, -1, 2, 1, 1, 1, 1])
"""
WAITING = """
show({"application/vnd.lockstep.notice+json": {"code": "waiting-for-paused", "values": {
    "task": "worker 1", "other": "worker 0", "address": "localhost:1"}}}, "worker 1")
"""
TRAINING = """
for step in range(1, 201):
    metric(step, loss=3 * math.exp(-step / 50), accuracy=1 - math.exp(-step / 50))
    if step % 100 == 0:
        metric(step // 100, "epoch", loss=3 * math.exp(-step / 50), val_loss=0.5)
"""


async def opened(
    hall: VisitorFactory, code: str, *, page: str = FRONT_PAGE, width: int = 1280, height: int = 900
) -> CellPageObject:
    visitor = await hall.admit(width=width, height=height)
    cell = CellPageObject(await visitor.open(page), "strategy")
    await cell.write(REPORT + code)
    await cell.run()
    return cell


async def test_a_training_is_drawn_and_axe_finds_nothing(hall: VisitorFactory) -> None:
    cell = await opened(hall, TRAINING, page=LESSON)
    await cell.finished()
    chart = cell.root.locator(".chart")

    await expect(chart.locator("figcaption")).to_have_text(["Loss", "Accuracy"])
    await expect(chart.get_by_role("img").first).to_have_accessible_name(
        "Loss. loss: 0.406 at step 100, 0.05495 at step 200. The lowest was 0.05495, the highest 0.406. "
        "val_loss: 0.5 at step 100, 0.5 at step 200. The lowest was 0.5, the highest 0.5."
    )
    await expect(chart.locator(".legend li")).to_have_text(["loss 0.05495", "val_loss 0.5", "accuracy 0.9817"])
    await expect(chart.locator(".epoch")).to_have_count(2)  # one in each panel
    await chart.locator("summary").click()
    await assert_accessible_everywhere(cell.page, "a training", "#cell-strategy .visualizations")


@pytest.mark.long
async def test_the_printed_head_of_a_table_is_no_chart(hall: VisitorFactory) -> None:
    table = """
print("loss after epoch            1      2      3      4      5      6")
print("1 replica, loss    0.4:  0.690  0.512  0.433")
"""
    cell = await opened(hall, table + TRAINING, page=LESSON)
    await cell.finished()
    for width in WIDTHS:
        await cell.page.set_viewport_size({"width": width, "height": 800})
        await expect(cell.root.locator(".chart .training")).to_have_count(1)
        await expect(cell.root.locator(".chart .legend li")).to_have_text(
            ["loss 0.05495", "val_loss 0.5", "accuracy 0.9817"]
        )
    await cell.write(table)
    await cell.run()
    await cell.has_row("1 replica, loss    0.4:  0.690  0.512  0.433")
    await cell.finished()
    await expect(cell.root.locator(".chart")).to_have_count(0)


async def test_a_chart_is_read_by_keyboard_and_by_pointer(hall: VisitorFactory) -> None:
    cell = await opened(hall, TRAINING)
    await cell.finished()
    head, words = cell.root.get_by_label("Show values at"), cell.root.locator(".chart-reading")
    await expect(words).to_contain_text("Step 200: loss 0.05495")

    await head.focus()
    await cell.page.keyboard.press("Home")

    await expect(words).to_have_text("Step 1: accuracy 0.0198")
    await expect(head).to_have_attribute("aria-valuetext", "Step 1: accuracy 0.0198")
    await cell.page.keyboard.press("End")
    plot = cell.root.locator(".plot").first
    box = await plot.bounding_box()
    assert box is not None
    await cell.page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 40)
    await expect(words).not_to_contain_text("Step 200:")
    await expect(plot.locator(".head line")).to_have_count(1)
    await cell.page.mouse.move(5, 5)
    await expect(words).to_contain_text("Step 200:")
    await cell.page.emulate_media(media="print")
    await expect(plot).to_be_visible()
    await expect(head).to_be_hidden()


@pytest.mark.long
async def test_the_numbers_are_a_table_and_a_file_and_come_back_after_a_reload(hall: VisitorFactory) -> None:
    cell = await opened(hall, TRAINING)
    await cell.finished()

    await cell.page.reload()

    await cell.root.get_by_text("Metrics as a table").click()
    table = cell.root.get_by_role("table", name="Metrics of the cell “Four replicas” · 60 of 202 rows, evenly spaced")
    await expect(table.locator("thead th[scope=col]")).to_have_text(["When", "loss", "accuracy", "val_loss"])
    await expect(table.locator("tbody th[scope=row]")).to_have_count(60)
    async with cell.page.expect_download() as download:
        await cell.root.get_by_role("button", name="Download as CSV").click()
    file = await (await download.value).path()
    lines = (await asyncio.to_thread(Path(file).read_text)).splitlines()
    assert (len(lines), lines[0]) == (203, "lane,per,step,loss,accuracy,val_loss")


async def test_trainings_are_compared_on_common_axes_below_a_legend_with_their_names(hall: VisitorFactory) -> None:
    code = """
for name, start in (("small", 2), ("large", 3)):
    for step in range(1, 21):
        report = {"step": step, "values": {"loss": start / step}, "training": name}
        show({"application/vnd.lockstep.metric+json": report})
"""
    cell = await opened(hall, code)
    await cell.finished()

    await expect(cell.root.locator("figcaption")).to_have_text(["Loss"])
    await expect(cell.root.locator(".legend li")).to_have_text(["small 0.1", "large 0.15"])
    legend = await cell.root.locator(".legend").bounding_box()
    plot = await cell.root.locator(".chart .plot").bounding_box()
    assert legend
    assert plot
    assert legend["y"] + legend["height"] <= plot["y"]
    await expect(cell.root.locator(".plot .tick.middle").first).to_have_text("0")
    await expect(cell.root.locator(".chart-reading")).to_have_text("Step 20: small: loss 0.1; large: loss 0.15")
    colors = await cell.root.locator(".line .stroke").evaluate_all(
        "lines => lines.map(line => getComputedStyle(line).stroke)"
    )
    assert len(set(colors)) == 2
    await cell.root.get_by_text("Metrics as a table").click()
    await expect(cell.root.locator("thead th[scope=col]")).to_have_text(["When", "Training", "loss"])
    await assert_fits(cell.page, "two trainings")


async def test_workers_have_a_line_each_and_what_is_no_number_has_a_word(hall: VisitorFactory) -> None:
    code = """
for step in range(10):
    for worker in range(3):
        metric(step, loss=math.nan if worker == 2 and step == 9 else worker + 1 / (step + 1), lane=f"worker {worker}")
"""
    cell = await opened(hall, code.replace("math.nan", '"nan"'))
    await cell.finished()

    await expect(cell.root.locator(".legend li")).to_have_text(["worker 0 0.1", "worker 1 1.1", "worker 2 nan"])
    colours = await cell.root.locator(".line .stroke").evaluate_all(
        "lines => lines.map(l => getComputedStyle(l).stroke)"
    )
    assert len(set(colours)) == 3
    await expect(cell.root.locator(".strange-word")).to_have_text("nan")


async def test_a_single_number_is_drawn_above_zero_and_not_zoomed_into(hall: VisitorFactory) -> None:
    cell = await opened(hall, "\nmetric(1, 'epoch', loss=0.55)")
    await cell.finished()

    await expect(cell.root.locator(".plot .tick.end")).to_have_text(["0", "0.2", "0.4", "0.6", "1"])
    await expect(cell.root.locator(".legend li")).to_have_text("loss 0.55")
    await expect(cell.root.get_by_label("Show values at")).to_be_hidden()


@pytest.mark.long
async def test_a_bar_says_how_long_it_takes_and_goes_with_the_run(hall: VisitorFactory) -> None:
    cell = await opened(hall, """progress("fit", 0, 300)\ntime.sleep(600)""")
    bar, words = cell.root.get_by_role("progressbar", name="fit"), cell.root.locator(".progress-bar-words")

    await expect(words).to_have_text("TensorFlow is tracing the model: the first step takes longest", timeout=60_000)
    assert await bar.get_attribute("value") is None
    await cell.button("stop").click()
    await cell.finished("interrupted")
    await expect(bar).to_have_count(0)

    await cell.write(REPORT + WAITING + """progress("fit", 120, 300, left_s=130)\ntime.sleep(600)""")
    await cell.run()
    await expect(words).to_have_text("120 of 300 steps · about 2 minutes left")
    assert await bar.evaluate("bar => bar.position") == pytest.approx(0.4)
    lane = cell.root.get_by_role("group", name="worker 1", exact=True)
    await expect(lane.locator("summary")).to_contain_text("waiting for worker 0")
    await cell.button("stop").click()
    await cell.finished("interrupted")
    await expect(bar).to_have_count(0)
    await expect(lane.locator("summary")).not_to_contain_text("waiting for")


async def test_an_all_reduce_is_stepped_through_by_keyboard(hall: VisitorFactory) -> None:
    code = """
picture("in words", picture="replay", variable="w", shape=[2], operation="sum", algorithm="NcclAllReduce (simulated)",
        replicas=[{"lane": "replica 0", "values": [1, 2]}, {"lane": "replica 1", "values": [3, -4]}],
        reduced=[4, -2], before=[1, 1], after=[0.6, 1.2])
"""
    cell = await opened(hall, code)
    await cell.finished()
    words, on = cell.root.locator(".replay-words"), cell.root.get_by_role("button", name="Next step")
    await expect(words).to_have_text("1 of 4: Each replica has the gradient of its own examples.")

    await on.focus()
    for _ in range(3):
        await cell.page.keyboard.press("Enter")

    await expect(words).to_have_text("4 of 4: After the update, the variable is still the same on every replica.")
    await expect(cell.root.get_by_role("button", name="Step back")).to_be_focused()
    await expect(cell.root.get_by_role("button", name="Play")).to_be_hidden()
    await cell.root.get_by_text("Metrics as a table").click()
    await expect(cell.root.locator(".drawn tbody tr").last).to_have_text("1" + "2" + "−4" + "−2" + "1" + "1.2")
    await expect(cell.root.locator("figcaption")).to_have_text("All-reduce of w (2) · NcclAllReduce (simulated)")


@pytest.mark.long
@pytest.mark.parametrize("replicas", [4, 8])
async def test_an_all_reduce_is_seen_whole_at_every_width(hall: VisitorFactory, replicas: int) -> None:
    cell = await opened(hall, ALL_REDUCE.replace("REPLICAS", str(replicas)), height=800, page=LESSON)
    await cell.finished()
    output, rows = cell.root.locator(".output"), cell.root.locator(".replay-row:not(.waiting)")
    for width in WIDTHS:
        await cell.page.set_viewport_size({"width": width, "height": 800})
        for _ in range(3):
            await cell.root.get_by_role("button", name="Next step").click()
        await expect(rows).to_have_count(replicas + 3)
        assert await output.evaluate("box => box.scrollHeight <= box.clientHeight"), f"cut at {width} px"
        await assert_fits(cell.page)
        for _ in range(3):
            await cell.root.get_by_role("button", name="Step back").click()


@pytest.mark.long
async def test_below_much_output_the_controls_of_an_all_reduce_stay_in_view(hall: VisitorFactory) -> None:
    lines = '\nprint("\\n".join(f"line {n}" for n in range(60)))\n'
    cell = await opened(hall, lines + ALL_REDUCE.replace("REPLICAS", "8"), page=LESSON)
    await cell.finished()
    for width in WIDTHS:
        await cell.page.set_viewport_size({"width": width, "height": 800})
        await cell.root.locator(".replay").evaluate("picture => picture.scrollIntoView({block: 'start'})")
        hidden = await cell.root.locator(".replay-controls").evaluate(
            """controls => {
                const [mine, box] = [controls, controls.closest(".output")].map((each) => each.getBoundingClientRect());
                return mine.bottom > box.bottom + 1 || mine.top < box.top - 1;
            }"""
        )
        assert not hidden, f"out of view at {width} px"


@pytest.mark.long
async def test_shards_and_placement_are_drawn_and_what_is_unfit_is_said_in_words(hall: VisitorFactory) -> None:
    code = """
picture("shards", picture="shards", title="1 batch", labels=None, replicas=[
    {"lane": f"replica {r}", "device": f"GPU:{r}", "examples": [f"#{r * 2}", f"#{r * 2 + 1}"], "count": 9}
    for r in range(2)])
picture("placement", picture="placement", variables=[{"name": "w", "shape": [2, 3], "dtype": "float32",
    "kind": "MirroredVariable", "devices": ["GPU:0 (simulated by CPU:0)", "GPU:1 (simulated by CPU:1)"], "bytes": 24}])
picture("unfit, in words", picture="shards", replicas="<img src=x onerror=alert(1)>")
"""
    cell = await opened(hall, code, width=360, page=LESSON)
    await cell.finished()

    await expect(cell.root.locator(".shard b")).to_have_text(["replica 0", "replica 1"])
    await expect(cell.root.locator(".chip-of-lane")).to_have_text(["#0", "#1", "#2", "#3"])
    await expect(cell.root.locator(".placement thead th").nth(1)).to_have_text("GPU:0(simulated by CPU:0)")
    await expect(cell.root.locator(".placement tbody .copy")).to_have_count(2)
    await expect(cell.root.get_by_text("unfit, in words", exact=True)).to_be_visible()
    await assert_accessible(cell.page, "shards and placement", "#cell-strategy .output")


async def test_a_lessons_drawing_is_stepped_through_by_keyboard_and_axe_finds_nothing(hall: VisitorFactory) -> None:
    page = await (await hall.admit()).open(MOVING)
    drawing = page.locator("figure:has(> [data-step-count])")
    on, slider = drawing.get_by_role("button", name="Next step"), drawing.get_by_role("slider")
    texts, age = drawing.get_by_role("listitem"), drawing.get_by_text("age 5", exact=True)
    await expect(texts).to_have_text(["All three workers have read version 0, and compute."])
    await expect(age).to_be_hidden()

    await on.focus()
    await page.keyboard.press("Enter")
    await expect(slider).to_have_value("2")
    await expect(texts).to_contain_text(["Worker 0 is done."])
    await assert_accessible_everywhere(page, "a drawing with steps", "figure:has(> [data-step-count])")

    await slider.press("End")
    await expect(texts).to_contain_text(["Worker 2 is done."])
    await expect(age).to_be_visible()
    await expect(on).to_be_disabled()
    await slider.press("Home")
    await expect(age).to_be_hidden()


async def test_without_a_script_a_drawing_shows_its_last_step_and_all_texts(hall: VisitorFactory) -> None:
    page = await (await hall.admit(script=False)).open(MOVING)
    drawing = page.locator("figure:has(> [data-step-count])")

    await expect(drawing.get_by_role("listitem")).to_have_count(6)
    await expect(drawing.get_by_text("age 5", exact=True)).to_be_visible()
    await expect(drawing.get_by_role("slider")).to_have_count(0)
