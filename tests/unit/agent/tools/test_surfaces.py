"""What a surface gives a run where the user has set nothing, and what counts where they have."""

from dataclasses import replace

import pytest
from tests.unit.agent.workshop import RUN, Workshop

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.tools.base import ToolContext
from turnout.agent.tools.bounds import bounds_of
from turnout.agent.tools.surfaces import check_tools, surface_of
from turnout.core.runs import TestReport
from turnout.core.tasks import SurfaceName
from turnout.errors import ConfigError
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox, result
from turnout.testing.turns import Call, Turn

LONG = "".join(f"line {n}\n" for n in range(9_000))
RUNS = {
    "guide": Call("run_tests"),
    "shell": Call("run", {"command": "pytest"}),
    "files": Call("run_command", {"command": "pytest"}),
}
SHELL_LIKE = (300.0, 6_000, 20_000)


def prints_much(sandbox: ScriptedSandbox) -> None:
    """Have the tests print more than any model reads at once."""
    sandbox.answer("pytest", result(LONG.encode()))


@pytest.mark.parametrize(
    ("surface", "config", "expected"),
    [
        ("guide", AgentConfig(), (120.0, 8_000, 8_000)),
        ("shell", AgentConfig(), SHELL_LIKE),
        ("files", AgentConfig(), SHELL_LIKE),
        ("files", AgentConfig(output_cap=3_000), (300.0, 3_000, 3_000)),
        ("guide", AgentConfig(test_timeout=7.0), (7.0, 8_000, 8_000)),
        ("shell", AgentConfig(command_timeout=7.0), (7.0, 6_000, 20_000)),
    ],
)
async def test_each_surface_has_its_own_time_and_room(
    surface: SurfaceName, config: AgentConfig, expected: tuple[float, int, int]
) -> None:
    """Most of an output that is cut is its end; a page of a file is cut where it goes on."""
    seconds, most, page = expected
    calls = (RUNS[surface], Call("read_file", {"path": "long"}))
    client = ScriptedModelClient(Turn(calls=calls), others={"summary": Turn("")})
    once = replace(config, max_steps=1)
    workshop = Workshop({"long": LONG}, surface, once, prints_much)
    run = await workshop.work(client)
    printed, read = run.results
    (timeout,) = [c.timeout for c in run.sandbox.commands if "pytest" in (c.shell or "")]
    assert timeout == seconds
    assert most - 200 < len(printed) <= most
    assert len(printed.partition("characters left out")[2]) > 0.7 * most
    assert printed.rstrip().endswith("line 8999")
    assert page - 250 < len(read) <= page
    assert read.startswith("line 0\n")
    assert "read on with offset=" in read


@pytest.mark.parametrize(
    ("surface", "config", "steps"),
    [
        ("guide", AgentConfig(), 20),
        ("shell", AgentConfig(), 40),
        ("files", AgentConfig(), 40),
        ("guide", AgentConfig(max_steps=41), 41),
    ],
)
async def test_each_surface_has_its_own_number_of_steps(
    surface: SurfaceName, config: AgentConfig, steps: int
) -> None:
    """The run ends with the step that reaches it."""
    reads = [Turn(calls=(Call("read_file", {"path": f"{n}"}),)) for n in range(45)]
    files = {f"{n}": f"{n}\n" for n in range(45)}
    client = ScriptedModelClient(*reads)
    run = await Workshop(files, surface, config).work(client)
    assert run.end.reason == f"The limit of {steps} steps was reached."
    assert len(client.asked("act")) == steps == bounds_of(surface, config).steps


@pytest.mark.parametrize(
    ("surface", "window", "most"), [("shell", 8_000, 6_000), ("guide", 4_000, 3_000)]
)
async def test_a_page_leaves_room_in_a_small_window(
    surface: SurfaceName, window: int, most: int
) -> None:
    """A quarter of it at most, whatever the surface would give; what the user has set counts."""
    page = Turn(calls=(Call("read_file", {"path": "long"}),))
    config = AgentConfig(window=window, max_steps=3)
    run = await Workshop({"long": LONG}, surface, config).work(
        ScriptedModelClient(page, page, page)
    )
    assert [most - 250 < len(result) <= most for result in run.results] == [True] * 3
    told = replace(config, output_cap=9_000)
    assert bounds_of(surface, told).read_cap == 9_000


@pytest.mark.parametrize(
    ("took", "config", "seconds"),
    [
        (20.0, AgentConfig(), 120.0),
        (100.0, AgentConfig(), 300.0),
        (100.0, AgentConfig(test_timeout=150.0), 150.0),
    ],
)
def test_a_slow_suite_has_the_time_that_it_needs(
    took: float, config: AgentConfig, seconds: float
) -> None:
    """A model could never see it pass if its runs had less time than ours."""
    before = TestReport("pytest", 1, (), ("a",), took, "")
    brief = Brief(RUN, "Fix it.", "guide", "pytest", before)
    assert ToolContext(ScriptedSandbox(), brief, config).bounds.test_timeout == seconds


def test_a_tool_that_no_surface_has_is_named_before_a_run() -> None:
    """With the one that was meant; tools of MCP servers are known to their servers alone."""
    check_tools(["apply_patch", "edit_file", "search_files", "mcp:tracker/search"])
    with pytest.raises(ConfigError, match=r"no tool called 'aply_patch'.*`apply_patch`"):
        check_tools(["run", "aply_patch"])
    with pytest.raises(ConfigError, match="no further tool called nothing"):
        surface_of("guide", ["nothing"])
