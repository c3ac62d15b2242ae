"""Programs written for other sandboxes run with the import and their own settings changed."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.acceptance.command import KEY, Done, ended
from tests.acceptance.neighbours import Neighbours, wheel

from turnout.testing.model_server import Call, RecordedRequest, ScriptedModelServer, Turn
from turnout.testing.repositories import TinyRepository

PROGRAMS = Path(__file__).parent / "programs"
PAGES = """\
\"\"\"Cut a list into pages.\"\"\"


def page(items, number, size):
    \"\"\"Return page `number`, counted from 1.\"\"\"
    start = number * size
    return items[start : start + size]
"""
TEST = """\
from pages import page
from sampler import ITEMS


def test_the_first_page_starts_at_the_first_item():
    assert page(ITEMS, 1, 2) == [1, 2]
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
RUN = Turn(calls=(Call("run", {"command": "python3 -m pytest -q -x"}),))
SOLVE = (
    RUN,
    Turn(calls=(Call("read_file", {"path": "page.py"}), Call("read_file", {"path": "pages.py"}))),
    Turn(calls=(Call("edit_file", '{"path": "pages.py", old'),)),
    Turn("The start of a page is wrong."),
    Turn(calls=(Call("edit_file", {"path": "pages.py", "old": "page", "new": "sheet"}),)),
    Turn(
        calls=(
            Call(
                "edit_file",
                {"path": "pages.py", "old": "= number * size", "new": "= (number - 1) * size"},
            ),
        )
    ),
    RUN,
    Turn(calls=(Call("finish", {"summary": "Pages count from 1."}),)),
)
COUNT = "import sys\nprint(len(open(sys.argv[1]).read().split()))\n"
WRITE = (
    Turn(calls=(Call("read_file", {"path": "/workspace/count.py"}),)),
    Turn(calls=(Call("write_file", {"path": "/workspace/count.py", "content": COUNT}),)),
    Turn(
        calls=(
            Call("write_file", {"path": "/tmp/sample.txt", "content": "one two three"}),
            Call("run_command", {"cmd": "python count.py /tmp/sample.txt"}),
        )
    ),
    Turn(calls=(Call("run_command", {"cmd": "python count.py absent.txt"}),)),
    Turn(calls=(Call("read_file", {"path": "/tmp/sample.txt"}),)),
    Turn("It counts words."),
)


@pytest.fixture
async def neighbours(tmp_path: Path) -> AsyncIterator[tuple[Neighbours, str]]:
    """Serve a repository with a bug, and an index with the one package that its tests need."""
    backend = (PROGRAMS / "backend.py").read_text()
    files = {"pages.py": PAGES, "tests/test_pages.py": TEST}
    TinyRepository(
        tmp_path / "git" / "pages", {**files, "pyproject.toml": PROJECT, "backend.py": backend}
    )
    name, data = wheel("sampler", "1.0", "ITEMS = [1, 2, 3, 4, 5]\n")
    served = Neighbours(tmp_path / "git", {name: data})
    async with served.served() as place:
        yield served, place


async def run_program(
    name: str, folder: Path, environment: dict[str, str], *arguments: str
) -> Done:
    """Run one of the programs as a user does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-W", "error", str(PROGRAMS / name), *arguments),
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    return await ended(process)


def settings_of(server: ScriptedModelServer, state: Path, folder: Path) -> dict[str, str]:
    """Return the environment of a program that uses this model server."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "TURNOUT_HOME": str(state),
        "LANG": "C.UTF-8",
        "LLM_BASE_URL": server.base_url,
        "LLM_API_KEY": KEY,
        "LLM_MODEL": "m",
    }


def told(requests: Sequence[RecordedRequest]) -> list[str]:
    """Return what the model was told of its calls, in order."""
    return [
        str(message["content"])
        for message in requests[-1].messages
        if message.get("role") == "tool"
    ]


async def test_an_agent_of_four_layers_writes_and_runs_a_script(
    state: Path, tmp_path: Path
) -> None:
    """Its model reads whole results, also of what failed."""
    async with ScriptedModelServer(WRITE, models=["m"], api_key=KEY) as server:
        environment = settings_of(server, state, tmp_path)
        done = await run_program("four_layers.py", tmp_path, environment, "Count words.")
    assert (done.code, done.out, done.err) == (0, "It counts words.\n", "")
    absent, wrote, _, counted, failed, sample = told(server.requests)
    assert absent.startswith("Error: ")
    assert "No such file" in absent
    assert wrote == "wrote /workspace/count.py"
    assert counted == "exit code 0\nstdout:\n3"
    assert failed.startswith("Error: The command `python count.py absent.txt` ended with exit code")
    assert "FileNotFoundError" in failed
    assert sample == "one two three"
    assert not server.history_faults


async def test_an_agent_on_an_open_model_fixes_a_bug_and_is_graded(
    state: Path, tmp_path: Path, neighbours: tuple[Neighbours, str]
) -> None:
    """It clones and installs what the settings grant; the tests failed before and pass after."""
    served, place = neighbours
    host = place.partition(":")[0]
    (tmp_path / "turnout.toml").write_text(
        f'[policy.egress]\npackages = true\nprivate = ["{place}"]\n'
    )
    async with ScriptedModelServer(SOLVE, models=["m"], api_key=KEY) as server:
        environment = {
            **settings_of(server, state, tmp_path),
            "CLONE_URL": f"http://{place}/git/pages",
            "PIP_EXTRA_INDEX_URL": f"http://{place}/simple",
            "PIP_TRUSTED_HOST": host,
        }
        done = await run_program("open_models.py", tmp_path, environment)
    assert (done.code, done.err) == (0, "")
    grade = json.loads(done.out)
    assert grade["failed_before"]
    assert grade["passes_after"]
    assert grade["tests_untouched"]
    assert "+    start = (number - 1) * size" in grade["patch"]
    assert json.loads(grade["said"]) == {"summary": "Pages count from 1."}
    assert any("git-upload-pack" in path for path in served.asked)
    assert "/simple/sampler/" in served.asked
    first, absent, text, broken, twice, edited, last = told(server.requests)
    assert first.startswith("exit 1\n")
    assert absent == "error: there is no such file"
    assert text == PAGES
    assert broken.startswith("error: these arguments are no JSON")
    assert twice == "error: `old` is there 3 times"
    assert edited == "edited"
    assert last.startswith("exit 0\n")
    assert not server.history_faults


@pytest.mark.parametrize("granted", ["", '[policy.egress]\nallow = ["example.org"]\n'])
async def test_a_clone_that_is_not_granted_names_the_setting(
    state: Path, tmp_path: Path, granted: str
) -> None:
    """Whether nothing may be reached, or only something else."""
    (tmp_path / "turnout.toml").write_text(granted)
    async with ScriptedModelServer((), models=["m"]) as server:
        environment = {
            **settings_of(server, state, tmp_path),
            "CLONE_URL": "https://git.example.com/team/project",
        }
        done = await run_program("open_models.py", tmp_path, environment)
    assert done.code == 1
    assert "CommandFailedError" in done.err
    assert "turnout: " in done.err
    assert "`[policy.egress] allow`" in done.err
    assert not server.requests
