"""Sandboxes whose calls are awaited."""

import asyncio

import pytest

from turnout.errors import CommandFailedError, SandboxDiedError
from turnout.sdk import AsyncSandbox
from turnout.settings import Settings
from turnout.testing.sandbox import ScriptedDriver, result


async def test_a_sandbox_does_what_the_other_kind_does(
    driver: ScriptedDriver, settings: Settings
) -> None:
    """Awaited."""
    made = await AsyncSandbox.create(driver=driver, config=settings, labels={"a": "b"})
    async with made as sandbox:
        driver.sandboxes[0].answer("false", result(code=1))
        assert (await sandbox.exec("false")).exit_code == 1
        with pytest.raises(CommandFailedError):
            await sandbox.commands.run("false")
        await sandbox.files.write("new", "text")
        assert await sandbox.files.read("new") == "text"
        twin = await sandbox.fork()
        assert await twin.files.read("new") == "text"
        await twin.kill()
        assert sandbox.labels == {"a": "b"}
    assert driver.sandboxes[0].closed
    assert not await sandbox.is_running()
    with pytest.raises(SandboxDiedError):
        await sandbox.pause()


async def test_listeners_may_be_coroutine_functions(
    driver: ScriptedDriver, settings: Settings
) -> None:
    """They run in the caller's loop, one after the other."""
    heard: list[str] = []
    loop = asyncio.get_running_loop()

    async def hear(text: str) -> None:
        assert asyncio.get_running_loop() is loop
        heard.append(text)

    async with await AsyncSandbox.create(driver=driver, config=settings) as sandbox:
        driver.sandboxes[0].answer("make", result(b"built\n", b"warning\n"))
        await sandbox.exec("make", on_stdout=hear, on_stderr=heard.append)
    assert heard == ["built\n", "warning\n"]


async def test_what_a_listener_raises_reaches_the_caller(
    driver: ScriptedDriver, settings: Settings
) -> None:
    """And the sandbox can still be used."""
    async with await AsyncSandbox.create(driver=driver, config=settings) as sandbox:
        driver.sandboxes[0].answer("make", result(b"built\n"))
        with pytest.raises(ZeroDivisionError):
            await sandbox.exec("make", on_stdout=lambda _: 1 / 0)
        assert (await sandbox.exec("true")).ok


def test_a_sandbox_may_pass_from_one_loop_to_another(
    driver: ScriptedDriver, settings: Settings
) -> None:
    """Each `asyncio.run` is a loop of its own."""
    sandbox = asyncio.run(AsyncSandbox.create(driver=driver, config=settings))
    assert asyncio.run(sandbox.exec("true")).ok
    asyncio.run(sandbox.kill())


async def test_a_background_command_can_be_awaited_later(
    driver: ScriptedDriver, settings: Settings
) -> None:
    """Or ended."""
    async with await AsyncSandbox.create(driver=driver, config=settings) as sandbox:
        driver.sandboxes[0].answer("serve", result(b"up\n", code=3))
        running = await sandbox.commands.run("serve", background=True, check=False)
        assert (await running.wait()).exit_code == 3
        assert running.stdout == "up\n"
        await running.kill()
