"""Answers ``%tensorboard``: TensorBoard is a server, and a page cannot reach one in a sandbox.

The scalars of the logs become interactive plots, which is what notebooks open TensorBoard for.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runners.guest.reporting import notices

_MOST_RUNS = 20
_MOST_PLOTS = 12
_MOST_POINTS = 1_000
"""Per line: TensorBoard chooses which of more to keep."""
_PLOT = "application/vnd.plotly.v1+json"

Lines = dict[str, tuple[list[int], list[float]]]
"""Steps and values, by run."""


def show_scalars(arguments: str) -> None:
    """Plot the scalars in the folder that ``%tensorboard --logdir FOLDER`` names."""
    from IPython.display import display

    folder = log_folder(arguments)
    plots = _plots(folder)
    notices.notify("tensorboard-scalars" if plots else "tensorboard-empty", folder=str(folder))
    for tag, lines in list(plots.items())[:_MOST_PLOTS]:
        display({_PLOT: _figure(tag, lines), "text/plain": _words(tag, lines)}, raw=True)


def log_folder(arguments: str) -> Path:
    """The folder that the arguments of TensorBoard name."""
    words = shlex.split(arguments, comments=True)
    for number, word in enumerate(words):
        name, _, value = word.partition("=")
        if name in ("--logdir", "--logdir_spec"):
            return Path(value or next(iter(words[number + 1 :]), "."))
    return Path()


def _plots(folder: Path) -> dict[str, Lines]:
    """The lines of each scalar, by name."""
    plots: dict[str, Lines] = {}
    for run in _runs(folder)[:_MOST_RUNS]:
        for tag, line in _scalars(run):
            plots.setdefault(tag, {})[str(run.relative_to(folder))] = line
    return plots


def _runs(folder: Path) -> list[Path]:
    """The folders with event files, in order."""
    return sorted(Path(at) for at, _, files in os.walk(folder) if any("tfevents" in name for name in files))


def _scalars(run: Path) -> Iterator[tuple[str, tuple[list[int], list[float]]]]:
    import tensorflow as tf
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run), {"scalars": _MOST_POINTS, "tensors": _MOST_POINTS})
    events.Reload()
    for tag in events.Tags()["scalars"]:
        found = events.Scalars(tag)
        yield tag, ([each.step for each in found], [each.value for each in found])
    for tag in events.Tags()["tensors"]:
        if events.summary_metadata[tag].plugin_data.plugin_name == "scalars":
            found = events.Tensors(tag)
            yield tag, ([each.step for each in found], [float(tf.make_ndarray(each.tensor_proto)) for each in found])


def _figure(tag: str, lines: Lines) -> dict[str, Any]:
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers" if len(steps) < 30 else "lines",
            "name": run,
            "x": steps,
            "y": values,
        }
        for run, (steps, values) in lines.items()
    ]
    layout = {"title": {"text": tag}, "height": 320, "xaxis": {"title": {"text": "step"}}, "showlegend": True}
    return {"data": data, "layout": layout}


def _words(tag: str, lines: Lines) -> str:
    ends = (f"{run}: {values[-1]:.4g} at step {steps[-1]}" for run, (steps, values) in lines.items())
    return f"{tag}: {', '.join(ends)}"
