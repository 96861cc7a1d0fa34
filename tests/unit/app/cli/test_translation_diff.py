"""A lesson is compared by paragraphs, and a fence is one paragraph."""

from __future__ import annotations

from app.cli.translation_diff import Paragraph, changed_paragraphs, split_paragraphs

CELL = "```{code-cell} python\n:name: one\n\nx = 1\n\ny = 2\n```"


def test_a_text_is_split_at_blank_lines_but_not_inside_a_fence() -> None:
    box = ":::{note}\nA box.\n\n```python\nx\n```\n:::"
    text = f"---\ntitle: x\n---\n\nWords\nand words.\n\n\n{CELL}\n\n{box}"

    assert list(split_paragraphs(text)) == [
        Paragraph("---\ntitle: x\n---", 1),
        Paragraph("Words\nand words.", 5),
        Paragraph(CELL, 9),
        Paragraph(box, 17),
    ]


def test_changed_added_and_removed_paragraphs_are_named_with_their_present_lines() -> None:
    before = f"One.\n\nTwo.\n\n{CELL}\n\nThree."
    now = f"One.\n\nTwo, changed.\n\n{CELL.replace('y = 2', 'y = 3')}\n\nThree.\n\nFour."

    found = [(one.line, len(one.before), len(one.now)) for one in changed_paragraphs(before, now)]
    assert found == [(3, 2, 2), (15, 0, 1)]
    assert [(one.line, one.now) for one in changed_paragraphs("One.\n\nTwo.", "One.")] == [(1, ())]
    assert list(changed_paragraphs(now, now)) == []
