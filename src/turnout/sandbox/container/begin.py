"""Starting a container, from its entry in the registry to the first word of its agent."""

import asyncio
import os
import socket
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from turnout.core.ids import RunId
from turnout.errors import SandboxDiedError, SandboxUnavailableError
from turnout.sandbox.base import BASE_ENV, Command, Egress, Exit, Limits
from turnout.sandbox.channel import Channel
from turnout.sandbox.container.engines.arguments import Container, run_words
from turnout.sandbox.container.engines.complaints import why_not
from turnout.sandbox.container.engines.survey import Survey
from turnout.sandbox.container.engines.user import User, choose_user
from turnout.sandbox.container.held import Held
from turnout.sandbox.container.layout import SOCKET_INSIDE, hand_over, staged, unstaged
from turnout.sandbox.container.yard import Yard
from turnout.sandbox.inside.handover import agent_words
from turnout.sandbox.walls.arguments import FILES_INSIDE
from turnout.sandbox.walls.contents import COPY_BASE, Contents
from turnout.sandbox.walls.launcher import Started
from turnout.sandbox.walls.stage import FIRST_FD, Plan

__all__ = ["Order", "begin"]

_VOLUME_SECONDS = 30.0
_COPY_SECONDS = 600.0
_END_SECONDS = 5.0
_BLOCK = 4096
_MAKE_HOME = f"mkdir -m 0700 {BASE_ENV['HOME']}"


@dataclass(frozen=True, slots=True)
class Order:
    """A container that is to be started."""

    run_id: RunId
    contents: Contents
    limits: Limits
    egress: Egress
    copies: bool = False
    """Without a stage: the workspace begins as a copy of the base."""


async def begin(yard: Yard, order: Order, *, listens: bool) -> tuple[Channel, Held]:
    """Start a container and its agent; nothing of it is left where that fails.

    Where it `listens`, its network has a socket that a gate can serve. `SandboxUnavailableError`
    where it does not start.
    """
    async with AsyncExitStack() as undo:
        ours, theirs = socket.socketpair()
        undo.callback(ours.close)
        with theirs:
            held = await _launch(yard, order, theirs, listens=listens)
        undo.push_async_callback(held.release)
        channel = await Channel.over(ours, held.kill)
        undo.push_async_callback(channel.closed)
        undo.callback(channel.end, "it did not start")
        try:
            await channel.wait_ready(yard.survey.options.start_seconds)
        except SandboxDiedError:
            raise why_not(yard.survey.engine, held.complaints()) from None
        await held.adopt()
        if yard.survey.unstaged:
            await _furnish(channel, copies=order.copies)
        undo.pop_all()
    return channel, held


async def _launch(yard: Yard, order: Order, theirs: socket.socket, *, listens: bool) -> Held:
    """Start a container, registered so that a crash leaves nothing behind."""
    survey = yard.survey
    async with AsyncExitStack() as undo:
        entry = yard.registry.add()
        undo.push_async_callback(yard.remove, entry)
        entry.note(order.run_id, [])
        user = choose_user(survey.engine)
        folder = yard.own_folder(entry.name)
        folder.fill(order.contents.files, user)
        hand_over(order.contents.mounts, user)
        door = _listen_at(folder.socket) if listens else None
        if door is not None:
            undo.callback(door.close)
        if survey.unstaged:
            places = unstaged(order.contents, order.limits)
            await _make_volume(survey, entry.name, order.limits, user)
        else:
            places = staged(yard.folder / "stage", order.contents, order.limits, user)
        container = Container(
            name=entry.name,
            label=yard.label,
            image=survey.image,
            argv=_agent(survey, order.limits, user, listens=listens),
            limits=order.limits,
            user=user,
            profile=str(survey.profile),
            mounts=(*folder.mounts, *places.mounts),
            tmpfs=places.tmpfs,
            volume=places.volume,
            pid_file=str(folder.pid_file),
            ulimits=survey.options.ulimits,
        )
        starting = asyncio.create_task(_start(yard, places.plan, container, theirs))
        undo.push_async_callback(_give_up, starting, theirs)
        started = await asyncio.shield(starting)
        undo.pop_all()
    return Held(yard, entry, user, started, door)


async def _start(yard: Yard, plan: Plan, container: Container, theirs: socket.socket) -> Started:
    """Start the engine's client in what `plan` lays out."""
    survey = yard.survey
    words = run_words(survey.engine, container, "direct" if survey.direct else "piped")
    plan = plan._replace(
        argv=survey.engine.command(survey.options.runtime, words),
        stdio=(FIRST_FD,) if survey.direct else (FIRST_FD, FIRST_FD),
    )
    return await yard.launcher.start(plan, [theirs.fileno()])


async def _give_up(starting: "asyncio.Task[Started]", theirs: socket.socket) -> None:
    """Wait for a client that nobody wants any more: before its end it might make a container."""
    await asyncio.wait([starting])
    with suppress(OSError):
        theirs.shutdown(socket.SHUT_RDWR)
    if not starting.cancelled() and starting.exception() is None:
        started = starting.result()
        await started.ended(_END_SECONDS)
        started.kill()
        started.close()


def _agent(survey: Survey, limits: Limits, user: User, *, listens: bool) -> tuple[str, ...]:
    words = agent_words(
        (0, 0) if survey.direct else (0, 1),
        limits,
        egress=f"path:{SOCKET_INSIDE}" if listens else "",
        watch=not survey.limited,
    )
    if not user.alone:
        words = tuple(word for word in words if not word.startswith("pids="))
    return (survey.python, "-ISE", f"{FILES_INSIDE}/resident.pyc", *words)


async def _make_volume(survey: Survey, name: str, limits: Limits, user: User) -> None:
    """Make the volume that holds the workspace: in memory, sized, and owned by the user."""
    # Inside the user namespace of an engine without root, its user is number 0.
    uid, gid = (0, 0) if survey.engine.rootless else (user.uid, user.gid)
    blocks = max(1, limits.disk_bytes // _BLOCK)
    options = f"nr_blocks={blocks},nr_inodes={limits.inodes},mode=0755,uid={uid},gid={gid}"
    made = await survey.engine.call(
        *("volume", "create", "--driver=local", f"--label=turnout.container={name}"),
        *("--opt=type=tmpfs", "--opt=device=tmpfs", f"--opt=o={options},nosuid,nodev", name),
        timeout=_VOLUME_SECONDS,
    )
    if not made.ok:
        raise why_not(survey.engine, made.stderr)


async def _furnish(channel: Channel, *, copies: bool) -> None:
    """Make from within what no stage has made."""
    script = f"{_MAKE_HOME}\n{COPY_BASE}" if copies else _MAKE_HOME
    complaint = b""
    async for item in channel.exec(Command(shell=script, cwd="/", timeout=_COPY_SECONDS)):
        if not isinstance(item, Exit):
            complaint += item.data
        elif item.reason != "exited" or item.code != 0:
            raise _no_workspace(complaint, item)


def _no_workspace(complaint: bytes, end: Exit) -> SandboxUnavailableError:
    lines = complaint.decode(errors="backslashreplace").strip().splitlines()
    mend = ""
    if b"No space left" in complaint:
        mend = (
            "The repository is larger than the sandbox's disk: raise `disk_mb` under `[sandbox]`."
        )
    why = lines[-1] if lines else end.error or end.reason
    return SandboxUnavailableError(f"The workspace could not be made: {why}.", mend=mend)


def _listen_at(path: Path) -> socket.socket:
    """Listen on a socket that any uid may connect to who is shown it."""
    door = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # A path of a socket has a hundred bytes at most, and that of the state folder may be long.
        door.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o666)
        door.listen(1)
    except OSError:
        door.close()
        raise
    finally:
        os.close(folder)
    return door
