"""Languages other than Python: what is read, what is asked, what a reply changes."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.repair import RepairStrategy
from turnout.agent.repair.reading import Sources, read_sources
from turnout.core.events import Event, LoopEnded
from turnout.core.ids import RunId
from turnout.core.runs import TestReport
from turnout.sandbox.base import Sandbox
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.sandbox import ScriptedSandbox
from turnout.testing.turns import Turn

JS = {
    "package.json": '{"scripts": {"test": "node --test"}}',
    "tools/release.py": "print()\n",
    "src/add.js": "exports.add = (a, b) => a - b;\n",
    "src/unused.js": "exports.x = 1;\n",
    "test/add.test.js": "const { add } = require('../src/add');\nassert.equal(add(1, 2), 3);\n",
}
GO = {
    "sum.go": "package sum\n\nfunc Sum(a, b int) int { return a - b }\n",
    "other.go": "package sum\n",
    "sum_test.go": "package sum\n\nfunc TestSum(t *testing.T) { Sum(1, 2) }\n",
}
FAILED = TestReport("npm test", 1, (), (), 0.5, "not ok 1 - add\n  at test/add.test.js:2:1\n")


def brief(files: Mapping[str, str], report: TestReport) -> Brief:
    """Describe the work on these files."""
    tests = tuple(path for path in files if "test" in path)
    return Brief(RunId("run-1"), "The sum is wrong.", "guide", "npm test", report, tests)


async def read(files: dict[str, str], output: str) -> Sources:
    """Read what an output leads to."""
    report = replace(FAILED, output=output)
    sandbox = ScriptedSandbox(dict(files))
    return await read_sources(sandbox, brief(files, report), report)


@pytest.mark.parametrize(
    ("files", "output", "first"),
    [
        (JS, "  at Object.add (/repo/src/add.js:1:30)\n", "src/add.js"),
        (JS, "  at test/add.test.js:2:1\n", "src/add.js"),
        (JS, "1 failing", "src/add.js"),
        (GO, "--- FAIL: TestSum\n    sum_test.go:3: got -1\n", "sum.go"),
        ({"lib/calc.rb": "def total(a)\nend\n", "test/t_test.rb": "total(1)\n"}, "", "lib/calc.rb"),
    ],
)
async def test_the_file_at_fault_is_read_first(
    files: dict[str, str], output: str, first: str
) -> None:
    """By its frame, by what its test imports, by the name of its test, by what the test calls."""
    sources = await read(files, output)
    assert next(iter(sources.others)) == first
    assert not sources.modules
    assert not set(sources.others) & {"test/add.test.js", "sum_test.go", "src/unused.js"}
    assert all("test" in path for path in sources.other_tests)


async def test_a_python_traceback_is_worked_on_as_python() -> None:
    """Whatever runs the tests."""
    files = {**JS, "calc.py": "x = 1\n", "tests/test_calc.py": "import calc\n"}
    sources = await read(files, 'File "/repo/calc.py", line 1\n')
    assert sources.modules[0].path == "calc.py"


async def adds(sandbox: Sandbox, command: str, *, selector: str = "", timeout: float) -> TestReport:
    """Pass where the file adds."""
    right = b"a + b" in (await sandbox.read("src/add.js")).data
    return replace(FAILED, exit_code=0 if right else 1)


EDIT = """\
src/add.js
<<<<<<< SEARCH
    exports.add = (a, b) => a - b;
=======
    exports.add = (a, b) => a + b;
>>>>>>> REPLACE
"""


async def test_a_reply_in_blocks_is_judged_by_the_exit_status() -> None:
    """The prompt has the failing test, what it leads to, and the form of the reply."""
    client, sandbox = ScriptedModelClient(Turn("Nothing."), Turn(EDIT)), ScriptedSandbox(dict(JS))
    strategy = RepairStrategy(client, sandbox, AgentConfig(), FrozenClock(), run_tests=adds)
    events: list[Event] = [event async for event in strategy.run(brief(JS, FAILED))]
    end = events[-1]
    assert isinstance(end, LoopEnded)
    assert end.outcome == "answered"
    assert sandbox.files["src/add.js"].data == b"exports.add = (a, b) => a + b;\n"
    text = client.requests[0].messages[-1].content
    assert "# file: test/add.test.js" in text
    assert "# file: src/add.js" in text
    assert "not ok 1 - add" in text
    assert "<<<<<<< SEARCH" in text
