"""Pages as they look once somebody has done something on them: forms, answers, mistakes."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from tests.browser.furnished import ASKED, RESULTS, STEADY, Furnished
from tests.browser.visitor import Visitor

__all__ = ["SCENES", "Scene"]

Scene = Callable[[Visitor, Furnished], Awaitable[None]]
"""Brings the page of an admin to where it is to be looked at."""

_NOBODY: Final = "run-000000000000"
_PROBE: Final = 90_000.0
"""Milliseconds that the requests of a probe may take on a busy machine."""


async def _wrong_order(visitor: Visitor, _: Furnished) -> None:
    """Order a run that cannot be, with all of the form open."""
    page = visitor.page
    await visitor.open("runs/new")
    await page.get_by_text("Tests, tools and limits").press("Enter")
    await page.get_by_text("Of a review: the change to read").press("Enter")
    await page.get_by_label("Task", exact=True).fill("Fix it.")
    await page.get_by_label("Repository", exact=True).fill("nowhere")
    await page.get_by_label("Steps at most").fill("many")
    await page.get_by_role("button", name="Order the run").click()
    await page.locator("[aria-invalid]").first.wait_for()


async def _no_run(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("runs?words=nothing+like+that")


async def _no_runs(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("runs?project=elsewhere")


async def _opened(visitor: Visitor, made: Furnished) -> None:
    """Look into the order, a model call, a tool call and a test run of a run."""
    page = visitor.page
    await visitor.open(f"runs/{made.fixed}")
    await page.get_by_text("Task and order").press("Enter")
    for kind in ("call", "tool"):
        row = page.locator(f"#rows > li.{kind}").first
        await row.locator("summary").press("Enter")
        await row.locator(".detail").first.wait_for()
    tests = page.locator("#rows > li", has_text="Tests after")
    await tests.locator("summary").press("Enter")
    await tests.locator(".detail").wait_for()
    await page.locator("#diff table").wait_for()


async def _unified(visitor: Visitor, made: Furnished) -> None:
    await visitor.open(f"runs/{made.fixed}/diff?view=unified")


async def _said(visitor: Visitor, made: Furnished) -> None:
    """Open the page of its own that an entry of the story has."""
    await visitor.open(f"runs/{made.fixed}")
    link = visitor.page.locator("#rows > li.call [hx-get]").last
    address = await link.get_attribute("hx-get")
    assert address is not None
    await visitor.open(address.removeprefix("/console/"))


async def _wrong_policy(visitor: Visitor, _: Furnished) -> None:
    await _draft(visitor, 'objective = "fastest"')
    await visitor.page.locator("#check").get_by_role("alert").wait_for()


async def _right_policy(visitor: Visitor, _: Furnished) -> None:
    """Change fields of each kind in a draft."""
    await _draft(visitor, 'objective = "quality"\n[tools]\nmode = "enforce"\nallow = ["run"]\n')
    await visitor.page.locator("#check").get_by_role("table").wait_for()


async def _draft(visitor: Visitor, text: str) -> None:
    await visitor.open("policies/team/edit")
    await visitor.page.get_by_label("Policy", exact=True).fill(text)


async def _signed_out_meanwhile(visitor: Visitor, _: Furnished) -> None:
    """Let the session of a page end that stays open."""
    context = visitor.page.context
    kept = await context.cookies()
    await visitor.open("policies/team/edit")
    await context.clear_cookies()
    await visitor.page.get_by_label("Policy", exact=True).fill('objective = "cost"')
    await visitor.page.locator("#notice").get_by_role("link").wait_for()
    await context.add_cookies([{**cookie} for cookie in kept])


async def _roll_back(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("policies/team")
    await visitor.page.get_by_text("Roll back to revision 1", exact=True).press("Enter")


async def _quiet(visitor: Visitor, _: Furnished) -> None:
    await visitor.open(f"policies/{STEADY}")


async def _quiet_report(visitor: Visitor, _: Furnished) -> None:
    await visitor.open(f"policies/{STEADY}/report")
    await visitor.page.get_by_text("As a table").press("Enter")


async def _answer(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("playground")
    await visitor.page.get_by_label("Prompt").fill(ASKED)
    await visitor.page.get_by_role("button", name="Send").click()
    await visitor.page.get_by_role("heading", name="Decision").wait_for()


async def _explained(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("playground")
    await visitor.page.get_by_label("Prompt").fill("Count <b>bold</b> sidings.")
    await visitor.page.get_by_role("button", name="Explain only").click()
    await visitor.page.get_by_role("heading", name="Decision").wait_for()


async def _wrong_request(visitor: Visitor, _: Furnished) -> None:
    page = visitor.page
    await visitor.open("playground")
    for summary in ("Instructions, tools, kind of step", "A whole request, or a draft policy"):
        await page.get_by_text(summary).press("Enter")
    await page.get_by_label("Request as JSON").fill("{broken")
    await page.get_by_role("button", name="Explain only").click()
    await page.locator("#result").get_by_role("alert").wait_for()


async def _no_request(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("playground/request?id=req-none")


async def _key_made(visitor: Visitor, _: Furnished) -> None:
    """Have a key shown once; each look makes another."""
    page = visitor.page
    await visitor.open("keys")
    name = f"shown-{await page.get_by_role('row').count()}"
    await visitor.open("keys/_new")
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Requests a minute").fill("60")
    await page.get_by_role("button", name="Create key").click()
    await page.get_by_label("The key").wait_for()


async def _wrong_key(visitor: Visitor, _: Furnished) -> None:
    page = visitor.page
    await visitor.open("keys/_new")
    await page.get_by_label("Name").fill("two words")
    await page.get_by_label("Requests a minute").fill("many")
    await page.get_by_role("button", name="Create key").click()
    await page.get_by_role("alert").first.wait_for()


async def _revoked(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("keys/gone")


async def _revoking(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("keys/admin")
    await visitor.page.get_by_text("Shut this key for good").press("Enter")


async def _probed(visitor: Visitor, _: Furnished) -> None:
    page = visitor.page
    await visitor.open("models/of?id=scripted%2Flarge")
    await page.get_by_role("button", name="Probe", exact=True).click()
    said = page.get_by_role("status").filter(has_text=re.compile("Probed|The probe failed"))
    await said.wait_for(timeout=_PROBE)


async def _connection(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("connections")
    await visitor.page.get_by_role("button", name="Check desk").click()
    await visitor.page.get_by_text("answers", exact=True).wait_for()


async def _evaluation(visitor: Visitor, _: Furnished) -> None:
    await visitor.open(f"evaluations/report?name={RESULTS}")


async def _applied(visitor: Visitor, made: Furnished) -> None:
    """Let routing go by an evaluation, after a look at what that changes."""
    await _previewed(visitor, made)
    await visitor.page.get_by_role("button", name="Apply").click()
    await visitor.page.get_by_text("newest", exact=True).wait_for()


async def _previewed(visitor: Visitor, made: Furnished) -> None:
    await _evaluation(visitor, made)
    await visitor.page.get_by_role("button", name="See what that would change").click()
    await visitor.page.get_by_role("heading", level=1, name="Apply evaluation").wait_for()


async def _taken_back(visitor: Visitor, made: Furnished) -> None:
    link = visitor.page.get_by_role("link", name="Take back")
    await visitor.open("evaluations")
    if not await link.count():
        await _applied(visitor, made)
    await link.first.click()
    await visitor.page.get_by_role("heading", level=1, name="Take back").wait_for()


async def _usage_as_table(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("usage?since=30d&by=key&by=model")
    for summary in await visitor.page.get_by_text("As a table").all():
        await summary.press("Enter")


async def _no_usage(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("usage?session=none-like-that")


async def _wrong_time(visitor: Visitor, _: Furnished) -> None:
    await visitor.open("usage?since=yesterday+or+so")


async def _not_there(visitor: Visitor, _: Furnished) -> None:
    await visitor.open(f"runs/{_NOBODY}")


SCENES: Final[Mapping[str, Scene]] = {
    "runs-new-wrong": _wrong_order,
    "runs-none-fits": _no_run,
    "runs-none": _no_runs,
    "run-opened": _opened,
    "run-diff-unified": _unified,
    "run-entry": _said,
    "policy-wrong": _wrong_policy,
    "policy-checked": _right_policy,
    "policy-signed-out-meanwhile": _signed_out_meanwhile,
    "policy-roll-back": _roll_back,
    "policy-quiet": _quiet,
    "policy-quiet-report": _quiet_report,
    "playground-answer": _answer,
    "playground-explained": _explained,
    "playground-wrong": _wrong_request,
    "request-missing": _no_request,
    "key-made": _key_made,
    "key-wrong": _wrong_key,
    "key-revoked": _revoked,
    "key-revoking": _revoking,
    "model-probed": _probed,
    "connection-checked": _connection,
    "evaluation-report": _evaluation,
    "evaluation-preview": _previewed,
    "evaluation-applied": _applied,
    "evaluation-taken-back": _taken_back,
    "usage-as-table": _usage_as_table,
    "usage-none": _no_usage,
    "usage-wrong": _wrong_time,
    "error-not-found": _not_there,
}
"""In this order: what some leave behind, others show."""
