"""Signing in with another site in a real browser, whose rules for forms, cookies and redirects apply."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.accessibility import assert_accessible_everywhere, assert_fits_phones_in
from tests.browser.conftest import VisitorFactory
from tests.browser.loopback import Loopback
from tests.browser.site import Site
from tests.factories.course import write_course
from tests.factories.oidc_issuer import Issuer

pytestmark = pytest.mark.long


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def issuer(network: Loopback) -> AsyncIterator[Issuer]:
    with network.entered():
        issuer = Issuer()
    async with issuer:
        yield issuer


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def campus(
    issuer: Issuer, network: Loopback, site: Site, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    """A site where accounts of the issuer can sign in. ``site`` makes sure that the front end is built."""
    settings = {f"oidc__campus__{name}": value for name, value in issuer.settings(label="Example University").items()}
    settings["lessons_dir"] = str(write_course(tmp_path_factory.mktemp("lessons")))  # the real course takes seconds
    with Site(network=network, runner=False, public_url="http://localhost:{port}", **settings) as campus:
        yield campus


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
async def test_a_link_leads_to_the_other_site_and_back_to_the_page(
    chromium: Browser, campus: Site, issuer: Issuer, script: bool
) -> None:
    hall = VisitorFactory(chromium, campus)
    visitor = await hall.admit(script=script)
    page = await visitor.page()
    here = f"http://{campus.hosts[1]}"
    await page.goto(f"{here}/en/settings/security")
    await page.get_by_role("link", name="Continue with Example University").press("Enter")
    await page.wait_for_url(f"{here}/en/settings/security")
    await expect(page.get_by_text("ada@example.org").first).to_be_visible()

    await page.get_by_role("link", name="Unlink").click()
    await page.get_by_role("button", name="Unlink").click()

    await expect(page.get_by_role("alert")).to_contain_text("only way to sign in")
    assert set(visitor.elsewhere) <= {url for url in visitor.elsewhere if url.startswith(f"{issuer.url}/authorize?")}
    assert visitor.elsewhere
    visitor.tolerated.append("status of 409")
    assert visitor.unexpected() == []
    await visitor.context.close()


async def test_axe_finds_nothing_on_pages_of_other_sites(chromium: Browser, campus: Site, issuer: Issuer) -> None:
    visitor = await VisitorFactory(chromium, campus).admit()
    page = await visitor.page()
    here = f"http://{campus.hosts[1]}"

    await page.goto(f"{here}/en/sign-up")
    await assert_accessible_everywhere(page, "sign-up with other sites")
    issuer.claims = {"email_verified": False, "sub": "nobody"}
    await page.goto(f"{here}/en/sign-in")
    await page.locator('a[href*="/with/campus"]').click()
    await page.wait_for_url(f"{here}/en/sign-in")
    await expect(page.get_by_role("status").first).to_be_visible()
    await assert_accessible_everywhere(page, "refused by another site")
    issuer.claims = {}
    await page.locator('a[href*="/with/campus"]').click()
    await page.wait_for_url(f"{here}/en/")
    inside = ("settings/security", "settings/security/providers/campus")
    for name in inside:
        await page.goto(f"{here}/en/{name}")
        await assert_accessible_everywhere(page, name)
    await assert_fits_phones_in("ko", page, [f"{here}/ko/{name}" for name in inside])
    assert visitor.unexpected() == []
    await visitor.context.close()
