"""Caps and the tool list hold, and a run that they stop keeps its work."""

from tests.acceptance.command import FIX, TASK, Command

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository

CONFIG = """
[policy]
{rules}
[providers.scripted]
base_url = "{base_url}"
[[deployments]]
model = "m"
provider = "scripted"
price = {{ input_usd = "1.00", output_usd = "2.00" }}
"""

READ_ONLY = 'tools = { mode = "%s", allow = ["list_files", "read_file", "run_tests"] }'


async def test_a_tool_outside_the_enforced_list_refuses_the_run(
    turnout: Command, pages: TinyRepository
) -> None:
    """The call is refused with 403 naming the tool; the outcome is `refused`, the exit code 3."""
    async with ScriptedModelServer(FIX) as server:
        turnout.configured(CONFIG.format(rules=READ_ONLY % "enforce", base_url=server.base_url))
        done = await turnout("run", TASK, "--repo", str(pages), "--json")
        assert len(server.requests) == 1
    result = done.object
    assert (done.code, result["outcome"]) == (3, "refused")
    (failed,) = result["failed_calls"]
    assert (failed["status"], failed["code"]) == (403, "tool_not_allowed")
    assert "apply_patch" in failed["error"]


async def test_a_dry_run_of_the_list_records_and_goes_on(
    turnout: Command, pages: TinyRepository
) -> None:
    """The same list refuses nothing before it is enforced."""
    async with ScriptedModelServer(FIX) as server:
        turnout.configured(CONFIG.format(rules=READ_ONLY % "dry_run", base_url=server.base_url))
        done = await turnout("run", TASK, "--repo", str(pages), "--json")
    result = done.object
    assert (done.code, result["outcome"]) == (0, "answered"), done.err
    assert result["priced"]
    assert result["cost_micros"] == 6 * (100 * 1 + 20 * 2)


async def test_a_cap_on_requests_ends_the_run_with_the_diff_so_far(
    turnout: Command, pages: TinyRepository
) -> None:
    """Three requests are a plan and two steps: the patch is in, and it is judged."""
    async with ScriptedModelServer(FIX) as server:
        rules = "session = { max_requests = 3 }"
        turnout.configured(CONFIG.format(rules=rules, base_url=server.base_url))
        done = await turnout("run", TASK, "--repo", str(pages), "--json")
        assert len(server.requests) == 3
    result = done.object
    assert (done.code, result["outcome"]) == (3, "capped")
    assert "(number - 1)" in result["diff"]
    assert result["verdict"]["name"] == "resolved"
    assert result["failed_calls"][-1]["status"] == 429


async def test_a_cap_on_spend_ends_the_run_too(turnout: Command, pages: TinyRepository) -> None:
    """What was spent and reserved counts."""
    async with ScriptedModelServer(FIX) as server:
        rules = 'session = { max_spend_usd = "0.0001" }'
        turnout.configured(CONFIG.format(rules=rules, base_url=server.base_url))
        done = await turnout("run", TASK, "--repo", str(pages), "--json")
    result = done.object
    assert (done.code, result["outcome"]) == (3, "capped")
    assert result["failed_calls"][-1]["status"] == 402


async def test_a_step_limit_ends_the_run_in_order(turnout: Command, pages: TinyRepository) -> None:
    """It is the agent's own limit: the verdict decides the exit code."""
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url)
        done = await command("run", TASK, "--repo", str(pages), "--max-steps", "1", "--json")
    result = done.object
    assert (done.code, result["outcome"]) == (1, "step_limit")
    assert result["verdict"]["name"] == "not_resolved"
