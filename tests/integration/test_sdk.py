"""The SDK on real sandboxes."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest
from tests.sandboxes import all_commands

from turnout.errors import SandboxDiedError, SandboxUnavailableError, ToolError
from turnout.sdk import AsyncSandbox, Sandbox
from turnout.settings import Settings, load_settings

SLEEPING = "sleep\x0086321"
"""A command line that no other process has."""


@pytest.fixture(scope="module")
def settings(sandbox_state: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return the settings of nobody in particular."""
    environment = {"TURNOUT_HOME": str(sandbox_state)}
    return load_settings(environment=environment, directory=tmp_path_factory.mktemp("cwd"))


@pytest.fixture(scope="module")
def sandbox(settings: Settings) -> Iterator[Sandbox]:
    """Return an empty sandbox that the tests of this file share."""
    try:
        made = Sandbox.create(config=settings)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    with made:
        yield made


def test_commands_start_in_the_workspace_with_what_python_needs(sandbox: Sandbox) -> None:
    """Which may be written to, the environment too."""
    said = sandbox.exec("pwd && python -m pytest --version && pip --version && touch /venv/mine")
    assert said.exit_code == 0
    assert said.stdout.startswith("/workspace\n")


@pytest.mark.parametrize("folder", ["", "/workspace/a/", "/tmp/b/", "/tmp/home/$(id) 'q' \"\n/"])
def test_files_are_written_read_and_removed_anywhere(sandbox: Sandbox, folder: str) -> None:
    """Whatever their names."""
    path = f"{folder}-n *.txt"
    assert not sandbox.files.exists(path)
    sandbox.files.write(path, b"caf\xc3\xa9 \xff\n")
    assert sandbox.files.exists(path)
    assert sandbox.files.read_text(path) == "café \\xff\n"
    assert sandbox.files.read_bytes(path) == b"caf\xc3\xa9 \xff\n"
    sandbox.files.remove(path)
    assert not sandbox.files.exists(path)


def test_a_large_file_comes_back_whole(sandbox: Sandbox) -> None:
    """In the workspace and elsewhere, none of it cut as output would be."""
    data = bytes(range(256)) * 40_000
    for path in ("large", "/tmp/large"):
        sandbox.files.write(path, data)
        assert sandbox.files.read_bytes(path) == data


def test_folders_are_made_and_listed(sandbox: Sandbox) -> None:
    """With what each thing in them is."""
    sandbox.files.make_dir("/tmp/listed/inner")
    sandbox.files.write("/tmp/listed/a.txt", "12345")
    sandbox.exec("ln -s nowhere /tmp/listed/link; mkfifo /tmp/listed/pipe")
    found = {entry.name: (entry.kind, entry.size) for entry in sandbox.files.list("/tmp/listed")}
    assert found == {
        "a.txt": ("file", 5),
        "inner": ("folder", 0),
        "link": ("link", 0),
        "pipe": ("other", 0),
    }
    sandbox.files.remove("/tmp/listed")
    assert not sandbox.files.exists("/tmp/listed")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("absent", "No such file"),
        ("/absent", "No such file"),
        ("/tmp", "folder"),
        ("/dev/zero", "not a regular file"),
        ("/proc/1/environ", "ermission denied"),
    ],
)
def test_what_cannot_be_read_says_why(sandbox: Sandbox, path: str, why: str) -> None:
    """And nothing waits for what never ends."""
    with pytest.raises(ToolError, match=why):
        sandbox.files.read(path)


def test_the_system_cannot_be_written(sandbox: Sandbox) -> None:
    """Nor removed, nor listed where it is not there."""
    with pytest.raises(ToolError, match="/usr/x cannot be written"):
        sandbox.files.write("/usr/x", "")
    with pytest.raises(ToolError, match="/usr/bin/env cannot be removed"):
        sandbox.files.remove("/usr/bin/env")
    with pytest.raises(ToolError, match="/absent cannot be listed: No such file"):
        sandbox.files.list("/absent")


def test_a_server_started_by_one_call_serves_the_next(sandbox: Sandbox) -> None:
    """A model learns to put servers into the background."""
    sandbox.files.write("/tmp/served/page.txt", "hello")
    sandbox.exec("cd /tmp/served; python3 -m http.server 8765 >/dev/null 2>&1 &", check=True)
    fetch = (
        "import time, urllib.request\n"
        "for _ in range(200):\n"
        "    try:\n"
        "        print(urllib.request.urlopen('http://127.0.0.1:8765/page.txt').read().decode())\n"
        "        break\n"
        "    except OSError:\n"
        "        time.sleep(0.05)\n"
    )
    assert sandbox.exec(["python3", "-c", fetch]).stdout == "hello\n"


def test_output_arrives_while_the_command_runs(sandbox: Sandbox) -> None:
    """What the caller does about it, the command can see."""

    def go_on(text: str) -> None:
        if text == "ready\n":
            sandbox.files.write("go", "")

    line = "echo ready; until [ -e go ]; do sleep 0.01; done; echo done"
    assert sandbox.exec(line, on_stdout=go_on, timeout=30).stdout == "ready\ndone\n"


def test_standard_input_is_read(sandbox: Sandbox) -> None:
    """And ends."""
    assert sandbox.exec("tr a-z A-Z", stdin="hello é").stdout == "HELLO é"


def test_a_command_ends_when_its_time_is_over(sandbox: Sandbox) -> None:
    """The sandbox goes on."""
    began = time.monotonic()
    ended = sandbox.exec("echo begun; sleep 600", timeout_ms=300)
    assert time.monotonic() - began < 30
    assert (ended.timed_out, ended.exit_code, ended.stdout) == (True, 124, "begun\n")
    assert sandbox.exec("true").ok


def test_a_folder_that_is_not_there_is_said_in_the_result(sandbox: Sandbox) -> None:
    """As a shell would."""
    ended = sandbox.exec("ls", cwd="/workspace/absent")
    assert ended.exit_code == 127
    assert "not started" in ended.stderr
    assert "No such file" in ended.stderr


def test_a_long_output_keeps_its_head_and_its_tail(sandbox: Sandbox) -> None:
    """64 KiB of it, and says so."""
    ended = sandbox.exec("seq 100000")
    assert ended.truncated
    assert ended.stdout.startswith("1\n2\n")
    assert ended.stdout.endswith("99999\n100000\n")
    assert "bytes left out" in ended.stdout
    assert len(ended.stdout) < 66_000


def test_a_background_command_can_be_watched_and_ended(sandbox: Sandbox) -> None:
    """Its result tells that it was."""
    running = sandbox.exec("echo up; echo up >/tmp/up; exec sleep 600", background=True)
    sandbox.exec("until [ -e /tmp/up ]; do sleep 0.01; done", check=True, timeout=30)
    assert running.is_running()
    running.kill()
    ended = running.wait()
    assert (ended.stdout, ended.exit_code) == ("up\n", 137)
    assert sandbox.exec("pgrep -x sleep").exit_code == 1


def test_a_file_of_the_users_shadows_no_module_elsewhere(sandbox: Sandbox) -> None:
    """The workspace is not on the search path of every program."""
    sandbox.files.write("random.py", "raise SystemExit('mine')")
    assert sandbox.exec("pip --version", cwd="/tmp").ok
    sandbox.files.remove("random.py")


def test_a_fork_goes_its_own_way(sandbox: Sandbox) -> None:
    """From the files as they were."""
    sandbox.files.write("shared", "before")
    with sandbox.fork() as twin:
        twin.files.write("shared", "after")
        assert twin.files.read("shared") == "after"
        assert sandbox.files.read("shared") == "before"


def test_many_threads_may_each_have_their_own(settings: Settings) -> None:
    """All of them on the one loop."""

    def work(number: int) -> str:
        with Sandbox.create(config=settings) as own:
            return own.exec(f"echo {number}").stdout

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(work, range(6))) == [f"{number}\n" for number in range(6)]


def test_a_sandbox_whose_time_is_over_is_gone(settings: Settings) -> None:
    """Also while a command runs."""
    sandbox = Sandbox.create(config=settings, timeout=1)
    with pytest.raises(SandboxDiedError, match="its time is over"):
        sandbox.exec("sleep 600", timeout=60)


async def test_a_cancelled_call_ends_its_command(settings: Settings) -> None:
    """The sandbox goes on."""
    async with await AsyncSandbox.create(config=settings) as sandbox:
        heard = []

        def cancel(text: str) -> None:
            heard.append(text)
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            await sandbox.exec("echo begun; exec sleep 600", on_stdout=cancel)
        line = "until ! pgrep -x sleep; do sleep 0.01; done"
        assert (await sandbox.exec(line, timeout=30)).ok


def text_of(entry: Path) -> str:
    """Return what an entry holds; nothing where its sandbox, another's, has just ended."""
    try:
        return entry.read_text()
    except FileNotFoundError:
        return ""


def test_a_program_that_forgets_its_sandbox_leaves_nothing(
    sandbox: Sandbox, settings: Settings, tmp_path: Path
) -> None:
    """Its entry is gone, which is the last thing of a sandbox to go."""
    program = """
    from turnout import Sandbox
    from turnout.settings import load_settings

    sandbox = Sandbox.create()
    running = sandbox.exec("sleep 600", background=True)
    print(sandbox.id, sandbox.exec("echo here").stdout, end="")
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", dedent(program)],
        cwd=tmp_path,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "TURNOUT_HOME": str(settings.home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    name, _, said = done.stdout.partition(" ")
    assert (done.returncode, said, done.stderr) == (0, "here\n", "")
    entries = (settings.home / "sandboxes").glob("*.json")
    assert not [entry for entry in entries if name in text_of(entry)]


@pytest.mark.chaos
def test_a_program_that_is_killed_leaves_nothing_running(
    sandbox: Sandbox, settings: Settings, tmp_path: Path
) -> None:
    """The kernel ends its sandboxes, whatever runs there."""
    program = """
    from turnout import Sandbox

    sandbox = Sandbox.create()
    running = sandbox.exec("exec sleep 86321", background=True)
    sandbox.exec("until pgrep -x sleep; do sleep 0.01; done", check=True)
    print("ready", flush=True)
    running.wait()
    """
    with subprocess.Popen(
        [sys.executable, "-c", dedent(program)],
        cwd=tmp_path,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "TURNOUT_HOME": str(settings.home)},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert SLEEPING in all_commands()
        process.kill()
    give_up = time.monotonic() + 10
    while SLEEPING in all_commands() and time.monotonic() < give_up:
        time.sleep(0.02)
    assert SLEEPING not in all_commands()
