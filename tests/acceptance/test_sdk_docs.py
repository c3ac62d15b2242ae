"""The programs that the page on the SDK shows, run as they stand there."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from tests.acceptance.command import Done, ended

from turnout.testing.repositories import TinyRepository

PAGE = Path(__file__).parents[2] / "docs/howto/sdk.md"
BLOCK = re.compile(r"```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
TEXT = PAGE.read_text()
PROGRAMS = {
    section.partition("\n")[0]: program
    for section in TEXT.removeprefix("# ").split("\n## ")
    for program in BLOCK.findall(section)
}
"""By the heading that each stands under."""
PRINTED = {
    "Use a sandbox from your own program": ["0 45"],
    "On a repository": ["False True", "+    start = (number - 1) * size"],
    "Failures": [
        "4 The command `python -m pytest nowhere.py` ended with exit code 4.",
        "absent.txt cannot be read: No such file or directory.",
        "True 124",
    ],
    "With an event loop": ["['one\\n', 'one\\n']"],
    "In the tests of your program": ["1 0"],
}


async def run_there(program: str, folder: Path, state: Path) -> Done:
    """Run a program in a folder."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-W", "error", "-c", program),
        cwd=folder,
        env={
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "TURNOUT_HOME": str(state),
        },
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    return await ended(process)


@pytest.mark.parametrize("section", PROGRAMS)
async def test_a_program_of_the_page_prints_what_it_should(
    state: Path, pages: TinyRepository, section: str
) -> None:
    """In a repository with one bug."""
    done = await run_there(PROGRAMS[section], pages.path, state)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert [line for line in PRINTED[section] if line not in lines] == []


def test_every_program_of_the_page_is_run() -> None:
    """A section has one at most."""
    assert len(BLOCK.findall(TEXT)) == len(PROGRAMS) == len(PRINTED)
