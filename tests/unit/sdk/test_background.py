"""The one loop of the process."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

from turnout.sdk import Sandbox
from turnout.settings import Settings
from turnout.testing.sandbox import ScriptedDriver, result

PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from turnout.sdk import Sandbox
from turnout.settings import load_settings
from turnout.testing.sandbox import ScriptedDriver

driver = ScriptedDriver()
settings = load_settings(environment={"TURNOUT_HOME": "."}, directory=Path())
sandbox = Sandbox.create(driver=driver, config=settings)
inner = driver.sandboxes[0]
close = inner.close

async def noted():
    await asyncio.to_thread(Path("closed").touch)
    await close()

inner.close = noted
"""

FORKED = (
    "The sandbox belongs to the process from which this one was forked. "
    "Create a sandbox in this process."
)


def run_program(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a program that has made a sandbox."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + dedent(text)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_all_sandboxes_share_one_thread(driver: ScriptedDriver, settings: Settings) -> None:
    """However many there are."""
    with Sandbox.create(driver=driver, config=settings):
        before = threading.active_count()
        with (
            Sandbox.create(driver=driver, config=settings),
            Sandbox.create(driver=driver, config=settings),
        ):
            assert threading.active_count() == before


async def test_calls_may_be_waited_for_within_a_running_loop(
    driver: ScriptedDriver, settings: Settings
) -> None:
    """As notebooks and servers do."""
    assert asyncio.get_running_loop()
    with Sandbox.create(driver=driver, config=settings) as sandbox:
        assert sandbox.exec("true").ok


def test_several_threads_may_use_one_sandbox(sandbox: Sandbox, driver: ScriptedDriver) -> None:
    """Each gets its own results."""
    driver.sandboxes[0].answer("echo", lambda command: result(command.shell.encode()))
    said: dict[int, str] = {}

    def work(number: int) -> None:
        for _ in range(20):
            said[number] = sandbox.exec(f"echo {number}").stdout

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {number: f"echo {number}" for number in range(8)}


def test_what_is_open_at_the_end_of_a_program_is_closed(tmp_path: Path) -> None:
    """Also by work that needs a thread, and without a word."""
    done = run_program(tmp_path, "")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "closed").exists()


def test_a_program_that_fails_closes_too(tmp_path: Path) -> None:
    """Its own error is what it prints."""
    done = run_program(tmp_path, "raise SystemExit('no')")
    assert (done.returncode, done.stderr) == (1, "no\n")
    assert (tmp_path / "closed").exists()


def test_a_sandbox_that_does_not_close_holds_no_program(tmp_path: Path) -> None:
    """The kernel ends it with the process."""
    done = run_program(
        tmp_path,
        """
        from turnout.sdk.background import Background

        async def never():
            await asyncio.Event().wait()

        slow = Background(never, ending_seconds=0.1)
        slow.call(asyncio.sleep(0))
        """,
    )
    assert done.returncode == 0


def test_a_forked_process_leaves_its_parents_sandbox_alone(tmp_path: Path) -> None:
    """It is told so, and may make one of its own."""
    done = run_program(
        tmp_path,
        """
        child = os.fork()
        if child == 0:
            try:
                sandbox.exec("true")
            except Exception as error:
                print(type(error).__name__, error, flush=True)
            with Sandbox.create(driver=ScriptedDriver(), config=settings) as own:
                print(own.exec("true").exit_code, flush=True)
            sys.exit()
        os.waitpid(child, 0)
        print(Path("closed").exists(), sandbox.exec("true").exit_code)
        """,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"UsageError {FORKED}",
        "0",
        "False 0",
    ]


def test_an_interrupt_ends_the_command_that_is_waited_for(tmp_path: Path) -> None:
    """Ctrl-C is not kept waiting, and what it stops does not go on inside."""
    done = run_program(
        tmp_path,
        """
        import signal, threading
        from turnout.sandbox.base import Output

        async def forever(command):
            try:
                yield Output("stdout", b"started")
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.Event().wait()
            finally:
                os.write(1, b"ended\\n")

        inner.exec = forever
        try:
            sandbox.exec("sleep 60")
        except KeyboardInterrupt:
            os.write(1, b"interrupted\\n")
        """,
    )
    assert sorted(done.stdout.split()) == ["ended", "interrupted"]
    assert done.stderr == ""
