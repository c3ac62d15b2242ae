"""The tools of the `files` and `review` surfaces, and those beside a surface."""

from dataclasses import replace

import pytest

from turnout.agent.base import AgentConfig, Brief
from turnout.agent.tools.base import AgentTool, Arguments, ToolContext, ToolOutput
from turnout.agent.tools.fetch_url import FetchUrl
from turnout.agent.tools.list_directory import ListDirectory
from turnout.agent.tools.run_command import RunCommand
from turnout.agent.tools.search_files import SearchFiles
from turnout.agent.tools.surfaces import SURFACES, surface_of
from turnout.agent.tools.write_file import WriteFile
from turnout.core.ids import RunId
from turnout.core.runs import Connection
from turnout.errors import ConfigError, ToolError
from turnout.testing.sandbox import FakeFile, ScriptedSandbox, result

BRIEF = Brief(RunId("run-1"), "Fix it.", "files", "pytest", None, ("tests/test_a.py",))


async def call(sandbox: ScriptedSandbox, tool: AgentTool, **arguments: str | int) -> ToolOutput:
    """Call a tool with arguments that were read already."""
    return await tool.call(Arguments(arguments), ToolContext(sandbox, BRIEF, AgentConfig()))


def workspace() -> ScriptedSandbox:
    """Return a small repository."""
    return ScriptedSandbox(
        {
            "src/a.py": "x = 1\n",
            "src/deep/b.py": "y = 1\n",
            "[id]/page.py": "z = 1\n",
            "run.sh": FakeFile(b"echo a\n", 0o755),
            "tests/test_a.py": "def test(): pass\n",
        }
    )


async def test_a_whole_file_is_written_as_it_was_sent() -> None:
    """A new one in a new folder, and one in place of an existing one, whose mode stays."""
    sandbox = workspace()
    said = await call(sandbox, WriteFile(), path="new/café.py", content="a\r\nb")
    assert "5 bytes" not in said.text
    assert sandbox.files["new/café.py"].data == b"a\r\nb"
    await call(sandbox, WriteFile(), path="run.sh", content="echo b\n")
    assert (sandbox.files["run.sh"].data, sandbox.files["run.sh"].mode) == (b"echo b\n", 0o755)


@pytest.mark.cases
@pytest.mark.parametrize("path", ["../x", "/etc/x", "tests/test_a.py", "", "a\0b"])
async def test_what_may_not_be_written_is_refused(path: str) -> None:
    """Outside the repository, an existing test, and what is no path."""
    sandbox = workspace()
    before = dict(sandbox.files)
    with pytest.raises(ToolError):
        await call(sandbox, WriteFile(), path=path, content="x")
    assert sandbox.files == before


async def test_a_folder_is_listed_once_deep() -> None:
    """Folders end with a slash; a name that looks like a glob is a name."""
    sandbox = workspace()
    assert (await call(sandbox, ListDirectory())).text.split("\n") == [
        "[id]/",
        "run.sh",
        "src/",
        "tests/",
    ]
    assert (await call(sandbox, ListDirectory(), path="src/")).text == "a.py\ndeep/"
    assert (await call(sandbox, ListDirectory(), path="[id]")).text == "page.py"
    assert "no folder" in (await call(sandbox, ListDirectory(), path="nowhere")).text


async def test_a_command_runs_under_either_name() -> None:
    """`run_command` is what `run` is."""
    sandbox = workspace()
    sandbox.answer("ls", result(b"a\n", code=2))
    assert (await call(sandbox, RunCommand(), command="ls")).text == "exit 2\na\n"
    with pytest.raises(ToolError, match="empty"):
        await call(sandbox, RunCommand(), command=" ")


async def test_lines_are_found_with_their_place() -> None:
    """What does not match and what is no expression say so."""
    sandbox = workspace()
    assert (await call(sandbox, SearchFiles(), pattern="[xy] =")).text.split("\n") == [
        "src/a.py:1: x = 1",
        "src/deep/b.py:1: y = 1",
    ]
    narrow = await call(sandbox, SearchFiles(), pattern="= 1", glob="src/*.py")
    assert narrow.text == "src/a.py:1: x = 1"
    assert "No line" in (await call(sandbox, SearchFiles(), pattern="nothing")).text
    with pytest.raises(ToolError, match="regular expression"):
        await call(sandbox, SearchFiles(), pattern="(")


@pytest.mark.parametrize(
    "url", ["", "file:///etc/passwd", "ftp://a.example", "http://", "http://[", "http://é.example"]
)
async def test_what_is_no_web_address_is_refused(url: str) -> None:
    """No command is started for it."""
    sandbox = workspace()
    with pytest.raises(ToolError, match="no http or https address"):
        await call(sandbox, FetchUrl(), url=url)
    assert not sandbox.commands


async def test_a_page_is_fetched_from_inside() -> None:
    """The address is an argument and meets no shell; a refusal comes with its reason."""
    sandbox = workspace()
    sandbox.answer("", result(b"200 text/html https://a.example\nhello"), result(b"", code=1))
    url = "https://a.example/$(id)"
    assert "hello" in (await call(sandbox, FetchUrl(), url=url)).text
    assert url in sandbox.commands[0].argv
    sandbox.asked = (Connection("a.example", 443, False, "a.example is not on the list"),)
    with pytest.raises(ToolError, match="could not be fetched"):
        await call(sandbox, FetchUrl(), url=url)


async def test_what_is_left_out_of_a_page_is_said() -> None:
    """A model never takes the ends of a page for the whole."""
    sandbox = workspace()
    whole = result(b"200 text/plain https://a.example\nhead and tail")
    sandbox.answer("", replace(whole, exit=replace(whole.exit, stdout_omitted=512)))
    said = await call(sandbox, FetchUrl(), url="https://a.example")
    assert said.text.endswith("[512 bytes from the middle of the page were not kept]")


def test_a_surface_may_have_further_tools() -> None:
    """Each once; a name that nobody knows is wrong settings."""
    names = [spec.name for spec in surface_of("shell", ["search_files", "search_files"]).specs]
    assert names == ["run", "read_file", "edit_file", "finish", "search_files"]
    assert surface_of("review", ["search_files"]) == SURFACES["review"]
    assert not any(tool.writes for tool in SURFACES["review"].tools)
    with pytest.raises(ConfigError, match="search_file"):
        surface_of("shell", ["search_file"])
