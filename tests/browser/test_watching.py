"""What watches the pages sees what it looks for: else the other tests here could not fail."""

import asyncio

import pytest
from playwright.async_api import Browser
from tests.browser.axe import CONTRAST, violations
from tests.browser.visitor import PHONE, visiting

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

URL = "http://127.0.0.1:1/console/"
HEAD = '<!doctype html><html lang="en"><title>A page</title>'

POLICY = "<meta http-equiv=content-security-policy content=\"script-src 'none'\">"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("<script>alert('in')</script>", "a dialog: in"),
        ("<img src=x onerror=\"throw new Error('in')\">", "error: in"),
        ("<script>console.error('in')</script>", " says: in"),
        ("<img src='http://elsewhere.example.org/a.png'>", "a request to http://elsewhere"),
        ("<script>open('http://elsewhere.example.org/')</script>", "a new window: "),
        (f"{POLICY}<script>1</script>", "script-src 'none'"),
    ],
    ids=["dialog", "error", "console", "elsewhere", "window", "policy"],
)
async def test_what_must_not_happen_is_noticed(browser: Browser, content: str, fault: str) -> None:
    """Each kind of it, though the page is otherwise as it should be."""
    async with visiting(browser, URL) as visitor:
        await visitor.page.set_content(HEAD + content)
        async with asyncio.timeout(20):
            while not any(fault in each for each in visitor.faults):
                await visitor.page.evaluate("1")
        visitor.faults.clear()


async def test_what_is_too_wide_is_found_and_what_scrolls_by_itself_is_not(
    browser: Browser,
) -> None:
    """At the width of a phone."""
    wide = '<div class="wide" style="width: 600px">a</div>'
    async with visiting(browser, URL, width=PHONE) as visitor:
        await visitor.page.set_content(HEAD + wide)
        assert "div.wide: a" in await visitor.overflow()
        await visitor.page.set_content(f'{HEAD}<div style="overflow-x: auto">{wide}</div>')
        assert await visitor.overflow() == []


async def test_what_keeps_people_out_is_found(browser: Browser) -> None:
    """An image that says nothing, and text that is hard to see."""
    async with visiting(browser, URL) as visitor:
        await visitor.page.set_content(
            f"{HEAD}<main><h1>A</h1><img src='data:,'><p style='color: #ccc'>pale</p></main>"
        )
        found = await violations(visitor.page)
        assert {each.split(":")[0] for each in found} == {
            "critical image-alt",
            "serious color-contrast",
        }
        (pale,) = await violations(visitor.page, CONTRAST)
        assert "p" in pale
