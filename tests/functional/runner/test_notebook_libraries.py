"""Libraries that notebooks use, in a session: bars, plots, widgets, data sets and TensorBoard."""

from __future__ import annotations

from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import SessionClient

BARS = """
import warnings
warnings.simplefilter("error")
import tqdm, tqdm.auto, tqdm.notebook
for bar in (tqdm.tqdm, tqdm.auto.tqdm, tqdm.notebook.tqdm, tqdm.notebook.tqdm_notebook):
    assert list(bar(range(3), desc="bar")) == [0, 1, 2]
assert list(tqdm.notebook.trange(2, display=True)) == list(tqdm.auto.trange(2)) == [0, 1]
with tqdm.auto.tqdm(total=10, unit="step", leave=False) as bar:
    bar.update(10)
    bar.set_postfix(loss=0.5)
"""


async def test_bars_of_tqdm_are_text_whatever_they_are_imported_from(learner: SessionClient) -> None:
    told = await learner.run(BARS)

    assert told.outcome == Outcome.ok, told.text
    assert told.displays == []
    assert told.text.count("bar: 100%|██████████| 3/3") == 4
    assert "\r" in told.text


PLOTS = """
import altair, pandas
import plotly.graph_objects as go
display(go.Figure(go.Scatter(y=[1.0, 3.0, 2.0]), layout_title_text="Loss"))
frame = pandas.DataFrame({"step": [1, 2], "loss": [3.0, 4.0]})
altair.Chart(frame).mark_line().encode(x="step", y="loss")
"""


async def test_plots_of_plotly_and_altair_arrive_as_data_for_the_page(learner: SessionClient) -> None:
    told = await learner.run(PLOTS)

    assert told.outcome == Outcome.ok, told.text
    line, chart = (event.data for event in told.displays)
    assert line["application/vnd.plotly.v1+json"]["layout"]["title"]["text"] == "Loss"
    vega = chart["application/vnd.vegalite.v6+json"]
    assert (vega["mark"]["type"], len(next(iter(vega["datasets"].values())))) == ("line", 2)
    assert "text/html" not in line | chart


async def test_widgets_are_shown_as_what_they_are(learner: SessionClient) -> None:
    told = await learner.run("import ipywidgets\nipywidgets.IntSlider(value=7, description='Workers')")

    assert told.outcome == Outcome.ok, told.text
    (widget,) = told.displays
    assert widget.data == {"text/plain": "IntSlider(value=7, description='Workers')"}
