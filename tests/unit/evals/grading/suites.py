"""A suite of tests in memory, for what grades by running one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from turnout.core.runs import TestReport
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import Command, Sandbox
from turnout.testing.sandbox import ScriptedSandbox

FILES = {"calc.py": "a\n", "tests/test_calc.py": "t\n"}
HIDDEN = {"tests/test_hidden.py": "hidden"}
INSTANCE = Instance("one", "text", "", "HEAD", FILES, HIDDEN, "", (), (), "pytest", None, "d")
RIGHT = b"diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-a\n+b\n"
"""Mends `calc.py`."""

BROKEN = {"tests/test_hidden.py::test_h": "failed", "tests/test_calc.py::test_a": "passed"}
MENDED = dict.fromkeys(BROKEN, "passed")

_CANARY = re.compile(r"tests/test_[0-9a-f]{8}\.py")
_DEFINED = re.compile(r"^class (\w+)|^( *)def (\w+)", re.MULTILINE)


def failing_canaries(sandbox: ScriptedSandbox) -> dict[str, str]:
    """Return the tests of canaries, which fail as they should."""
    found: dict[str, str] = {}
    for path, file in sandbox.files.items():
        name = ""
        for known in _DEFINED.finditer(file.data.decode() if _CANARY.fullmatch(path) else ""):
            name = known[1] or name
            if known[3]:
                found["::".join((path, name, known[3]) if known[2] else (path, known[3]))] = (
                    "failed"
                )
    return found


@dataclass
class ToySuite:
    """Tests that end as told, one way without the fix and another with it."""

    before: Mapping[str, str] = field(default_factory=lambda: BROKEN)
    after: Mapping[str, str] = field(default_factory=lambda: MENDED)
    canaries: Callable[[ScriptedSandbox], Mapping[str, str]] = failing_canaries
    ended: TestReport | None = None
    """How a run with the fix ends in place of that; the tests of `after` are put in."""
    lines: list[str] = field(default_factory=list)
    """What was run."""
    limits: list[float] = field(default_factory=list)
    """Seconds that each run might take."""

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Report without running anything."""
        assert isinstance(sandbox, ScriptedSandbox)
        self.lines.append(f"{command} {selector}".rstrip())
        self.limits.append(timeout)
        fixed = sandbox.files["calc.py"].data == b"b\n"
        outcomes = {**(self.after if fixed else self.before), **self.canaries(sandbox)}
        passed = tuple(name for name, end in outcomes.items() if end == "passed")
        failed = tuple(name for name, end in outcomes.items() if end == "failed")
        await sandbox.run(Command(shell=command))
        if fixed and self.ended is not None:
            return replace(self.ended, passed=passed, failed=failed)
        return TestReport(command, 1 if failed else 0, passed, failed, 0.1, "")
