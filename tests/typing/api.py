"""Intended uses, checked by mypy and never run."""

from turnout import AsyncSandbox
from turnout import Sandbox as OwnSandbox
from turnout.core.events import Event, RunEnded, ToolCallDone
from turnout.core.money import Micros, Price, cost_micros, usd_to_micros
from turnout.core.policies import Policy, SessionCaps
from turnout.core.usage import Usage
from turnout.sandbox.base import Command, Sandbox


async def run_a_command(sandbox: Sandbox) -> bytes:
    """Read a command's output: it is bytes."""
    result = await sandbox.run(Command(shell="ls", timeout=5))
    return result.stdout if result.ok else b""


def read_an_event(event: Event) -> str:
    """Events are told apart by their class."""
    if isinstance(event, ToolCallDone):
        return event.result.content
    return event.reason if isinstance(event, RunEnded) else ""


def write_a_policy() -> Policy:
    """Money is never a float."""
    return Policy(session=SessionCaps(max_spend=usd_to_micros("2.50")))


def price_a_call() -> Micros:
    """Usage and price give a cost."""
    return cost_micros(Usage(input_tokens=10), Price(input=140_000, output=280_000))


def use_a_sandbox_of_ones_own() -> str:
    """Get another type from a background command than from others."""
    with OwnSandbox.create(
        timeout=60, labels={"task": "dates"}, allow=["api.example.org"]
    ) as sandbox:
        server = sandbox.exec("python -m http.server", background=True)
        tests = sandbox.exec(["pytest", "-q"], cwd="repo", timeout_ms=300_000, on_stdout=print)
        server.kill()
        return sandbox.files.read("log") if tests.ok else server.wait().stderr


async def use_one_in_a_loop() -> int:
    """Await the same."""
    async with await AsyncSandbox.create(repository=".", base="main") as sandbox:
        server = await sandbox.exec("python -m http.server", background=True)
        await server.kill()
        return (await sandbox.commands.run("make", check=False)).exit_code
