"""Sandboxes whose calls are waited for."""

import threading
import time
from collections.abc import Callable

import pytest

from turnout.errors import CommandFailedError, SandboxDiedError, UsageError
from turnout.sandbox.base import Connection, Egress, HostRule
from turnout.sdk import Sandbox
from turnout.settings import Settings
from turnout.testing.sandbox import ScriptedDriver, ScriptedSandbox, result


def wait_until(happens: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    give_up = time.monotonic() + 10
    while not happens() and time.monotonic() < give_up:
        time.sleep(0.005)
    assert happens()


def test_a_sandbox_starts_empty_and_is_ended_by_its_block(
    driver: ScriptedDriver, settings: Settings
) -> None:
    """Without a repository there is none; nothing is left after `with`."""
    with Sandbox.create(driver=driver, config=settings) as sandbox:
        assert sandbox.is_running()
        assert driver.prepared[0].repository is None
    assert driver.sandboxes[0].closed
    assert not sandbox.is_running()


def test_a_command_is_a_line_for_the_shell_or_a_list_of_words(
    sandbox: Sandbox, inner: ScriptedSandbox
) -> None:
    """Words that came from somewhere need no quoting."""
    sandbox.exec("echo $HOME")
    sandbox.exec(["echo", "$HOME"])
    assert [(c.shell, c.argv) for c in inner.commands] == [
        ("echo $HOME", ()),
        (None, ("echo", "$HOME")),
    ]


def test_exec_returns_whatever_the_exit_code(sandbox: Sandbox, inner: ScriptedSandbox) -> None:
    """A failing test is a result."""
    inner.answer("pytest", result(b"1 failed\n", b"slow\n", code=1))
    ended = sandbox.exec("pytest")
    assert (ended.stdout, ended.stderr, ended.exit_code, ended.ok) == (
        "1 failed\n",
        "slow\n",
        1,
        False,
    )


def test_a_checked_command_that_fails_is_an_error(sandbox: Sandbox, inner: ScriptedSandbox) -> None:
    """Its text ends with what the command printed."""
    inner.answer("git", result(b"", b"fatal: not found\n", code=128))
    with pytest.raises(CommandFailedError, match="fatal: not found") as caught:
        sandbox.exec("git clone x", check=True)
    assert caught.value.exit_code == 128


def test_commands_run_expects_success_unless_told(sandbox: Sandbox, inner: ScriptedSandbox) -> None:
    """As programs that use `commands.run` do."""
    inner.answer("false", result(code=1))
    with pytest.raises(CommandFailedError):
        sandbox.commands.run("false")
    assert sandbox.commands.run("false", check=False).exit_code == 1
    assert sandbox.commands.run("true").ok


def test_variables_are_laid_over_each_other(driver: ScriptedDriver, settings: Settings) -> None:
    """Those of a command are the strongest."""
    with Sandbox.create(driver=driver, config=settings, env={"A": "1", "B": "1"}) as sandbox:
        sandbox.exec("env", env={"B": "2"})
    env = driver.sandboxes[0].commands[0].env
    assert (env["A"], env["B"]) == ("1", "2")


def test_output_is_passed_on_in_the_callers_thread(
    sandbox: Sandbox, inner: ScriptedSandbox
) -> None:
    """A listener may use what belongs to its thread."""
    inner.answer("make", result(b"built\n", b"warning\n"))
    heard: list[tuple[str, int]] = []
    ended = sandbox.exec(
        "make",
        on_stdout=lambda text: heard.append((text, threading.get_ident())),
        on_stderr=lambda text: heard.append((text, threading.get_ident())),
    )
    here = threading.get_ident()
    assert heard == [("built\n", here), ("warning\n", here)]
    assert ended.stdout == "built\n"


def test_what_a_listener_raises_reaches_the_caller(
    sandbox: Sandbox, inner: ScriptedSandbox
) -> None:
    """And the sandbox can still be used."""
    inner.answer("make", result(b"built\n"))
    with pytest.raises(ZeroDivisionError):
        sandbox.exec("make", on_stdout=lambda _: 1 / 0)
    assert sandbox.exec("true").ok


def test_a_command_that_no_program_can_be_given_is_a_result(sandbox: Sandbox) -> None:
    """The loop of an agent goes on, and the model reads why."""
    ended = sandbox.exec("printf 'a\0b'")
    assert ended.exit_code == 127
    assert "not started" in ended.stderr


def test_a_refused_host_is_named_after_the_output(
    driver: ScriptedDriver, settings: Settings
) -> None:
    """Only what was refused during the command is told."""
    with Sandbox.create(driver=driver, config=settings, allow=["example.org"]) as sandbox:
        inner = driver.sandboxes[0]
        inner.asked.append(Connection("old.org", 443, allowed=False, reason=""))

        def clone(_: object):
            inner.asked.append(Connection("git.example.org", 443, allowed=False, reason=""))
            return result(b"", b"fatal: 403\n", code=128)

        inner.answer("git clone", clone)
        said = sandbox.exec("git clone https://git.example.org/a/b").stderr
    assert said.startswith("fatal: 403\nturnout: git.example.org:443: it is not reachable")
    assert "old.org" not in said


def test_allowed_hosts_reach_the_driver(driver: ScriptedDriver, settings: Settings) -> None:
    """Nothing is reachable otherwise."""
    with Sandbox.create(driver=driver, config=settings, allow=["example.org", "a.org:8443"]):
        pass
    with Sandbox.create(driver=driver, config=settings):
        pass
    rules = (HostRule("example.org"), HostRule("a.org", (8443,)))
    assert [made.egress for made in driver.created] == [Egress(rules), Egress()]


def test_labels_are_kept_and_cannot_be_changed(driver: ScriptedDriver, settings: Settings) -> None:
    """They are the caller's own."""
    with Sandbox.create(driver=driver, config=settings, labels={"task": "dates"}) as sandbox:
        assert sandbox.labels == {"task": "dates"}
        assert not hasattr(sandbox.labels, "update")
        assert sandbox.id in repr(sandbox)


def test_a_fork_has_the_files_and_the_terms(sandbox: Sandbox) -> None:
    """And goes its own way from then on."""
    sandbox.files.write("calc.py", "add = int.__add__\n")
    with sandbox.fork() as twin:
        assert twin.id != sandbox.id
        assert twin.files.read("calc.py") == "add = int.__add__\n"
        twin.files.write("calc.py", "")
    assert sandbox.files.read("calc.py") == "add = int.__add__\n"


def test_a_paused_sandbox_is_running_and_stays_paused(
    sandbox: Sandbox, inner: ScriptedSandbox
) -> None:
    """Asking does not wake it; the next command does."""
    sandbox.pause()
    assert sandbox.is_running()
    assert inner.frozen
    sandbox.exec("true")
    assert not inner.frozen


def test_a_sandbox_that_was_killed_says_so(sandbox: Sandbox) -> None:
    """Killing twice is no error; using it is one."""
    sandbox.kill()
    sandbox.close()
    with pytest.raises(SandboxDiedError, match="it was closed"):
        sandbox.exec("true")


def test_a_sandbox_that_dies_is_closed_and_says_why(
    sandbox: Sandbox, inner: ScriptedSandbox
) -> None:
    """However often it is asked."""
    inner.die("its agent ended")
    for _ in range(2):
        with pytest.raises(SandboxDiedError, match="its agent ended"):
            sandbox.files.read("calc.py")
    assert not sandbox.is_running()
    sandbox.kill()
    assert inner.closed


def test_a_sandbox_ends_when_its_time_is_over(driver: ScriptedDriver, settings: Settings) -> None:
    """And what is raised then says how to give it more."""
    sandbox = Sandbox.create(driver=driver, config=settings, timeout=0.02)
    wait_until(lambda: driver.sandboxes[0].closed)
    with pytest.raises(SandboxDiedError, match="set_timeout"):
        sandbox.exec("true")


def test_the_time_can_be_set_anew(driver: ScriptedDriver, settings: Settings) -> None:
    """Within what the settings allow."""
    with Sandbox.create(driver=driver, config=settings, timeout=0.4) as sandbox:
        sandbox.set_timeout(3600)
        time.sleep(0.45)
        assert sandbox.exec("true").ok
        with pytest.raises(UsageError, match="86400 s at most"):
            sandbox.set_timeout(90_000)
    with pytest.raises(UsageError, match="86400 s at most"):
        Sandbox.create(driver=driver, config=settings, timeout=90_000)


def test_a_sandbox_that_nobody_has_any_more_is_closed_with_a_warning(
    driver: ScriptedDriver, settings: Settings
) -> None:
    """As with a file that was not closed."""
    had = [Sandbox.create(driver=driver, config=settings)]
    assert had[0].exec("true").ok
    with pytest.warns(ResourceWarning, match=had[0].id):
        had.clear()
    wait_until(lambda: driver.sandboxes[0].closed)


def test_its_files_keep_a_sandbox(driver: ScriptedDriver, settings: Settings) -> None:
    """A part of it is enough to hold it by."""
    had = [Sandbox.create(driver=driver, config=settings).files]
    assert had[0].read("calc.py")
    with pytest.warns(ResourceWarning, match="not closed"):
        had.clear()


def test_a_background_command_is_not_waited_for(sandbox: Sandbox, inner: ScriptedSandbox) -> None:
    """Its result can be had later."""
    inner.answer("serve", result(b"up\n", code=3))
    running = sandbox.exec("serve", background=True)
    assert running.wait().exit_code == 3
    assert running.stdout == "up\n"
    assert not running.is_running()
