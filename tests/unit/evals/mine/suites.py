"""A history with one fix, and a suite of tests that is read from the files of a fake sandbox."""

import re
from pathlib import Path

from turnout.core.runs import TestReport
from turnout.sandbox.base import Sandbox
from turnout.testing.repositories import TinyRepository
from turnout.testing.sandbox import ScriptedSandbox

BUGGY = {
    "calc.py": '"""Sums."""\n\n\ndef add(a, b):\n    return a - b\n',
    "tests/test_calc.py": "# test_old calc.py def\n",
    "README.md": "calc\n",
}
FIXED = {
    "calc.py": BUGGY["calc.py"].replace("a - b", "a + b"),
    "tests/test_calc.py": "# test_old calc.py def\n# test_add calc.py a + b\n",
}
_TEST = re.compile(r"^# (\S+) (\S+) (.+)$", re.MULTILINE)


def history(path: Path, test: str = "test_add") -> TinyRepository:
    """Make a repository whose second commit is a fix with a test."""
    repository = TinyRepository(path, BUGGY)
    fixed = {name: text.replace("test_add", test) for name, text in FIXED.items()}
    repository.commit("Fix add, which subtracts (#7)\n\nIt was a typo.", fixed)
    return repository


class FileSuite:
    """Each line `# NAME PATH TEXT` of a file in `tests` is a test: the file at PATH holds TEXT.

    A PATH of `seed` passes with hash seeds in TEXT alone, `slow` never ends, and `import` keeps its
    file from being collected unless `calc.py` holds TEXT.
    """

    def __init__(self, *, ended: int | None = None) -> None:
        """With `ended` no test comes to run, and the command ends with that status."""
        self.commands: list[str] = []
        self.timeouts: list[float] = []
        self._ended = ended

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Run every test that there is, whatever the command selects."""
        assert isinstance(sandbox, ScriptedSandbox)
        assert selector == ""
        self.commands.append(command)
        self.timeouts.append(timeout)
        if self._ended is not None:
            return TestReport(command, self._ended, (), (), 1.0, "Killed")
        texts = {path: file.data.decode() for path, file in sandbox.files.items()}
        passed: list[str] = []
        failed: list[str] = []
        for path in sorted(each for each in texts if each.startswith("tests/")):
            for name, where, text in _TEST.findall(texts[path]):
                if where == "slow":
                    return TestReport(command, None, (), (), timeout, "", timed_out=True)
                if where == "import" and text not in texts.get("calc.py", ""):
                    failed.append(path)
                    break
                good = where == "import" or _passes(where, text, texts, command)
                (passed if good else failed).append(f"{path}::{name}")
        output = "\n".join(f"FAILED {each} - AssertionError: assert {each}" for each in failed)
        return TestReport(command, int(bool(failed)), tuple(passed), tuple(failed), 0.5, output)


def _passes(where: str, text: str, texts: dict[str, str], command: str) -> bool:
    if where == "seed":
        found = re.search(r"PYTHONHASHSEED=(\d)", command)
        return found is None or found[1] in text
    return text in texts.get(where, "")
