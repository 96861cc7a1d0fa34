"""``lockstep lesson check`` reports a lesson that JupyterLab would damage, or would run on the wrong machine."""

from __future__ import annotations

import pytest

from app.lessons.jupyter_metadata import JUPYTEXT_METADATA, jupyter_metadata_errors
from tests.factories.lesson_source import FRONT_MATTER, render_body

KERNEL = "kernelspec: {display_name: 'Lockstep, 4 simulated GPUs', language: python, name: lockstep-gpu-4}"


def _reported(header: str) -> list[str]:
    return [str(mistake) for mistake in jupyter_metadata_errors(render_body("Words.\n", header=FRONT_MATTER + header))]


def test_what_the_messages_say_to_write_leaves_nothing_to_report() -> None:
    assert _reported(f"{JUPYTEXT_METADATA}\n{KERNEL}\n") == []


def test_without_the_filter_the_file_and_line_say_what_is_lost_and_what_to_write() -> None:
    (mistake,) = _reported(f"{KERNEL}\njupytext: {{text_representation: {{format_name: myst}}}}\n")

    assert mistake.startswith("course/this/lesson.md:7: saving this file in JupyterLab would delete its front matter")
    assert mistake.endswith(f"write {JUPYTEXT_METADATA}")


def test_a_lesson_that_says_nothing_to_jupyter_gets_both_keys_named() -> None:
    jupytext, kernelspec = _reported("")

    assert JUPYTEXT_METADATA in jupytext
    assert kernelspec.endswith(f"the kernel of gpu:4 with Keras 3 is called lockstep-gpu-4; write {KERNEL}")


@pytest.mark.parametrize(
    ("machine", "name"),
    [("topology: workers:2xgpu:2", "lockstep-workers-2xgpu-2"), ("keras: 2", "lockstep-gpu-4-keras-2")],
)
def test_the_kernel_has_to_have_the_lessons_machine(machine: str, name: str) -> None:
    (mistake,) = _reported(f"{JUPYTEXT_METADATA}\n{machine}\n{KERNEL}\n")

    assert mistake.startswith("course/this/lesson.md:8: ")
    assert f"is called {name}; write" in mistake


@pytest.mark.parametrize("kernelspec", ["kernelspec: lockstep", "kernelspec: [a]", "kernelspec: {name: [b]}"])
def test_a_kernel_of_any_other_form_is_reported_too(kernelspec: str) -> None:
    assert len(_reported(f"{JUPYTEXT_METADATA}\n{kernelspec}\n")) == 1
