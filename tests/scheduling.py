"""Which tests share a worker: those of a file, because they share what its fixtures have made."""

import re
from collections.abc import Mapping
from typing import Final

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

__all__ = ["ByFile"]

_TOGETHER: Final[Mapping[str, str]] = {
    "tests/integration/test_container_life.py": "containers",
    "tests/integration/test_container_walls.py": "containers",
    "tests/integration/test_container_warm.py": "containers",
    "tests/integration/test_sandbox_faults_killed.py": "sandbox faults",
    "tests/integration/test_sandbox_faults_leaks.py": "sandbox faults",
}
"""Files that count what the whole machine holds of one kind, so that they must not overlap."""

_BROWSER: Final = "tests/browser/"
"""One browser, and one service, is enough."""

_KIND: Final = re.compile(r"tests/abuse/test_table\.py::test_the_walls_hold\[(.+)-\d+\]")
"""Each kind of walls is tried by a process of its own, a minute long."""


class ByFile(LoadFileScheduling):
    """Hands out files whole, in their order, so that slow ones come first."""

    def _split_scope(self, nodeid: str) -> str:
        if kind := _KIND.fullmatch(nodeid):
            return f"walls of {kind[1]}"
        if nodeid.startswith(_BROWSER):
            return _BROWSER
        file = nodeid.partition("::")[0]
        return _TOGETHER.get(file, file)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give what a worker has left to others, but not the test that it died of.

        That one has failed, and is not to kill the others as well.
        """
        work = self.assigned_work[node]
        left = [test for tests in work.values() for test, done in tests.items() if not done]
        fatal = left[0] if left else None
        if fatal is not None:
            work[self._split_scope(fatal)][fatal] = True
        self.assigned_work[node] = {
            scope: tests for scope, tests in work.items() if not all(tests.values())
        }
        super().remove_node(node)
        return fatal
