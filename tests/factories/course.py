"""A small course on disk, for tests that need any lesson."""

from __future__ import annotations

from pathlib import Path

LESSON = "small/first"

FIRST_RUN = """\
[[achievements]]
id = "first-run"
badge = "first-run"
xp = 20
title.en = "First step"
title.ko = "첫걸음"
description.en = "A cell ran to its end."
needs = { kind = "cell" }
"""
"""An achievement, as ``achievements.toml`` beside the courses says it."""

_COURSE = """\
[title]
en = "A small course"

[summary]
en = "One lesson."

[[modules]]
slug = "only"
title.en = "The only module"
lessons = ["first"]
"""

_LESSON = """\
---
jupytext:
  notebook_metadata_filter: all
  text_representation:
    format_name: myst
kernelspec:
  display_name: Lockstep, 4 simulated GPUs
  language: python
  name: lockstep-gpu-4
title: The first lesson
summary: It prints.
minutes: 5
tags: [start]
status: published
topology: gpu:4
keras: 3
---

# The first lesson

Some prose.

```{code-cell} python
:name: hello
:caption: Say hello

print("hello")
```

```{code-cell} python
:name: alone
:caption: On one CPU
:topology: cpu

print("alone")
```
"""


_OFFERING = """
```{code-cell} python
:name: choice
:topology: gpu:4
:topologies: [gpu:2, gpu:4, workers:2xgpu:2]
:kerases: [2, 3]

print("choice")
```
"""


def add_choice(root: Path) -> None:
    """Add a cell, ``choice``, for which a learner may choose among several machines."""
    with (root / "small" / "first" / "lesson.md").open("a") as lesson:
        lesson.write(_OFFERING)


def write_course(root: Path) -> Path:
    """Write the course below ``root``, and return it."""
    folder = root / "small" / "first"
    folder.mkdir(parents=True)
    (root / "small" / "course.toml").write_text(_COURSE)
    (folder / "lesson.md").write_text(_LESSON)
    return root
