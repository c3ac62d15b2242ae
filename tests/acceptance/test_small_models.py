"""A small model repairs: real command, real sandbox, scripted replies that call no tool."""

from tests.acceptance.command import TASK, Command

from turnout.testing.model_server import ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository

CONFIGURATION = """\
[providers.small]
base_url = "{url}"

[[deployments]]
model = "small"
provider = "small"
profile = "repair"
tools = "absent"
price = {{input_usd = "0", output_usd = "0"}}
"""

WRONG = Turn("```python\ndef page(items, number, size):\n    return items\n```")
RIGHT = Turn("""\
Here is the function:
```python
def page(items, number, size):
    if size < 1:
        raise ValueError("size must be at least 1")
    start = (number - 1) * size
    return items[start : start + size]
```
""")


async def test_the_tests_choose_among_the_replies(turnout: Command, pages: TinyRepository) -> None:
    """The wrong candidate is taken back, the right one is the diff, its docstring kept."""
    async with ScriptedModelServer((WRONG, RIGHT), models=["small"]) as server:
        run = turnout.configured(CONFIGURATION.format(url=server.base_url))
        done = await run("run", TASK, "--repo", str(pages), "--json")
    result = done.object
    assert (done.code, result["outcome"], result["verdict"]["name"]) == (0, "answered", "resolved")
    assert [call["kind"] for call in result["model_calls"]] == ["act", "act"]
    assert "page in pages.py replaced" in result["explanation"]
    changed = [line for line in result["diff"].splitlines() if line[:1] in "+-"]
    assert changed[2:] == ["-    start = number * size", "+    start = (number - 1) * size"]


async def test_without_a_candidate_that_passes_nothing_changes(
    turnout: Command, pages: TinyRepository
) -> None:
    """The end says what would help."""
    async with ScriptedModelServer((WRONG,) * 20, models=["small"]) as server:
        run = turnout.configured(CONFIGURATION.format(url=server.base_url))
        done = await run("run", TASK, "--repo", str(pages), "--json")
    result = done.object
    assert (done.code, result["outcome"], result["diff"]) == (1, "step_limit", "")
    assert "repair_samples" in result["reason"]
