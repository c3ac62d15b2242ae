"""The SDK is documented as it is, and both its kinds are alike."""

import inspect
import subprocess
import sys

import pytest

from tests.house.sources import ROOT
from turnout.sdk import (
    AsyncCommands,
    AsyncFiles,
    AsyncRunningCommand,
    AsyncSandbox,
    Commands,
    Files,
    RunningCommand,
    Sandbox,
)

PAIRS = [
    (Sandbox, AsyncSandbox),
    (Commands, AsyncCommands),
    (Files, AsyncFiles),
    (RunningCommand, AsyncRunningCommand),
]


def test_the_sdk_reference_is_what_the_code_says() -> None:
    """`docs/reference/sdk.md` is made by `python -m tests.house.sdk_reference`."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.house.sdk_reference"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=True,
    ).stdout
    assert (ROOT / "docs/reference/sdk.md").read_text() == made


def calls(kind: type) -> dict[str, list[tuple[str, object]]]:
    """Return the parameters of each public method and property of a class."""
    found: dict[str, list[tuple[str, object]]] = {}
    for name, member in inspect.getmembers_static(kind):
        if name.startswith("_"):
            continue
        function = getattr(member, "__func__", member)
        parameters = inspect.signature(function).parameters if callable(function) else {}
        found[name] = [(each.name, each.default) for each in parameters.values()]
    return found


@pytest.mark.parametrize(("waiting", "awaited"), PAIRS)
def test_both_kinds_take_the_same_calls(waiting: type, awaited: type) -> None:
    """A program is moved from one to the other by `await` alone."""
    assert calls(waiting) == calls(awaited)


def test_the_package_hands_out_both_kinds_at_first_use() -> None:
    """And nothing of them is imported before."""
    probe = (
        "import sys, turnout; before = 'turnout.sdk' in sys.modules; "
        "from turnout import AsyncSandbox, Sandbox; import turnout.sdk; "
        "print(before, Sandbox is turnout.sdk.Sandbox, AsyncSandbox is turnout.sdk.AsyncSandbox)"
    )
    run = subprocess.run(
        [sys.executable, "-c", probe], check=True, capture_output=True, text=True, timeout=60
    )
    assert run.stdout.split() == ["False", "True", "True"]


def test_a_name_that_the_package_has_not_is_an_attribute_error() -> None:
    """As of any module."""
    run = subprocess.run(
        [sys.executable, "-c", "import turnout; turnout.Sandbax"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "module 'turnout' has no attribute 'Sandbax'" in run.stderr
