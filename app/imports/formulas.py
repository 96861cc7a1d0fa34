"""Formulas that lessons can show: what MathJax has and lessons lack is replaced."""

from __future__ import annotations

import re

from app.lessons.formulas import InvalidFormula, latex_to_mathml

ENVIRONMENT = re.compile(
    r"\s*\\begin\{(equation|align|alignat|eqnarray|flalign|gather|multline|displaymath|math|split)(\*?)\}(.*)"
    r"\\end\{\1\2\}\s*",
    re.DOTALL,
)
"""A paragraph that is a formula without dollar signs, as MathJax reads it."""
_REPLACED = (
    (re.compile(r"\\(?:begin|end)\{(?:displaymath|math)\}"), ""),
    (re.compile(r"\\(?:mbox|hbox)\b"), r"\\text"),
    (re.compile(r"\\bm\b"), r"\\boldsymbol"),
    (re.compile(r"^[ \t]*\n", re.MULTILINE), ""),
)
_MATH_IN_TEXT = re.compile(r"\\text\{([^{}$]*)\$([^{}$]*)\$([^{}]*)\}")


def usable_formula(latex: str, *, block: bool) -> str:
    """The formula, changed where a lesson could not show it otherwise.

    Raises:
        InvalidFormula: it cannot be shown.
    """
    try:
        latex_to_mathml(latex, block=block)
    except InvalidFormula:
        for pattern, replacement in _REPLACED:
            latex = pattern.sub(replacement, latex)
        while (ended := _MATH_IN_TEXT.sub(r"\\text{\1}\2\\text{\3}", latex)) != latex:
            latex = ended
        latex = latex.strip()
        latex_to_mathml(latex, block=block)
    return latex
