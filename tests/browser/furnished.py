"""A service on which something has happened, so that its pages have something to show."""

import asyncio
from dataclasses import dataclass

from tests.acceptance.command import FIX, TASK
from tests.browser import hostile
from tests.browser.ordering import GATED, call, gated_turns, ordered
from tests.browser.real_console import RealConsole

from turnout.testing.turns import Turn

__all__ = ["Furnished", "furnish"]


@dataclass(frozen=True, slots=True)
class Furnished:
    """Names of runs."""

    fixed: str
    """Resolved, with tests."""
    hostile: str
    """Everything in it attacks who looks at it."""
    waiting: str
    """For a person's decision."""

    @property
    def runs(self) -> tuple[str, ...]:
        """All of them."""
        return (self.fixed, self.hostile, self.waiting)


async def furnish(console: RealConsole) -> Furnished:
    """Have runs of three kinds happen, a policy changed, a key made and a question asked."""
    fixed, attacking, waiting, *_ = await asyncio.gather(
        ordered(console, TASK, FIX, until="run_ended", repo="pages", labels=["team:web"]),
        ordered(console, hostile.TASK, hostile.TURNS, until="run_ended", surface="shell"),
        ordered(console, GATED, gated_turns("It is new."), until="approval_asked"),
        _governed(console),
    )
    return Furnished(fixed, attacking, waiting)


async def _governed(console: RealConsole) -> None:
    """Let a policy be changed twice, and be broken in its dry run; ask a model something."""
    for allow in (["read_file", "run_tests"], ["read_file"]):
        file = {"objective": "cost", "tools": {"mode": "dry_run", "allow": allow}}
        await call(console, "PUT", "/policies/team", "admin", json={"policy": file})
    await call(console, "POST", "/keys", "admin", json={"name": "ci", "project": "shop"})
    console.spoken.teach("What is a siding?", [Turn("A second track.")])
    await call(
        console,
        "POST",
        "/chat/completions",
        "admin",
        json={
            "model": "auto",
            "routing": {"policy": "team", "session": "siding"},
            "messages": [{"role": "user", "content": "What is a siding?"}],
            "tools": [{"type": "function", "function": {"name": "run_tests", "parameters": {}}}],
        },
    )
