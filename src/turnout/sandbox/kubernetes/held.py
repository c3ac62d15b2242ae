"""A pod that a sandbox holds: the channel to its agent, and its lease."""

import asyncio
import socket
from contextlib import suppress

from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.sandbox.channel import Channel
from turnout.sandbox.kubernetes.api.pods import LEASE_SECONDS, Pods
from turnout.sandbox.kubernetes.api.stream import Stream, carry

__all__ = ["HeldPod"]

_RENEW_SECONDS = LEASE_SECONDS / 3


class HeldPod:
    """One pod and the connection into it."""

    def __init__(self, pods: Pods, name: str) -> None:
        self.name = name
        self._pods = pods
        self._tasks: list[asyncio.Task[None]] = []
        self._given_up = False

    async def connect(self, stream: Stream) -> Channel:
        """Return a channel that the websocket carries."""
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        channel = await Channel.over(ours, self._give_up)
        carried = asyncio.create_task(self._carry(channel, stream, theirs))
        self._tasks = [carried, asyncio.create_task(self._renew())]
        return channel

    async def release(self) -> None:
        """End the connection, and with it what runs in the pod."""
        self._give_up()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _give_up(self) -> None:
        self._given_up = True
        for task in self._tasks:
            task.cancel()

    async def _carry(self, channel: Channel, stream: Stream, sock: socket.socket) -> None:
        """Carry the channel; when that ends before we end it, say why the pod ended."""
        with sock:
            complaint = await carry(stream, sock)
            if not self._given_up:
                cause = await self._pods.cause_of_end(self.name) or complaint
                channel.end(f"its pod ended ({cause})" if cause else "its connection broke")

    async def _renew(self) -> None:
        """Say now and then that the service lives."""
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            with suppress(SandboxError, SandboxUnavailableError):
                await self._pods.renew(self.name)
