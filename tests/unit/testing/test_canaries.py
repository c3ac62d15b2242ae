"""Canaries notice whatever reaches them: walls that let something through are seen."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.clusters import eventually

from turnout.core.events import Notice
from turnout.testing.hostile import Canaries, hostile_arguments

At = dict[str, str]


async def by_address(at: At) -> None:
    """Connect by address."""
    _, writer = await asyncio.open_connection("127.0.0.1", int(at["port"]))
    writer.close()


async def by_path(at: At) -> None:
    """Connect by path."""
    _, writer = await asyncio.open_unix_connection(f"{at['folder']}/door")
    writer.close()


async def by_name(at: At) -> None:
    """Connect by an abstract name."""
    _, writer = await asyncio.open_unix_connection(f"\0{at['name']}")
    writer.close()


def change(at: At) -> None:
    """Change the file."""
    Path(at["folder"], "secret").write_text("x")


def change_mode(at: At) -> None:
    """Change who may read it."""
    Path(at["folder"], "secret").chmod(0o600)


def add(at: At) -> None:
    """Add a file to the folder."""
    Path(at["folder"], "x").touch()


def mark(at: At) -> None:
    """Make a file outside."""
    Path(at["mark"]).touch()


def kill(at: At) -> None:
    """End the process."""
    os.kill(int(at["pid"]), signal.SIGKILL)


def forget(at: At) -> None:
    """Take away what was made outside."""
    Path(at["mark"]).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("reach", "said"),
    [
        (by_address, "a socket by address"),
        (by_path, "a socket by path"),
        (by_name, "a socket by name"),
        (change, "the file"),
        (change_mode, "the file"),
        (add, "the folder"),
        (mark, "a file that was made outside"),
        (kill, "the process"),
    ],
)
async def test_what_is_touched_is_named(
    tmp_path: Path, reach: Callable[[At], Awaitable[None] | None], said: str
) -> None:
    """Each in its own way, and nothing is named before."""
    async with Canaries(tmp_path / "canaries") as canaries:
        at = dict(canaries.places)
        assert canaries.touched() == ()
        try:
            if reaching := reach(at):
                await reaching
            await eventually(lambda: canaries.touched() != ())
            assert canaries.touched() == (said,)
        finally:
            forget(at)


async def test_a_secret_that_was_read_is_found_in_the_record(tmp_path: Path) -> None:
    """It is in no script: whoever says it has read it."""
    async with Canaries(tmp_path / "canaries") as canaries:
        secret = (tmp_path / "canaries" / "secret").read_text()
        assert not any(secret in arguments for arguments in hostile_arguments(canaries))
        assert canaries.touched([Notice("hello")]) == ()
        assert canaries.touched([Notice(f"It is {secret}.")]) == ("the secret",)
