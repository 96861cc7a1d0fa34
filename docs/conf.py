"""How Sphinx builds the site: ``make docs``."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

project = "Lockstep"
author = "the Lockstep contributors"
copyright = "the Lockstep contributors"
html_title = "Lockstep documentation"
extensions = ["myst_parser"]
html_theme = "furo"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3


def setup(app: Sphinx) -> None:
    """Let pages ask for what is generated from the code."""
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it tells of each plugin that it loads
    app.connect("source-read", _fill)


def _fill(app: Sphinx, docname: str, source: list[str]) -> None:
    from docs.reference import fill

    source[0] = fill(source[0])
