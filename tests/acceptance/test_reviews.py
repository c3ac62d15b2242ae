"""`turnout review`: the real command, a real sandbox, a scripted model."""

import asyncio
import json

from tests.acceptance.command import Command
from tests.acceptance.test_service import serving

from turnout.testing.model_server import Call, ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository

NOTE = {"path": "pages.py", "line": 7, "severity": "error", "text": "It counts from 0 again."}
READ = Turn(calls=(Call("read_file", {"path": "pages.py"}),))
BLOCK = Turn(json.dumps({"verdict": "block", "summary": "Not yet.", "notes": [NOTE]}))
APPROVE = Turn(json.dumps({"verdict": "approve", "summary": "Good.", "notes": []}))


def on_a_branch(pages: TinyRepository) -> str:
    """Change a file on a branch, while the one that it was made from goes on; return the range."""
    start = pages.git("branch", "--show-current")
    pages.branch("change")
    pages.commit("Change it.", {"pages.py": "VALUE = 1\n"})
    pages.git("switch", "--quiet", start)
    pages.commit("Go on.", {"other.py": "OTHER = 1\n"})
    return f"{start}..change"


async def test_a_range_of_commits_is_reviewed_here_and_by_a_service(
    turnout: Command, pages: TinyRepository
) -> None:
    """Only what the branch changes is read, in a workspace that holds it; nothing here changes."""
    wanted = on_a_branch(pages)
    before = pages.git("status", "--porcelain", "--branch"), pages.head
    async with ScriptedModelServer((READ, BLOCK)) as server:
        here = turnout.using(server.base_url, model="m")
        done = await here("review", wanted, "--repo", str(pages), "--json")
        asked = json.dumps(server.requests[-1].body)
    result = done.object
    assert (done.code, result["kind"], result["review"]["decision"]) == (1, "review", "block")
    assert result["review"]["notes"] == [{**NOTE, "blocks": True}]
    assert (result["verdict"], result["diff"]) == (None, "")
    assert "+VALUE = 1" in asked
    assert "OTHER" not in asked
    assert "VALUE = 1" in result["tool_calls"][0]["result"]
    after = pages.git("status", "--porcelain", "--branch"), pages.head
    assert after == before
    async with ScriptedModelServer((READ, APPROVE)) as server:
        here = turnout.using(server.base_url, model="m")
        async with serving(here, "--repo", f"shop={pages}") as service:
            done = await here(
                "review", wanted, "--repo", "shop", "--task", "Name it.", "--server", service.url
            )
    assert done.code == 0, done.err
    assert "Decision: approve" in done.out


async def test_a_diff_from_standard_input_that_does_not_apply_is_not_reviewed(
    turnout: Command, pages: TinyRepository
) -> None:
    """The exit code is that of no decision, and no model is asked for one."""
    diff = b"--- a/pages.py\n+++ b/pages.py\n@@ -1 +1 @@\n-no such line\n+b\n"
    async with ScriptedModelServer(()) as server:
        process = await turnout.using(server.base_url, model="m").start(
            "review", "-", "--repo", str(pages), "--json", stdin=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(60):
            out, _ = await process.communicate(diff)
    result = json.loads(out)
    assert (process.returncode, result["review"]["decided"]) == (1, False)
    assert "does not apply" in result["reason"]
