"""Whatever a task, a model or a repository says, a page shows it and is none the worse."""

import re

import pytest
from playwright.async_api import expect
from tests.browser import hostile
from tests.browser.conftest import Visit
from tests.browser.furnished import Furnished
from tests.browser.visitor import PHONE, SCREEN, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

UNSEEN = re.compile(f"[{hostile.UNSEEN}]")
MADE = """
() => document.querySelectorAll('main :is(script, iframe, object, embed, svg, style, link,'
  + '[srcdoc], [hx-on\\\\:load], a[href^="javascript:"], form[action^="http"], img)').length
"""
"""Counts what no page of a run has, and the strings would make."""
LARGEST = 2_000_000
"""Characters of a page, however much a run has said: the line of a million is in none of them."""


@pytest.fixture
def name(furnished: Furnished) -> str:
    """Return the id of such a run."""
    return furnished.hostile


async def test_nothing_that_a_run_says_gets_out_of_its_place(name: str, visit: Visit) -> None:
    """In the list, in the timeline with every detail open, in both views of the diff.

    Nothing is executed, fetched, or wider than the window; every character can be seen.
    """
    async with visit("operator") as visitor:
        page = visitor.page
        await visitor.open("runs?words=careful")
        await expect(page.get_by_role("link", name="Be careful.").first).to_be_visible()
        await _looked_at(visitor)
        await visitor.open(f"runs/{name}")
        await expect(page.locator("#diff .line.added").first).to_be_attached()
        await page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        await expect(page.locator("details[open] [hx-get][hx-trigger^=toggle]")).to_have_count(0)
        await expect(page.get_by_text("globalThis.within = 1").first).to_be_visible()
        await _looked_at(visitor)
        for shape in ("split", "unified"):
            await page.locator("#diff").get_by_role("link", name=shape).click()
            await expect(page.locator(f"#diff table.{shape}").first).to_be_attached()
            await _looked_at(visitor)


async def _looked_at(visitor: Visitor) -> None:
    page = visitor.page
    text = await visitor.text()
    assert len(text) < LARGEST
    assert UNSEEN.findall(text) == []
    assert await page.evaluate(MADE) == 0
    assert await page.evaluate("globalThis.within") is None
    for width in (PHONE, SCREEN):
        await page.set_viewport_size({"width": width, "height": 900})
        assert await visitor.overflow() == [], (width, page.url)


async def test_what_is_taken_away_is_as_it_was_said(name: str, visit: Visit) -> None:
    """A download is no page: the browser keeps it, whatever is in it."""
    async with visit("operator") as visitor:
        await visitor.open(f"runs/{name}")
        async with visitor.page.expect_download() as started:
            await visitor.page.locator("#diff").get_by_role("link", name="Download").click()
        patch = (await (await started.value).path()).read_bytes()
        assert b"W" * hostile.WIDE in patch
        assert "safe\u202e".encode() in patch
