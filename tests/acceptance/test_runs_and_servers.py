"""A run whose model has tools of an MCP server that came with the repository."""

from pathlib import Path

from tests.acceptance.command import ANSWER, EXPLAIN, PATCH, PLAN, TASK, Command

from turnout.testing.model_server import Call, ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository

PROGRAM = Path(__file__, "../../integration/plain_mcp_server.py").resolve()
CONFIG = """
[policy.tools]
mode = "enforce"
allow = ["list_files", "read_file", "run_tests", "apply_patch", "mcp:notes/note"]
[agent]
approvals = ["mcp:notes"]
[[agent.mcp]]
name = "notes"
command = ["python3", "server.py"]
allow = ["note", "gone"]
[[agent.mcp]]
name = "away"
command = ["python3", "no-such-server.py"]
[providers.scripted]
base_url = "{base_url}"
[[deployments]]
model = "m"
provider = "scripted"
"""


async def test_a_server_in_the_repository_works_inside_the_sandbox_of_a_run(
    turnout: Command, pages: TinyRepository
) -> None:
    """Settings, start, policy, approval, call, record; what is missing is said at the start."""
    pages.write({"server.py": PROGRAM.read_bytes(), ".gitignore": "calls.log\n"})
    pages.commit("A server of notes")
    note = Turn(calls=(Call("mcp__notes__note", {"text": "milk", "times": "2"}),))
    async with ScriptedModelServer((PLAN, note, PATCH, ANSWER, EXPLAIN)) as server:
        command = turnout.configured(CONFIG.format(base_url=server.base_url))
        done = await command("run", TASK, "--repo", str(pages), "--json", "--approve", "mcp:notes")
        told = server.requests[2].messages[-1]["content"]
    assert (done.code, done.object["verdict"]["name"]) == (0, "resolved"), done.err
    assert told == '{"text": "milk", "times": 2}'
    (allowed,) = done.object["approvals"]
    assert (allowed["name"], allowed["allowed"]) == ("mcp:notes/note", True)
    said = " ".join(done.object["warnings"])
    assert "The MCP server notes has no tool gone that could be shown." in said
    assert "The MCP server away: its program ended with status 2" in said
    assert "server.py" not in done.object["diff"]
