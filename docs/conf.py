"""How Sphinx builds the site: ``make docs``."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

project = "Lockstep"
author = "the Lockstep contributors"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Lockstep documentation"
html_static_path = ["static"]
html_css_files = ["lockstep.css"]
html_favicon = "../app/web/frontend/logo.svg"
html_use_index = False
html_domain_indices = False
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False


def setup(app: Sphinx) -> None:
    """Let pages ask for what is generated from the code, and finish them."""
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it tells of each plugin that it loads
    app.add_directive("sequence", SequenceDirective)
    app.connect("source-read", _fill)
    app.connect("build-finished", _finish)


def _fill(app: Sphinx, docname: str, source: list[str]) -> None:
    from docs.reference import fill

    source[0] = fill(source[0])


def _finish(app: Sphinx, exception: Exception | None) -> None:
    from docs.finish import finish

    if exception is None:
        finish(Path(app.outdir))


class SequenceDirective(SphinxDirective):
    """``{sequence} Title``, with the participants and the steps as its body."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw it; a line that cannot be read is an error of the build."""
        from docs.sequence import drawing

        try:
            svg = drawing([line for line in self.content if line.strip()], self.arguments[0])
        except ValueError as e:
            raise self.error(str(e)) from e
        return [nodes.raw("", svg, format="html")]
