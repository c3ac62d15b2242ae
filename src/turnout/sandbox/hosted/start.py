"""Making a rented machine a sandbox: folders, the agent, the channel to it."""

import asyncio
import shlex
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib.resources import files

from turnout.errors import SandboxDiedError, SandboxUnavailableError
from turnout.sandbox.bare import BASE_GIT
from turnout.sandbox.base import BASE_ENV, REPO, VENV, WORKSPACE, Limits
from turnout.sandbox.channel import Channel
from turnout.sandbox.hosted.machine import HostedMachine
from turnout.sandbox.hosted.postman import Postman
from turnout.sandbox.inside.handover import agent_words, resident_source

__all__ = ["begin"]

_SETUP_SECONDS = 120.0
_READY_SECONDS = 60.0
_FOLDER = """
make() { mkdir -p "$1" 2>/dev/null && [ -w "$1" ] || sudo -n sh -c \
    "mkdir -p '$1' && chown $(id -u):$(id -g) '$1'"; }
"""
_ALIAS = f"[ -e {WORKSPACE} ] || ln -s {REPO} {WORKSPACE} || sudo -n ln -s {REPO} {WORKSPACE}"


async def begin(
    machine: HostedMachine,
    folder: str,
    python: str,
    limits: Limits,
    folders: Sequence[str],
    undo: AsyncExitStack,
) -> Channel:
    """Start the agent on a machine and return the channel to it; `undo` ends the channel.

    `folder` is for our own programs, `folders` are what is to be filled beside the workspace.
    """
    await _make_folders(machine, (folder, *folders))
    for name, source in _programs().items():
        await machine.write(f"{folder}/{name}", source)
    words = agent_words((0, 0), limits, alone=False, watch=True)
    kept = [word for word in words if not word.startswith(("in=", "out="))]
    keeper = shlex.join([python, "-ISE", f"{folder}/keeper.py", folder, *kept])
    line = f"setsid nohup {keeper} </dev/null >/dev/null 2>&1 &"
    if (await machine.run(line, timeout=_SETUP_SECONDS)).code != 0:
        raise SandboxUnavailableError("The agent could not be started on the machine.")
    channel = await _carry(Postman(machine, folder, python), undo)
    try:
        await channel.wait_ready(_READY_SECONDS)
    except SandboxDiedError as error:
        raise SandboxUnavailableError(
            f"The agent did not start on the machine. {error.message}",
            mend=f"Check that its image has Python at {python}.",
        ) from None
    return channel


async def _make_folders(machine: HostedMachine, folders: Sequence[str]) -> None:
    wanted = dict.fromkeys((REPO, VENV, BASE_GIT, BASE_ENV["HOME"], *folders))
    lines = [_FOLDER, *(f"make {shlex.quote(path)} || exit 1" for path in wanted), _ALIAS]
    ran = await machine.run("\n".join(lines), timeout=_SETUP_SECONDS)
    if ran.code != 0:
        said = ran.stderr.strip()[-300:] or f"exit status {ran.code}"
        raise SandboxUnavailableError(
            f"The folders of the workspace cannot be made on the machine: {said}",
            mend="Use an image whose user may become root, or that has /repo, /venv and /base.git.",
        )


def _programs() -> dict[str, bytes]:
    inside = files("turnout.sandbox.hosted.inside")
    named = {name: inside.joinpath(name).read_bytes() for name in ("keeper.py", "courier.py")}
    return {**named, "resident.py": resident_source()}


async def _carry(postman: Postman, undo: AsyncExitStack) -> Channel:
    """Return a channel that a postman serves until it ends."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    ended = asyncio.Event()
    channel = await Channel.over(ours, ended.set)

    async def serve() -> None:
        with theirs:
            channel.end(await postman.serve(theirs) or "its channel ended")

    serving = asyncio.create_task(serve())

    async def stop() -> None:
        channel.end("it was closed")
        serving.cancel()
        await asyncio.wait([serving])

    undo.push_async_callback(stop)
    return channel
