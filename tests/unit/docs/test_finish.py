"""The finishing of the site's pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.finish import finish

PAGE = """<html><head><style>
  body { color: red }
</style></head><body><p style="opacity: 50%">One</p><pre>long</pre><svg><path style="display: none" d="M 0 0"/></svg>
<script>document.body.dataset.theme = "a<b" || "auto";</script><script src="kept.js"></script></body></html>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "learn").mkdir()
    for page in ("index.html", "learn/index.html"):
        (tmp_path / page).write_text(PAGE)
    finish(tmp_path)
    return tmp_path


def test_nothing_inline_is_left(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r"<script>|<style|\sstyle=", page.read_text())


@pytest.mark.parametrize("page", ["index.html", "learn/index.html"])
def test_what_was_inline_is_in_files_that_the_page_refers_to(site: Path, page: str) -> None:
    addresses = re.findall(r'(?:src|href)="([^"]*inline-[^"]*)"', (site / page).read_text())
    contents = [(site / page).parent.joinpath(address).resolve().read_text() for address in addresses]

    assert len(contents) == 3
    assert 'document.body.dataset.theme = "a<b" || "auto";' in contents
    assert any("body { color: red }" in content for content in contents)
    (rules,) = [content for content in contents if "[data-style=" in content]
    for name, declaration in re.findall(r'\[data-style="(\w+)"\] { (.+) }', rules):
        assert f'data-style="{name}"' in (site / page).read_text()
        assert declaration in ("opacity: 50%", "display: none")


def test_code_can_be_scrolled_with_the_keyboard(site: Path) -> None:
    assert '<pre tabindex="0">long</pre>' in (site / "index.html").read_text()


def test_pages_that_were_finished_stay_as_they_are(site: Path) -> None:
    before = (site / "index.html").read_text()

    finish(site)

    assert (site / "index.html").read_text() == before
