"""Models that break every rule, in a real sandbox, with canaries outside of it."""

import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import get_args

import pytest
import pytest_asyncio
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.sandboxes import started

from turnout.core.runs import Outcome
from turnout.sandbox.base import Command, Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.hostile import Canaries, drill, hostile_arguments

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.cases, pytest.mark.abuse]

FILES = {"a.py": b"x = 1\n", "test_a.py": b"def test(): ...\n", "big": b"y" * 30_000}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(sandbox_state: Path) -> AsyncIterator[Sandbox]:
    """Start the sandbox that all runs are in, one after another."""
    async with started(BubblewrapDriver(sandbox_state)) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def outside() -> Iterator[Path]:
    """Make a folder that any user of this machine may enter."""
    with tempfile.TemporaryDirectory(prefix="turnout-canaries-") as folder:
        path = Path(folder)
        path.chmod(0o711)
        yield path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def canaries(outside: Path) -> AsyncIterator[Canaries]:
    """Set out what nothing inside may reach."""
    async with Canaries(outside / "canaries") as canaries:
        yield canaries


@settings(max_examples=8, derandomize=True, deadline=None, phases=[Phase.generate])
@given(st.randoms(use_true_random=True))
async def test_odd_turns_end_by_name_and_reach_nothing(
    sandbox: Sandbox, canaries: Canaries, chance: random.Random
) -> None:
    """Whatever the runs before have left in the workspace."""
    for path, data in FILES.items():
        await sandbox.run(Command(("rm", "-rf", "--", path)))
        await sandbox.write(path, data)
    drilled = await drill(chance, sandbox, hostile_arguments(canaries), command_timeout=2.0)
    assert drilled.end is not None
    assert drilled.end.outcome in get_args(Outcome)
    assert drilled.invalid_histories == 0
    assert canaries.touched(drilled.events) == ()
