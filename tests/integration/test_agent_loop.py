"""The loops of the guides on real parts: HTTP to a gateway, a sandbox, a repository."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.client import HttpModelClient
from turnout.agent.explain import explain
from turnout.agent.loop import LoopStrategy
from turnout.core.clock import SystemClock
from turnout.core.events import Event, Explained, LoopEnded, ModelCallDone, ToolCallDone
from turnout.core.ids import RunId, new_run_id
from turnout.core.policies import Policy, SessionCaps, ToolRule
from turnout.core.tasks import SurfaceName
from turnout.sandbox.base import BaseSpec, Limits, Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.testrun import detect_test_command, list_test_files, run_tests
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, catalog_at, running_gateway
from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import PAGINATION_FIXED, TinyRepository, buggy_pagination
from turnout.testing.turns import Call, Turn

WRONG = "    start = number * size\n"
RIGHT = "    start = (number - 1) * size\n"
DIFF = f"```diff\n--- a/pages.py\n+++ b/pages.py\n@@ -1,9 +1,9 @@\n-{WRONG}+{RIGHT}```"
PLAN = Turn("Read pages.py, mend `page`, run the tests.")


@asynccontextmanager
async def workspace(
    state: Path, repository: TinyRepository, run_id: RunId
) -> AsyncIterator[Sandbox]:
    """Yield a real sandbox at the repository's head."""
    driver = BubblewrapDriver(state)
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    sandbox = await driver.create(run_id, base, Limits())
    try:
        yield sandbox
    finally:
        await sandbox.close()


@asynccontextmanager
async def models(
    turns: Sequence[Turn], policy: Policy | None = None
) -> AsyncIterator[tuple[HttpModelClient, RunningGateway, ScriptedModelServer]]:
    """Yield a client to a gateway before a scripted model."""
    async with ScriptedModelServer(turns) as server:
        catalog = catalog_at(server.base_url, deployment("p/m"))
        setup = GatewaySetup(policy=policy or Policy())
        async with (
            running_gateway(catalog, setup) as gateway,
            HttpModelClient(
                base_url=gateway.base_url, uds=None, api_key="", clock=SystemClock()
            ) as client,
        ):
            yield client, gateway, server


async def brief_for(sandbox: Sandbox, run_id: RunId, surface: SurfaceName) -> Brief:
    """Look at the workspace as the service does."""
    command = await detect_test_command(sandbox)
    assert command is not None
    before = await run_tests(sandbox, command, timeout=60)
    assert before.failed
    files = await list_test_files(sandbox)
    return Brief(run_id, "The first page is wrong.", surface, command, before, files)


GUIDE_TURNS = (
    PLAN,
    Turn(calls=(Call("list_files"), Call("read_file", {"path": "pages.py"}))),
    Turn(calls=(Call("apply_patch", {"diff": DIFF.replace("pages", "tests/test_pages")}),)),
    Turn(calls=(Call("apply_patch", {"diff": DIFF}),)),
    Turn(calls=(Call("run_tests"),)),
    Turn("`page` counted from 0; it now counts from 1."),
    Turn("The start of a page was one page late."),
)
EDIT = {"path": "pages.py", "old": WRONG, "new": RIGHT}
SHELL_TURNS = (
    PLAN,
    Turn(calls=(Call("run", {"command": "python -m pytest -q 2>&1 | tail -5"}),)),
    Turn("I see."),
    Turn(calls=(Call("edit_file", EDIT), Call("run", {"command": "python -m pytest -q"}))),
    Turn(calls=(Call("finish", {"summary": "`page` now counts from 1."}),)),
    Turn("The start of a page was one page late."),
)

FILES_TURNS = (
    PLAN,
    Turn(calls=(Call("list_directory", {"path": "."}), Call("read_file", {"path": "pages.py"}))),
    Turn(calls=(Call("write_file", {"path": "tests/test_pages.py", "content": ""}),)),
    Turn(calls=(Call("write_file", {"path": "pages.py", "content": PAGINATION_FIXED}),)),
    Turn(calls=(Call("run_command", {"command": "python -m pytest -q"}),)),
    Turn("`page` counted from 0; it now counts from 1."),
    Turn("The start of a page was one page late."),
)


@pytest.mark.parametrize(
    ("surface", "turns"),
    [("guide", GUIDE_TURNS), ("shell", SHELL_TURNS), ("files", FILES_TURNS)],
)
async def test_the_loop_of_each_guide_mends_a_bug(
    sandbox_state: Path, tmp_path: Path, surface: SurfaceName, turns: Sequence[Turn]
) -> None:
    """Plan, tool steps, end and description; the diff is right and our own tests pass."""
    run_id, config = new_run_id(), AgentConfig()
    repository = buggy_pagination(tmp_path / "repository")
    async with (
        workspace(sandbox_state, repository, run_id) as sandbox,
        models(turns) as (client, gateway, server),
    ):
        brief = await brief_for(sandbox, run_id, surface)
        strategy = LoopStrategy(client, sandbox, config, SystemClock())
        events: list[Event] = [event async for event in strategy.run(brief)]
        assert isinstance(end := events[-1], LoopEnded)
        assert end.outcome == "answered"
        patch = await sandbox.diff()
        after = await run_tests(sandbox, brief.test_command or "", timeout=60)
        assert after.ok
        described = [
            event
            async for event in explain(
                client,
                config,
                run_id=run_id,
                step=99,
                prompt=brief.prompt,
                patch=patch,
                tests_after=after,
            )
        ]
    assert [file.path for file in patch.files] == ["pages.py"]
    assert RIGHT.encode() in patch.diff
    assert described[-1] == Explained("The start of a page was one page late.")
    assert not server.history_faults
    calls = [event for event in (*events, *described) if isinstance(event, ModelCallDone)]
    recorded = await gateway.receipts.of_session(
        calls[0].routing.session, key=gateway.receipt().key
    )
    assert [call.request_id for call in calls] == [receipt.request_id for receipt in recorded]


async def test_a_tool_that_policy_forbids_ends_the_run_refused(
    sandbox_state: Path, tmp_path: Path
) -> None:
    """The plan declares no tools and passes; the first act step names the one outside the list."""
    run_id = new_run_id()
    rule = ToolRule("enforce", ("list_files", "read_file", "run_tests"))
    repository = buggy_pagination(tmp_path / "repository")
    async with (
        workspace(sandbox_state, repository, run_id) as sandbox,
        models([PLAN], Policy(tools=rule)) as (client, _, _),
    ):
        brief = await brief_for(sandbox, run_id, "guide")
        strategy = LoopStrategy(client, sandbox, AgentConfig(), SystemClock())
        events = [event async for event in strategy.run(brief)]
    assert isinstance(end := events[-1], LoopEnded)
    assert end.outcome == "refused"
    assert "apply_patch" in end.reason
    assert not any(isinstance(event, ToolCallDone) for event in events)


async def test_a_session_cap_ends_the_run_with_its_work_so_far(
    sandbox_state: Path, tmp_path: Path
) -> None:
    """Three requests are a plan and two act steps; the edit stays, the facts describe it."""
    run_id, config = new_run_id(), AgentConfig()
    edit = Turn(calls=(Call("edit_file", EDIT),))
    look = Turn(calls=(Call("read_file", {"path": "pages.py"}),))
    repository = buggy_pagination(tmp_path / "repository")
    async with (
        workspace(sandbox_state, repository, run_id) as sandbox,
        models([PLAN, edit, look], Policy(session=SessionCaps(max_requests=3))) as (client, _, _),
    ):
        brief = await brief_for(sandbox, run_id, "shell")
        strategy = LoopStrategy(client, sandbox, config, SystemClock())
        events = [event async for event in strategy.run(brief)]
        patch = await sandbox.diff()
        described = [
            event
            async for event in explain(
                client,
                config,
                run_id=run_id,
                step=99,
                prompt=brief.prompt,
                patch=patch,
                tests_after=None,
            )
        ]
    assert isinstance(end := events[-1], LoopEnded)
    assert end.outcome == "capped"
    assert RIGHT.encode() in patch.diff
    assert isinstance(explained := described[-1], Explained)
    assert explained.text.startswith("- Changed: `pages.py` (modified).")
