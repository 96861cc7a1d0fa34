"""Finishes the built pages: removes what is inline, and lets the keyboard scroll what scrolls.

Sphinx and its theme write a few scripts and styles into each page, which the server's content security policy forbids.
They move to files of their own below ``_static``, named for their content, and the page refers to them from where they
were.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_SCROLLS = re.compile(r'<(pre|div class="table-wrapper[^"]*")>')
_ATTRIBUTE = re.compile(r'(<[a-zA-Z][^<>]*?) style="([^"]*)"')


def finish(site: Path) -> None:
    """Rewrite every page of a built site. Pages that were finished before stay as they are."""
    for page in sorted(site.rglob("*.html")):
        before = page.read_text()
        after = _Page(site, page).rewritten(before)
        if after != before:
            page.write_text(after)


class _Page:
    def __init__(self, site: Path, page: Path) -> None:
        self._static = site / "_static"
        self._address = Path(os.path.relpath(self._static, page.parent)).as_posix()

    def rewritten(self, html: str) -> str:
        html = _SCROLLS.sub(r'<\1 tabindex="0">', html)
        html = _SCRIPT.sub(lambda found: f'<script src="{self._kept(found[1], "js")}"></script>', html)
        html = _STYLE.sub(lambda found: f'<link rel="stylesheet" href="{self._kept(found[1], "css")}">', html)
        rules: dict[str, str] = {}

        def mark(found: re.Match[str]) -> str:
            name = _digest(found[2])
            rules[name] = f'[data-style="{name}"] {{ {found[2]} }}'
            return f'{found[1]} data-style="{name}"'

        html = _ATTRIBUTE.sub(mark, html)
        if rules:
            link = f'<link rel="stylesheet" href="{self._kept(chr(10).join(sorted(rules.values())), "css")}">'
            html = html.replace("</head>", f"{link}\n</head>", 1)
        return html

    def _kept(self, content: str, kind: str) -> str:
        """The address of a file with that content."""
        self._static.mkdir(exist_ok=True)
        file = self._static / f"inline-{_digest(content)}.{kind}"
        file.write_text(content)
        return f"{self._address}/{file.name}"


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:12]
