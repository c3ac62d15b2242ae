"""The real `turnout` command as a subprocess, and the turns of a model that fixes a bug."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.acceptance.forks import Forked, Forks

from turnout.testing.model_server import Call, Turn

KEY = "sesame"
TASK = "test_the_first_page_starts_at_the_first_item fails; fix the code"
DIFF = """\
--- a/pages.py
+++ b/pages.py
@@ -5,4 +5,4 @@
     if size < 1:
         raise ValueError("size must be at least 1")
-    start = number * size
+    start = (number - 1) * size
     return items[start : start + size]
"""

PLAN = Turn("Read pages.py; the start of a page counts from 0.")
READ = Turn(calls=(Call("read_file", {"path": "pages.py"}),))
PATCH = Turn(calls=(Call("apply_patch", {"diff": DIFF}),))
TEST = Turn(calls=(Call("run_tests"),))
ANSWER = Turn("Pages count from 1, and the start now does too.")
EXPLAIN = Turn("The start of a page was computed as if pages counted from 0.")
FIX = (PLAN, READ, PATCH, TEST, ANSWER, EXPLAIN)


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        """The one JSON object on standard output."""
        (line,) = self.out.splitlines()
        return json.loads(line)


@dataclass(frozen=True)
class Command:
    """Starts `turnout` in a folder and an environment of its own."""

    folder: Path
    environment: Mapping[str, str] = field(repr=False)
    forks: Forks = field(repr=False)

    def where(self, **environment: str) -> "Command":
        """Return the command with more variables set."""
        return replace(self, environment={**self.environment, **environment})

    def inside(self, folder: Path) -> "Command":
        """Return the command started in another folder."""
        return replace(self, folder=folder)

    def using(self, base_url: str, key: str = KEY, model: str = "") -> "Command":
        """Return the command with an endpoint given by settings alone."""
        given = {"LLM_BASE_URL": base_url, "LLM_API_KEY": key, "LLM_MODEL": model}
        return self.where(**{name: value for name, value in given.items() if value})

    def configured(self, text: str) -> "Command":
        """Return the command started where a turnout.toml holds this text."""
        (self.folder / "turnout.toml").write_text(text)
        return self

    async def start(self, *arguments: str, stdin: int = asyncio.subprocess.DEVNULL) -> Forked:
        """Start it in a session of its own, so that only it gets what is sent to it."""
        return await self.forks.start(arguments, self.folder, self.environment, stdin)

    async def __call__(self, *arguments: str, timeout: float = 60, typed: bytes = b"") -> Done:
        """Run it to its end; `typed` is what stands on its standard input, which is a pipe then."""
        stdin = asyncio.subprocess.PIPE if typed else asyncio.subprocess.DEVNULL
        return await ended(await self.start(*arguments, stdin=stdin), timeout, typed)


async def ended(
    process: asyncio.subprocess.Process | Forked, timeout: float = 60, typed: bytes = b""
) -> Done:
    """Wait for a command; one that hangs is killed with all it started, and fails the test."""
    try:
        async with asyncio.timeout(timeout):
            out, err = await process.communicate(typed or None)
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())
