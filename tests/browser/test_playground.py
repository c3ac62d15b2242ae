"""Models asked from the playground: slow ones are seen to work, and are stopped."""

import pytest
from playwright.async_api import expect
from tests.browser.conftest import Visit
from tests.browser.real_console import RealConsole
from tests.browser.visitor import PHONE

from turnout.testing.turns import Turn

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WORK = 60_000.0
"""Milliseconds that an answer may take on a busy machine."""
FIRST = "It begins."
LAST = "That is the end of it."


async def test_a_slow_answer_is_read_while_it_comes(console: RealConsole, visit: Visit) -> None:
    """The page says how long it has waited and for whom, and has the whole in the end."""
    said = f"{FIRST}  <b>bold</b>\n\n" + "word " * 12 + LAST
    console.spoken.teach("Slowly, please", [Turn(said, delay=1.5, pause=0.7)])
    async with visit("operator", width=PHONE) as visitor:
        page = visitor.page
        await visitor.open("playground")
        await page.get_by_label("Prompt").fill("Slowly, please")
        await page.get_by_role("button", name="Send").click()
        so_far = page.locator("#coming-text")
        await expect(page.locator("#coming-time")).to_contain_text("waits for the first word")
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        await expect(so_far).to_contain_text(FIRST, timeout=WORK)
        assert LAST not in (await so_far.text_content() or "")
        await expect(page.locator("#coming-time")).to_contain_text("answers")
        answer = page.get_by_role("region", name="Answer")
        await expect(answer.locator("pre")).to_have_text(said, timeout=WORK)
        await expect(page.get_by_role("heading", name="Decision")).to_be_visible()
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        await expect(so_far).to_have_count(0)


async def test_an_answer_is_stopped(console: RealConsole, visit: Visit) -> None:
    """What had come stays, what was written stays, and the request ends as cancelled."""
    console.spoken.teach("Never end", [Turn(FIRST + "  word " * 200, pause=0.5)])
    async with visit("operator") as visitor:
        page = visitor.page
        await visitor.open("playground")
        await page.get_by_label("Prompt").fill("Never end")
        await page.get_by_role("button", name="Send").press("Enter")
        await expect(page.locator("#coming-text")).to_contain_text(FIRST, timeout=WORK)
        request = await page.locator("#result code").first.inner_text()
        await page.get_by_role("button", name="Stop").press("Enter")
        await expect(page.locator("#coming-time")).to_contain_text("You have stopped it.")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        await expect(page.locator("#coming-text")).to_contain_text(FIRST)
        await expect(page.get_by_label("Prompt")).to_have_value("Never end")
        await expect(page.get_by_role("heading", name="Decision")).to_have_count(0)
        answer = await visitor.open(f"playground/request?id={request}")
        assert answer.status == 200
        await expect(page.get_by_role("main")).to_contain_text("cancelled")


async def test_a_draft_says_on_which_line_it_is_wrong(visit: Visit) -> None:
    """Lines have numbers, and the one that is wrong is shown while it is written."""
    async with visit("admin") as visitor:
        page = visitor.page
        await visitor.open("policies/default/edit")
        text = page.get_by_label("Policy", exact=True)
        await text.fill('objective = "cost"\n\n[tools]\nmode = "never"\n' + "# more\n" * 40)
        await expect(page.locator("#check").get_by_role("alert")).to_contain_text("Line 4:")
        await expect(page.locator("#check li.wrong")).to_contain_text('mode = "never"')
        await expect(page.locator("#numbers mark")).to_have_text("4")
        places = await page.evaluate(_PLACES)
        assert abs(places["number"] - places["line"]) <= 2, places
        assert places["scrolls"] == 0
        await text.fill('objective = "cost"\n')
        await expect(page.locator("#check").get_by_text("sound")).to_be_visible()
        await expect(page.locator("#numbers mark")).to_have_count(0)


_PLACES = """
() => {
  const text = document.querySelector('#f-text');
  const style = getComputedStyle(text);
  const top = text.getBoundingClientRect().top + parseFloat(style.borderTopWidth)
    + parseFloat(style.paddingTop);
  const mark = document.querySelector('#numbers mark').getBoundingClientRect();
  const line = parseFloat(style.lineHeight);
  return {number: mark.top + mark.height / 2, line: top + 3.5 * line,
    scrolls: text.scrollHeight - text.clientHeight};
}
"""
