"""The tags of a cell as written in its file: Lockstep's, and those of Jupyter's tools."""

from __future__ import annotations

from app.lessons.directives import Directive, LessonError, unknown_word
from app.lessons.model import CellTag

SAME_TAGS = {"hide-cell": CellTag.hide_input, "remove-input": CellTag.hide_input, "hide_input": CellTag.hide_input}
"""Tags with the effect of another one: learners may always read the code that they run."""
IGNORED_TAGS = frozenset(
    {
        "full-width",
        "full_width",
        "hide-output",
        "injected-parameters",
        "margin",
        "output_scroll",
        "parameters",
        "popout",
        "remove-output",
        "remove-stderr",
        "remove-stdout",
        "scroll-output",
        "thebe-init",
        "thebe-remove-input-init",
    }
)
"""Tags without an effect: a learner who runs a cell sees its output."""


def parse_tags(directive: Directive, faults: list[LessonError]) -> frozenset[CellTag] | None:
    """The tags of a cell, and what is wrong with them; None if it has none."""
    entry = directive.options.get("tags")
    if entry is None:
        return None
    value = entry.value
    if isinstance(value, str):
        value = [*value.replace(",", " ").split()]
    if not isinstance(value, list):
        faults.append(LessonError(entry.line, "'tags' must be a list; write it as [hide-input, …]"))
        return None
    tags: set[CellTag] = set()
    for item in value:
        text = str(item)
        if text in tuple(CellTag):
            tags.add(CellTag(text))
        elif text in SAME_TAGS:
            tags.add(SAME_TAGS[text])
        elif text not in IGNORED_TAGS:
            what = f"'tags' has an unknown tag {text[:40]!r}"
            otherwise = f"it has no effect; use {', '.join(CellTag)}"
            faults.append(unknown_word(entry.line, what, text, CellTag, otherwise))
    return frozenset(tags)
