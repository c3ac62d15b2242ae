"""What a model installs is the run's alone; what its patch declares is what the verdict knows."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.acceptance.command import TASK, Command
from tests.acceptance.neighbours import Neighbours, wheel
from tests.acceptance.shell import results, shell

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import TinyRepository

NAME = "turnoutexample"
MODULE = "def start_of(number, size):\n    return (number - 1) * size\n"
MEND = (
    f"sed -i -e '1a from {NAME} import start_of' "
    "-e 's/= number \\* size/= start_of(number, size)/' pages.py"
)
WORK = (f"pip install -q {NAME}", MEND, "python -m pytest -q")
PYPROJECT = f'[project]\\nname = "pages"\\nversion = "1"\\ndependencies = ["{NAME}"]\\n'
DECLARE = {
    "requirements.txt": f"echo {NAME} >requirements.txt",
    "pyproject.toml": f"printf '{PYPROJECT}' >pyproject.toml",
}


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[tuple[str, str]]:
    """Serve an index of one package, whose file is elsewhere; yields `HOST:PORT` of both."""
    name, data = wheel(NAME, "9999", MODULE)
    async with Neighbours(tmp_path, {name: data}).served() as files:
        # The page of pip is where it is found out which hosts files are on.
        listed = {name: b"", "pip-0-py3-none-any.whl": b""}
        pages = Neighbours(tmp_path, listed, files_at=f"http://{files}")
        async with pages.served() as place:
            yield place, files


def allowed(turnout: Command, index: tuple[str, str]) -> Command:
    """Return the command of a user whose pip knows the index, under a policy with packages."""
    place, files = index
    pip = f"extra-index-url = http://{place}/simple\ntrusted-host = {place} {files}\n"
    file = turnout.folder / "pip.conf"
    file.write_text(f"[global]\n{pip}")
    return turnout.configured("[policy.egress]\npackages = true\n").where(PIP_CONFIG_FILE=str(file))


async def test_what_a_model_installs_stays_with_its_run(
    turnout: Command, pages: TinyRepository, index: tuple[str, str]
) -> None:
    """It is there for every later command and on record, and the verdict knows nothing of it."""
    async with ScriptedModelServer(shell(*WORK), models=["m"]) as model:
        command = allowed(turnout.using(model.base_url), index)
        run = ("run", TASK, "--repo", str(pages), "--surface", "shell", "--json")
        result = (await command(*run)).object
        told = results(model)
    assert [text.partition("\n")[0] for text in told] == ["exit 0", "exit 0", "exit 0"], told
    assert "3 passed" in told[-1]
    asked = {f"{each['host']}:{each['port']}" for each in result["connections"] if each["allowed"]}
    assert asked >= set(index)
    assert (result["verdict"]["name"], result["exit_code"]) == ("not_resolved", 1)


@pytest.mark.parametrize("file", sorted(DECLARE))
async def test_what_the_patch_declares_is_there_for_the_verdict(
    turnout: Command, pages: TinyRepository, index: tuple[str, str], file: str
) -> None:
    """Its environment is made anew, and the run says so."""
    async with ScriptedModelServer(shell(*WORK, DECLARE[file]), models=["m"]) as model:
        command = allowed(turnout.using(model.base_url), index)
        run = ("run", TASK, "--repo", str(pages), "--surface", "shell")
        done = await command(*run)
    assert done.code == 0, done.err
    assert "Verdict: resolved" in done.out
    assert f"The patch declares other dependencies; the tests run with {NAME}" in done.err
