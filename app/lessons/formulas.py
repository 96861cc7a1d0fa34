"""Converts LaTeX to MathML on the server, so that pages show formulas without a script.

The converter writes a few inline styles, which our content security policy forbids; they are replaced by classes.
"""

from __future__ import annotations

import re

from math_core import LatexError, LatexToMathML

MAX_FORMULA_LENGTH = 1_000
"""In characters. The converter recurses on the process's stack: thousands of nested braces would end the process."""
_MOST_WITHOUT_BOX = 24
"""Characters of a formula that fit into a list on the narrowest phone."""
_TAG = re.compile(r"<[^>]*>|&\w+;")
_PUNCTUATED = re.compile(r"<math[^>]*>(?:(?!</math>).)*</math>[.,:;!?)\]…’”。，、：；！？）」』]+", re.DOTALL)
_CONVERTER = LatexToMathML(fancy_error=False)
_STYLE = re.compile(r' style="([^"]*)"')
_POSITION = re.compile(r"^[0-9]+: ")
_STYLE_CLASSES = {
    "text-align: right": "math-right",
    "text-align: left": "math-left",
    "text-align: center": "math-center",
    "padding-right: 0": "math-tight-right",
    "padding-left: 0": "math-tight-left",
    "padding-left:1em": "math-wide-left",
    "justify-items: end": "",
    "justify-items: start": "",
    "justify-items: center": "",
}
"""The classes are defined in the style sheet of lessons."""


_ENVIRONMENT = re.compile(
    r"\\(?P<edge>begin|end)\{(?P<name>align|alignat|eqnarray|flalign|gather|multline|split|equation)\*?\}"
)
_WITHIN_A_FORMULA = {
    "align": "aligned",
    "alignat": "alignedat",
    "eqnarray": "aligned",
    "flalign": "aligned",
    "gather": "gathered",
    "multline": "gathered",
    "split": "aligned",
    "equation": "",
}
"""The environments for a part of a formula that look like those for a whole one."""
_OTHER_COMMANDS = {"cr": r"\\", "mbox": r"\text", "widetilde": r"\tilde"}
"""Commands that the converter does not know, and what looks nearly the same."""
_OTHER_COMMAND = re.compile(r"\\(cr|mbox|widetilde)(?![A-Za-z])")
_DECORATION = re.compile(r"(?:color|(?:padding|margin)-(?:left|right)): ?[-#.\w]+")
"""Styles that a formula can do without: colors and thin spaces."""
_NUMBERING = re.compile(r"\\label\{[^{}]*\}|\\(?:nonumber|notag)\b")
"""Lockstep numbers formulas that have a name."""


class InvalidFormula(Exception):
    """The LaTeX cannot be converted to MathML. ``str()`` is the reason."""


def latex_to_mathml(latex: str, *, block: bool) -> str:
    """Return a ``<math>`` element.

    Raises:
        InvalidFormula: the LaTeX is invalid or too long, or would need an inline style.
    """
    latex = _ENVIRONMENT.sub(_part_of_formula, _NUMBERING.sub("", latex)).strip()
    latex = _OTHER_COMMAND.sub(lambda match: _OTHER_COMMANDS[match[1]], latex)
    if len(latex) > MAX_FORMULA_LENGTH:
        raise InvalidFormula(f"it has {len(latex):,} characters, and the limit is {MAX_FORMULA_LENGTH:,}; split it")
    try:
        element = _CONVERTER.convert_with_local_state(latex, displaystyle=block)
    except LatexError as e:
        raise InvalidFormula(_short_reason(str(e))) from e
    return _STYLE.sub(_style_to_class, element)


def scrolling_formula(element: str) -> str:
    """A ``<math>`` element within a sentence, in a box that scrolls if a phone may be narrower than the formula.

    No line breaks within MathML, so without the box such a formula would make the page wider.
    """
    short = 'display="block"' not in element and len(_TAG.sub("", element)) <= _MOST_WITHOUT_BOX
    if short or not element.startswith("<math"):
        return element
    return f'<span class="math" tabindex="0" role="group">{element}</span>'


def keep_punctuation(html: str) -> str:
    """The HTML of a paragraph in which no line begins with the punctuation that follows a formula.

    Browsers may break a line on either side of MathML. A formula in a box that scrolls needs the whole line, so its
    punctuation stays outside.
    """
    return _PUNCTUATED.sub(r'<span class="unbroken">\g<0></span>', html)


def _part_of_formula(match: re.Match[str]) -> str:
    name = _WITHIN_A_FORMULA[match["name"]]
    return f"\\{match['edge']}{{{name}}}" if name else ""


def _style_to_class(match: re.Match[str]) -> str:
    styles = [style.strip() for style in match[1].split(";") if style.strip()]
    styles = [style for style in styles if style in _STYLE_CLASSES or not _DECORATION.fullmatch(style)]
    strange = [style for style in styles if style not in _STYLE_CLASSES]
    if strange:
        raise InvalidFormula(
            f"it would need the style '{strange[0]}', which lessons do not support; write aligned, not align"
        )
    names = " ".join(sorted({_STYLE_CLASSES[style] for style in styles} - {""}))
    return f' class="{names}"' if names else ""


def _short_reason(text: str) -> str:
    """The reason without the position, which counts bytes of the formula."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "it is not LaTeX")
    return _POSITION.sub("", first)
