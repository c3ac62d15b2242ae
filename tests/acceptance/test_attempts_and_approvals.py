"""Approvals, attempts and reviews as the command shows them, in real sandboxes."""

import json

from tests.acceptance.command import FIX, TASK, Command

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository
from turnout.testing.turns import Turn

CONFIG = """
[agent]
{agent}
[providers.scripted]
base_url = "{base_url}"
[[deployments]]
model = "m"
provider = "scripted"
"""


async def test_a_call_that_nobody_can_be_asked_about_is_refused_and_the_run_goes_on(
    turnout: Command, pages: TinyRepository
) -> None:
    """With the rule approved on the command line the same run does its work."""
    async with ScriptedModelServer(FIX) as server:
        rules = 'approvals = ["apply_patch:*.py", "*:no/*"]'
        turnout.configured(CONFIG.format(agent=rules, base_url=server.base_url))
        done = await turnout("run", TASK, "--repo", str(pages), "--json")
    refused = done.object["approvals"][0]
    assert (done.code, done.object["diff"]) == (1, "")
    assert (refused["name"], refused["rule"]) == ("apply_patch", "apply_patch:*.py")
    assert "--approve 'apply_patch:*.py'" in refused["note"]
    async with ScriptedModelServer(FIX) as server:
        turnout.configured(CONFIG.format(agent=rules, base_url=server.base_url))
        done = await turnout(
            "run", TASK, "--repo", str(pages), "--json", "--approve", "apply_patch:*.py"
        )
    assert done.code == 0, done.err
    (allowed,) = done.object["approvals"]
    assert (allowed["allowed"], allowed["by"]) == (True, "--approve")


async def test_an_attempt_that_fails_is_followed_by_one_that_a_review_blocks(
    turnout: Command, pages: TinyRepository
) -> None:
    """The first says that it is done and is not; the second fixes it; the review has its say."""
    note = {"path": "pages.py", "line": 1, "text": "Says too little.", "blocks": True}
    block = Turn(json.dumps({"verdict": "block", "summary": "Not yet.", "notes": [note]}))
    plan, *work, explanation = FIX
    script = (plan, Turn("It is done."), plan, *work, block, explanation)
    async with ScriptedModelServer(script) as server:
        turnout.configured(CONFIG.format(agent="attempts = 2", base_url=server.base_url))
        done = await turnout(
            "run", TASK, "--repo", str(pages), "--review", "block", "--branch", "fixed", "--json"
        )
    result = done.object
    assert (done.code, result["verdict"]["name"], result["chosen_attempt"]) == (1, "resolved", 2)
    assert [use["objective"] for use in result["attempts"]] == ["latency", "quality"]
    assert (result["review"]["blocked"], result["review"]["notes"]) == (
        True,
        [{**note, "severity": "error"}],
    )
    assert not result["delivery"]["done"]
    assert "blocks" in result["delivery"]["detail"]
