"""A disk that is full and a clock that jumps: calls answer, and deadlines stay."""

import ast
import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.abuse.kinds import KINDS
from tests.images.debian import require_image
from tests.integration.faults import Bench, three_hundred_files

from turnout.errors import ToolError
from turnout.sandbox.base import Command, Limits
from turnout.sandbox.bubblewrap import BubblewrapDriver

pytestmark = pytest.mark.chaos

SANDBOX = Path(__file__).parents[2] / "src" / "turnout" / "sandbox"
WALL_CLOCK = {
    "inside/checkout.py": "the times that files are given",
    "kubernetes": "leases, which other machines read",
    "workspace/prune.py": "how long ago a folder was used",
    "workspace/shelf.py": "the age of a folder, from one process to the next",
}
"""What may ask for the time of day, and for what; no deadline of this process is among it."""


@pytest.fixture
async def bench(sandbox_state: Path, tmp_path: Path) -> Bench:
    """Prepare a repository."""
    repository = three_hundred_files(tmp_path / "source")
    return await Bench.made(BubblewrapDriver(sandbox_state), repository, sandbox_state)


async def test_a_full_disk_is_told_and_got_over(bench: Bench) -> None:
    """Every call answers while it is full, and works once something was removed."""
    async with bench.opened(Limits(disk_bytes=24 << 20)) as sandbox:
        fill = "cat /dev/zero >fill 2>err; cat /dev/zero >/tmp/fill; tail -1 err; du -m fill"
        full = await sandbox.run(Command(shell=fill, timeout=30))
        assert b"No space left" in full.stdout + full.stderr
        with pytest.raises(ToolError, match="No space left"):
            await sandbox.write("more.txt", b"x" * 100_000)
        assert (await sandbox.read("d1/f1.txt")).data == b"1\n"
        assert (await sandbox.list("d1/*")).total == 30
        await sandbox.run(Command(shell="rm fill err /tmp/fill"))
        await sandbox.write("more.txt", b"x" * 100_000)
        assert [file.path for file in (await sandbox.diff()).files] == ["more.txt"]


@pytest.mark.parametrize("kind", ["bubblewrap", "container"])
async def test_memory_that_runs_out_ends_a_command_and_not_the_sandbox(
    kind: str, sandbox_state: Path, tmp_path: Path
) -> None:
    """The agent lives, and where all of it is counted the end of the command is called `oom`."""
    if kind == "container":
        await asyncio.to_thread(require_image)
    repository = three_hundred_files(tmp_path / "source")
    bench = await Bench.made(KINDS[kind](sandbox_state), repository, sandbox_state)
    body = "import time; held = bytearray(b'x') * (100 << 20); time.sleep(2); print('HELD')"
    one = f'python3 -ISE -c "{body}" & all="$all $!"'
    limits = Limits(memory_bytes=160 << 20, disk_bytes=48 << 20)
    async with bench.opened(limits) as sandbox:
        hogs = "\n".join([one] * 5) + "\nfor each in $all; do wait $each || exit 3; done"
        result = await sandbox.run(Command(shell=hogs, timeout=60))
        assert result.stdout.count(b"HELD") < 5
        assert result.exit.reason == "oom" or "cgroup" not in sandbox.isolation
        assert not result.ok
        assert (await sandbox.read("d1/f1.txt")).data == b"1\n"
        assert (await sandbox.run(Command(("true",)))).ok


def asks_for_the_time_of_day(path: Path) -> bool:
    """Whether a module does."""
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    asked = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    return bool(asked & {"time.time", "time.time_ns", "time.localtime", "datetime.now"})


def test_no_deadline_depends_on_the_time_of_day() -> None:
    """A clock that is set forwards or back ends no command early and none late."""
    asking = [path.relative_to(SANDBOX) for path in SANDBOX.rglob("*.py")]
    asking = [path for path in asking if asks_for_the_time_of_day(SANDBOX / path)]
    allowed = [path for path in asking if {str(path), path.parts[0]} & set(WALL_CLOCK)]
    assert asking == allowed


CLOCK_THAT_JUMPS = """
import asyncio, itertools, sys, time
from pathlib import Path
real, jumps = time.time, itertools.cycle((86400.0 * 365, -86400.0 * 365, 0.0))
time.time = lambda: real() + next(jumps)
from turnout.core.ids import RunId
from turnout.sandbox.base import Command, Limits
from turnout.sandbox.bubblewrap import BubblewrapDriver

async def main():
    sandbox = await BubblewrapDriver(Path(sys.argv[1])).start_bare(RunId("run-c10c"), (), Limits())
    begin = time.monotonic()
    slow = await sandbox.run(Command(shell="sleep 0.5; echo whole", timeout=10))
    late = await sandbox.run(Command(shell="sleep 30", timeout=0.5))
    await sandbox.close()
    print(slow.exit.reason, slow.stdout, late.exit.reason, time.monotonic() - begin < 15)

asyncio.run(main())
"""


async def test_a_clock_that_jumps_changes_no_deadline(tmp_path: Path) -> None:
    """A year forwards and back between any two looks at the clock."""
    program = [sys.executable, "-c", CLOCK_THAT_JUMPS, str(tmp_path)]
    done = await asyncio.to_thread(
        subprocess.run, program, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "exited b'whole\\n' timeout True\n", done.stderr
