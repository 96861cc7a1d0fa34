"""``from myst_nb import glue`` for notebooks of Jupyter Book: the value is shown where it is computed.

Jupyter Book runs a notebook first and writes its values into the text. A lesson's text is there before the cells run,
and its ``{glue}`` roles lead to the cell.
"""

from __future__ import annotations

from typing import Any

from IPython.display import display as show


def glue(name: str, variable: Any, display: bool = True) -> None:
    """Show a value below its name, even with ``display=False``: the text leads here to see it."""
    print(f"{name}:")
    show(variable)
