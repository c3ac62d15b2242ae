"""Policies and keys in a browser: changed, compared, taken back, enforced."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from playwright.async_api import expect
from tests.browser.conftest import Visit
from tests.browser.ordering import call
from tests.browser.real_console import RealConsole
from tests.browser.visitor import PHONE
from tests.samples import receipt

from turnout.core.clock import SystemClock
from turnout.store.receipts import ReceiptsStore

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SECONDS = 30.0


async def test_a_policy_is_changed_and_compared_and_taken_back(
    console: RealConsole, visit: Visit
) -> None:
    """A draft that cannot be is not taken; each change stays, with who made it and why."""
    async with visit("admin") as visitor:
        page = visitor.page
        await visitor.open("policies/default/edit")
        text, note = page.get_by_label("Policy", exact=True), page.get_by_label("Why")
        await text.fill('objective = "fastest"')
        await expect(page.locator("#check").get_by_role("alert")).to_contain_text("objective")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert").first).to_contain_text("objective")
        await expect(text).to_have_value('objective = "fastest"')
        for objective in ("cost", "quality"):
            await visitor.open("policies/default/edit")
            await text.fill(f'objective = "{objective}"')
            await note.fill(f"{objective} <i>first</i>")
            await page.get_by_role("button", name="Save").click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("Policy default")
            await expect(page.get_by_text(f"{objective} <i>first</i>")).to_be_visible()
        await page.get_by_role("link", name="What changed").first.click()
        row = page.get_by_role("row", name="objective")
        await expect(row.get_by_role("cell")).to_have_text(["cost", "quality"])
        await page.get_by_role("link", name="Back to the policy").click()
        await page.get_by_text("Roll back to revision 1", exact=True).press("Enter")
        await page.get_by_label("Why").fill("Too dear.")
        await page.get_by_role("button", name="Roll back to revision 1").press("Enter")
        await expect(page.get_by_role("heading", name="Revision 3, in force")).to_be_visible()
        await expect(page.get_by_text("back to 1")).to_be_visible()
        await expect(page.get_by_label("The policy as TOML")).to_contain_text('objective = "cost"')
        await visitor.open("events/changes?subject=default")
        newest = page.get_by_role("row").nth(1)
        await expect(newest).to_contain_text("admin")
        await expect(newest).to_contain_text("roll")
    shown = await call(console, "GET", "/policies/default", "admin")
    assert shown["policy"]["objective"] == "cost"


async def test_two_who_edit_a_policy_at_once_find_the_way_on(
    console: RealConsole, visit: Visit
) -> None:
    """Whoever comes second keeps what was written, sees both changes and saves on top of them."""
    await call(console, "PUT", "/policies/both", "admin", json={"policy": {"objective": "cost"}})
    async with visit("admin") as first, visit("admin", width=PHONE) as second:
        for visitor in (first, second):
            await visitor.open("policies/both/edit")
        await first.page.get_by_label("Policy", exact=True).fill('objective = "latency"')
        await first.page.get_by_role("button", name="Save").click()
        await expect(first.page.get_by_role("heading", level=1)).to_have_text("Policy both")
        page, draft = second.page, 'objective = "quality"\n# mine'
        text = page.get_by_label("Policy", exact=True)
        await text.fill(draft)
        await page.get_by_role("button", name="Save", exact=True).click()
        conflict = page.get_by_role("alert").filter(has_text="Somebody else saved revision 2")
        await expect(conflict).to_be_visible()
        await expect(text).to_have_value(draft)
        rows = conflict.get_by_role("row", name="objective")
        await expect(rows.nth(0)).to_contain_text("cost")
        await expect(rows.nth(0)).to_contain_text("latency")
        await expect(rows.nth(1)).to_contain_text("quality")
        over = page.get_by_role("button", name="Save on top of revision 2")
        await expect(over).to_be_focused()
        await over.press("Enter")
        await expect(page.get_by_role("heading", name="Revision 3, in force")).to_be_visible()
    shown = await call(console, "GET", "/policies/both", "admin")
    assert shown["policy"]["objective"] == "quality"


async def test_a_quiet_dry_run_is_enforced_with_one_click(
    console: RealConsole, visit: Visit
) -> None:
    """What it would have refused is listed by tool and key; then it refuses it."""
    file = {"tools": {"mode": "dry_run", "allow": ["read_file"]}}
    await call(console, "PUT", "/policies/quiet", "admin", json={"policy": file})
    async with visit("admin", width=PHONE) as visitor:
        page = visitor.page
        await _declared(console, "rm_rf")
        row = page.get_by_role("row", name="rm_rf").filter(has_text="operator")
        async with asyncio.timeout(SECONDS):
            while not await row.is_visible():
                await visitor.open("policies/team/report")
        await visitor.open("policies/quiet")
        await expect(page.get_by_role("main")).to_contain_text("too early to enforce")
        await expect(page.get_by_role("button", name="Enforce")).to_have_count(0)
        await _asked(console, days_ago=9)
        await visitor.open("policies/quiet/report")
        await page.get_by_role("button", name="Enforce").click()
        await expect(page.get_by_role("main")).to_contain_text('mode = "enforce"')
    shown = await call(console, "GET", "/policies/quiet", "admin")
    assert shown["policy"]["tools"]["mode"] == "enforce"


async def _declared(console: RealConsole, tool: str) -> None:
    """Send a request with a tool outside the list of a policy in its dry run."""
    function = {"type": "function", "function": {"name": tool, "parameters": {}}}
    body = {"model": "auto", "messages": [{"role": "user", "content": "Hi"}], "tools": [function]}
    body["routing"] = {"policy": "team"}
    await call(console, "POST", "/chat/completions", json=body)


async def _asked(console: RealConsole, *, days_ago: int) -> None:
    """Have a request under the policy on record, with a tool of its list."""
    at = SystemClock().now() - timedelta(days=days_ago)
    made = receipt("req-quiet", key="operator")
    asked = replace(made, at=at, policy="quiet", tools_outside=())
    await ReceiptsStore(console.database).add(asked)


async def test_a_key_is_shown_once_and_opens_until_it_is_revoked(
    console: RealConsole, visit: Visit
) -> None:
    """Whoever is signed in with it is shut out at once."""
    async with visit("admin") as boss, visit(None) as guest:
        page = boss.page
        await boss.open("keys/_new")
        await page.get_by_label("Name").fill("guest")
        await page.get_by_role("radio", name="viewer").check()
        await page.get_by_role("button", name="Create key").click()
        key = await page.get_by_label("The key").input_value()
        await guest.sign_in(key)
        await boss.open("keys/guest")
        assert key not in await page.content()
        await page.get_by_text("Shut this key for good").press("Enter")
        await page.get_by_role("button", name="Revoke guest").press("Enter")
        await expect(page.get_by_role("main")).to_contain_text("revoked")
        async with asyncio.timeout(SECONDS):
            while "/sign-in" not in guest.page.url:
                await guest.open("runs")
