"""A lesson's metadata for Jupyter: what jupytext must keep when saving, and which kernel runs the cells."""

from __future__ import annotations

from collections.abc import Iterator

from app.lessons.errors import LessonFileError
from app.lessons.markdown import parse_markdown
from app.lessons.model import Lesson
from app.lessons.yaml_with_lines import InvalidYaml, YamlEntry, YamlValue, parse_yaml_mapping
from runners.wire.jupyter_kernels import JupyterKernel
from runners.wire.protocol import Topology

JUPYTEXT = {
    "notebook_metadata_filter": "all,-language_info,-jupytext.text_representation.jupytext_version",
    "root_level_metadata_filter": "jupytext,kernelspec,-all",
    "text_representation": {"extension": ".md", "format_name": "myst", "format_version": 0.13},
}
"""The value of ``jupytext`` in the front matter of a lesson that we write."""
JUPYTEXT_METADATA = (
    "jupytext: {notebook_metadata_filter: 'all,-language_info,-jupytext.text_representation.jupytext_version', "
    "root_level_metadata_filter: 'jupytext,kernelspec,-all'}"
)
"""Makes jupytext write a lesson as it read it: JupyterLab, too, keeps the front matter as the notebook's first cell."""


_KEPT_KEYS = frozenset({"jupyter", "jupytext", "kernelspec", "language_info"})
_LOCKSTEP_KEYS = frozenset({"summary", "minutes", "status", "topology", "topologies", "keras", "kerases", "requires"})


def jupyter_metadata_errors(lesson: Lesson) -> Iterator[LessonFileError]:
    """Yield errors for metadata that saving in JupyterLab would delete, and for a kernel with another machine.

    The site shows such a lesson anyway: only ``lockstep lesson check`` reports these errors. They are warnings if no
    key of the front matter is Lockstep's own, as in a notebook from elsewhere.
    """
    entries = _front_matter(lesson.source)
    foreign = not entries.keys() & _LOCKSTEP_KEYS
    jupytext = entries.get("jupytext")
    lost = entries.keys() - _KEPT_KEYS
    if lost and (jupytext is None or "all" not in _items(_value(jupytext.value, "notebook_metadata_filter"))):
        text = f"saving this file in JupyterLab would delete its front matter; write {JUPYTEXT_METADATA}"
        yield LessonFileError(lesson.source_path, jupytext.line if jupytext else 1, text, False, foreign)
    wanted = JupyterKernel(Topology.parse(lesson.topology), lesson.keras)
    kernel = entries.get("kernelspec")
    if kernel is None or _value(kernel.value, "name") != wanted.name:
        what = f"the kernel of {lesson.topology} with Keras {lesson.keras} is called {wanted.name}"
        text = f"{what}; write kernelspec: {{display_name: '{wanted.title}', language: python, name: {wanted.name}}}"
        yield LessonFileError(lesson.source_path, kernel.line if kernel else 1, text, False, foreign)


def _front_matter(source: str) -> dict[str, YamlEntry]:
    first = next(iter(parse_markdown(source).tokens), None)
    if first is None or first.type != "front_matter":
        return {}
    try:
        return parse_yaml_mapping(first.content, 2)[0]
    except InvalidYaml:
        return {}


def _value(value: YamlValue, key: str) -> YamlValue:
    return value.get(key, "") if isinstance(value, dict) else ""


def _items(value: YamlValue) -> list[str]:
    return [item.strip() for item in value.split(",")] if isinstance(value, str) else []
