"""Settings and a scripted driver, so that no test of the SDK starts a real sandbox."""

from collections.abc import Callable
from pathlib import Path

import pytest

from turnout.sdk import Sandbox
from turnout.settings import Settings, load_settings
from turnout.testing.sandbox import ScriptedDriver, ScriptedSandbox

Create = Callable[..., Sandbox]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return the settings of nobody in particular."""
    return load_settings(environment={"TURNOUT_HOME": str(tmp_path)}, directory=tmp_path)


@pytest.fixture
def driver() -> ScriptedDriver:
    """Return a driver whose sandboxes have one file."""
    return ScriptedDriver({"calc.py": "add = int.__sub__\n"})


@pytest.fixture
def sandbox(driver: ScriptedDriver, settings: Settings):
    """Return a sandbox of the scripted kind, closed after the test."""
    with Sandbox.create(driver=driver, config=settings) as made:
        yield made


@pytest.fixture
def inner(sandbox: Sandbox, driver: ScriptedDriver) -> ScriptedSandbox:
    """Return what is behind `sandbox`."""
    return driver.sandboxes[0]
