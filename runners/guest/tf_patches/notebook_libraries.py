"""Lets libraries for notebooks write what a page shows: progress bars as text, and plots as data instead of scripts.

``tqdm.notebook``, and ``tqdm.auto`` in a kernel, draw with widgets, which need a browser that talks back to the kernel.
Altair writes a script that loads its library from the internet, and ``%tensorboard`` starts a server. Nothing here
imports these libraries.
"""

from __future__ import annotations

from typing import Any

from runners.guest.reporting import tensorboard_page
from runners.guest.tf_patches.registry import Subject

_TESTS = "tests/functional/runner/test_notebook_libraries.py::"

subject = Subject(
    __name__,
    when="every kernel",
    because="a page has no widgets and runs no scripts of a learner",
    since="tqdm 4.67",
    test=f"{_TESTS}test_bars_of_tqdm_are_text_whatever_they_are_imported_from",
)


def _bar(_original: Any) -> Any:
    from tqdm import std

    class TextBar(std.tqdm):  # type: ignore[misc]  # tqdm.auto combines it with another subclass
        """A bar of text that takes the arguments of one in a notebook."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("display", None)
            super().__init__(*args, **kwargs)

    return TextBar


subject.value("tqdm.notebook:tqdm_notebook", relies_on=("tqdm.std:tqdm",))(_bar)


@subject.value("tqdm.notebook:tqdm")
def _tqdm(_original: Any) -> Any:
    from tqdm import notebook

    return notebook.tqdm_notebook


@subject.value("tqdm.notebook:trange", also=("tqdm.notebook:tnrange",))
def _trange(_original: Any) -> Any:
    from tqdm import notebook

    def trange(*args: Any, **kwargs: Any) -> Any:
        """A bar over ``range(*args)``."""
        return notebook.tqdm_notebook(range(*args), **kwargs)

    return trange


@subject.value(
    "altair:renderers", since="Altair 6", test=f"{_TESTS}test_plots_of_plotly_and_altair_arrive_as_data_for_the_page"
)
def _renderers(original: Any) -> Any:
    original.enable("mimetype")
    return original


@subject.patch(
    "tensorboard.notebook:start",
    relies_on=("(args_string)",),
    used_by=("tensorboard.notebook:_start_magic",),
    since="TensorBoard 2.21",
    because="a page cannot reach a server in a sandbox",
    test=f"{_TESTS}test_tensorboard_shows_the_scalars_of_a_training_as_plots",
)
def _start(_original: Any, args_string: str) -> None:
    tensorboard_page.show_scalars(args_string)
