"""Libraries that notebooks use, in a session: bars, plots, widgets, data sets and TensorBoard."""

from __future__ import annotations

import re

import pytest

from runners.wire.protocol import NoticeEvent, Outcome
from runners.wire.supplied_modules import SUPPLIED_MODULES
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
    assert len(re.findall(r"bar: 100%\|█+\| 3/3 [^\r\n]*\n", told.text)) == 4, "one that is slow shows its end twice"
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


BOARD = """
%load_ext tensorboard
%tensorboard --logdir logs
import tensorflow as tf
for name in ("a", "b"):
    with tf.summary.create_file_writer(f"logs/{name}").as_default():
        for step in range(3):
            tf.summary.scalar("loss", 1 / (step + 1), step=step)
%tensorboard --logdir=logs --port 6006
"""


async def test_tensorboard_shows_the_scalars_of_a_training_as_plots(learner: SessionClient) -> None:
    told = await learner.run(BOARD)

    assert told.outcome == Outcome.ok, told.text
    notices = [event.code for event in told.events if isinstance(event, NoticeEvent)]
    assert notices == ["tensorboard-empty", "tensorboard-scalars"]
    (plot,) = told.displays
    figure = plot.data["application/vnd.plotly.v1+json"]
    assert [(line["name"], line["x"]) for line in figure["data"]] == [("a", [0, 1, 2]), ("b", [0, 1, 2])]
    assert figure["data"][0]["y"] == pytest.approx([1, 1 / 2, 1 / 3])
    assert plot.data["text/plain"] == "loss: a: 0.3333 at step 2, b: 0.3333 at step 2"


FONTS = """
import warnings
warnings.simplefilter("error")
import matplotlib.pyplot as plt
plt.rcdefaults()
plt.title("손실 损失 loss − 1")
plt.plot([1, 2])
plt.show()
"""


async def test_korean_and_chinese_have_glyphs_in_plots(learner: SessionClient) -> None:
    told = await learner.run(FONTS)

    assert told.outcome == Outcome.ok, told.text
    assert "Glyph" not in told.text
    assert len(told.displays) == 1


CHOICE = """
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
print(tf.keras.__version__[0])
"""
STARTS_ONE = """
import subprocess, sys
which = "import tensorflow as tf; print(tf.keras.layers.Dense.__module__.split('.')[0])"
print(subprocess.run([sys.executable, "-c", which], capture_output=True, text=True).stdout)
"""


async def test_code_that_chooses_keras_2_is_told_how(learner: SessionClient) -> None:
    told = await learner.run(CHOICE)

    assert told.stdout == "3\n"
    assert [event.code for event in told.events if isinstance(event, NoticeEvent)] == ["keras-2-chosen"]


@pytest.mark.long
async def test_programs_of_code_that_chooses_keras_2_get_it(learner: SessionClient) -> None:
    await learner.run(CHOICE)

    assert (await learner.run(STARTS_ONE)).stdout.split() == ["tf_keras"]


PROGRAM = """
%%writefile main.py
import sys
assert not any(name.partition(".")[0] == "runners" for name in sys.modules), "nothing is imported before it is needed"
import keras
import tensorflow_datasets as tfds
(images, labels), _ = keras.datasets.mnist.load_data()
(first,) = tfds.load("mnist", split="train[:1]", as_supervised=True).map(lambda image, label: image)
print(images.sum(), labels[:5].tolist(), (first.numpy()[..., 0] == images[0]).all())
"""
START = """
import subprocess, sys
import keras
(images, labels), _ = keras.datasets.mnist.load_data()
told = subprocess.run([sys.executable, "main.py"], capture_output=True, text=True)
print("program", told.stdout, told.stderr[-1000:] if told.returncode else "")
print("session", images.sum(), labels[:5].tolist(), True)
"""


@pytest.mark.long
async def test_a_program_that_a_session_starts_loads_the_same_data_sets(learner: SessionClient) -> None:
    await learner.run(PROGRAM)
    told = await learner.run(START)

    assert told.outcome == Outcome.ok, told.text
    program, session = told.stdout.split("program ")[1].split("session ")
    assert program.splitlines()[-2] == session.splitlines()[0], told.stdout
    assert program.count("Stand-in data: MNIST") == 2, "it says so, as the session does"


async def test_glue_of_myst_nb_shows_the_value_where_it_is_computed(learner: SessionClient) -> None:
    code = 'from myst_nb import glue\nglue("mean", 2.5, display=False)\nglue("all", [1])'
    found = f"import importlib.util\nassert all(map(importlib.util.find_spec, {sorted(SUPPLIED_MODULES)}))"
    told = await learner.run(f"{found}\n{code}")

    assert told.outcome == Outcome.ok, told.text
    assert told.stdout == "mean:\nall:\n"
    assert [display.data["text/plain"] for display in told.displays] == ["2.5", "[1]"]
