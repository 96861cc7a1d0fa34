"""A cell of a page, as learners use it."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect


async def skip_predictions(page: Page) -> None:
    """Answer every prediction of the lesson that is open, so that its cells run when they are asked to."""
    await page.evaluate(
        """async () => {
            for (const form of document.querySelectorAll(".prediction form"))
                await fetch(form.getAttribute("hx-post"), {method: "POST", body: new URLSearchParams({skip: "yes"})});
        }"""
    )
    await page.reload()
    await expect(page.locator(".prediction[data-state=open]")).to_have_count(0)


class CellPageObject:
    """One cell."""

    def __init__(self, page: Page, name: str) -> None:
        self.page = page
        self.name = name
        self.root = page.locator(f"#cell-{name}")
        self.editor = self.root.locator(".cm-content")
        self.rows = self.root.locator(".output .row")
        self.status = self.root.locator(".status")

    def button(self, action: str) -> Locator:
        """The button Run, Stop, Reset or Copy."""
        return self.root.locator(f"[data-action={action}]")

    async def touch(self) -> None:
        """Click into the code, and wait for the editor."""
        await self.root.locator("pre.code, .cm-content").first.click()
        await expect(self.editor).to_be_focused()

    async def write(self, code: str) -> None:
        """Replace the code in one change: a draft of an empty cell could be stored or sent between two."""
        await self.touch()
        await self.page.keyboard.press("Control+a")
        if code:
            await self.page.keyboard.insert_text(code)
        else:
            await self.page.keyboard.press("Delete")

    async def run(self) -> None:
        """Press Run."""
        await self.button("run").click()

    async def finished(self, outcome: str = "ok", timeout_s: float = 60) -> None:
        """Wait for the end of the run."""
        await expect(self.root).to_have_attribute("data-state", "finished", timeout=timeout_s * 1000)
        await expect(self.root).to_have_attribute("data-outcome", outcome)

    async def has_row(self, text: str, timeout_s: float = 60) -> None:
        """Wait until a row of the output has this text."""
        await expect(self.rows.get_by_text(text, exact=True).first).to_be_attached(timeout=timeout_s * 1000)

    async def lines(self) -> list[str]:
        """Every row of the output."""
        return await self.rows.all_text_contents()

    async def code(self) -> str:
        """The code in the cell, with or without the editor."""
        text: str = await self.root.evaluate(  # at once: the editor may be taking the place of the plain code
            """cell => {
                const lines = [...cell.querySelectorAll(".cm-content .cm-line")].map(line => line.textContent);
                if (lines.length) return lines.join("\\n");
                const plain = cell.querySelector("pre.code");
                return plain.innerText || plain.textContent; // out of view, it has no innerText
            }"""
        )
        return text
