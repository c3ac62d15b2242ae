"""Starting one sandbox in a pod: the pod, the connection, the agent handed over."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from secrets import randbelow

from turnout.core.ids import RunId
from turnout.errors import SandboxDiedError, SandboxUnavailableError
from turnout.sandbox.base import Egress, Limits
from turnout.sandbox.inside.handover import agent_words, resident_source
from turnout.sandbox.kubernetes.api.access import Found
from turnout.sandbox.kubernetes.api.pods import Ticket
from turnout.sandbox.kubernetes.api.stream import Stream, send_input
from turnout.sandbox.kubernetes.door import Door, PodGate
from turnout.sandbox.kubernetes.held import HeldPod
from turnout.sandbox.kubernetes.manifests.pod import PodPlan
from turnout.sandbox.kubernetes.options import KubernetesOptions
from turnout.sandbox.kubernetes.sandbox import PodSandbox
from turnout.sandbox.resident_sandbox import Fittings
from turnout.sandbox.transfer.folders import room_for

__all__ = ["Start", "Wish"]

_READY_SECONDS = 30.0
_PATIENCE = 120
_NAMESPACED_UID = 1000
_FIRST_UID, _UIDS = 20_000, 40_000
_NAMES = {"USER": "turnout", "LOGNAME": "turnout"}
"""What programs ask for that find no name of their uid."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The sandbox that is wanted."""

    run_id: RunId
    limits: Limits
    egress: Egress
    sent: tuple[tuple[Path, str], ...]
    """Folders that it will be sent, and where to."""
    warm: bool = False
    """One of the pool's will do, where there is a pool."""


class Start:
    """Starts sandboxes for one service."""

    def __init__(self, options: KubernetesOptions, owner: str, door: Door) -> None:
        self._options = options
        self._owner = owner
        self._door = door
        self._agent = resident_source()
        folder = files("turnout.sandbox.inside")
        find = folder.joinpath("find.py").read_text("utf-8")
        self._find = (options.python, "-ISE", "-c", find)

    async def __call__(self, found: Found, wish: Wish) -> PodSandbox:
        """Start a sandbox; `SandboxUnavailableError` where that cannot be done."""
        async with AsyncExitStack() as undo:
            gate = await self._door.open(wish.egress)
            if gate is not None:
                undo.push_async_callback(gate.close)
            name = await self._pod(found, wish, gate is not None, undo)
            stream = await found.pods.open(name)
            undo.push_async_callback(stream.close)
            await self._hand_over(stream, wish.limits, gate)
            held = HeldPod(found.pods, name)
            channel = await held.connect(stream)
            undo.push_async_callback(held.release)
            undo.callback(channel.end, "it was closed")
            try:
                await channel.wait_ready(_READY_SECONDS)
            except SandboxDiedError as error:
                raise SandboxUnavailableError(
                    f"The agent did not start in the pod. {error.message}",
                    mend=f"Check that {self._options.image} has Python at {self._options.python}.",
                ) from None
            fittings = self._fittings(wish, gate)
            return PodSandbox(fittings, channel, name, undo.pop_all())

    async def _pod(
        self, found: Found, wish: Wish, reaches_proxy: bool, undo: AsyncExitStack
    ) -> str:
        """Get a pod that runs; its end is noted before it is asked for."""
        ticket = Ticket(wish.run_id, self._owner, reaches_proxy)
        name = ticket.new_name()
        if wish.warm and found.claims is not None:
            undo.push_async_callback(found.claims.end, name)
            await found.claims.make(name, ticket, wish.limits.lifetime_seconds)
            name = await found.claims.pod_of(name)
        else:
            undo.push_async_callback(found.pods.end, name)
            await found.pods.make(name, ticket, await self._plan(found, wish))
        await found.pods.await_running(name)
        return name

    async def _plan(self, found: Found, wish: Wish) -> PodPlan:
        uid = self._options.uid
        if uid is None:
            # Limits of processes and key rings belong to a uid of the node: none is shared.
            own = _FIRST_UID + randbelow(_UIDS)
            uid = _NAMESPACED_UID if found.user_namespaces else own
        return PodPlan(
            limits=wish.limits,
            uid=uid,
            user_namespace=found.user_namespaces,
            folders=tuple(target for _, target in wish.sent),
            base_bytes=await asyncio.to_thread(room_for, [folder for folder, _ in wish.sent]),
            patience=_PATIENCE,
        )

    async def _hand_over(self, stream: Stream, limits: Limits, gate: PodGate | None) -> None:
        """Send what `boot` awaits; what follows on the connection is the agent's channel."""
        words = [
            word
            for word in agent_words((0, 0), limits, watch=True)
            if not word.startswith(("in=", "out="))
        ]
        bundle = b"" if gate is None else gate.bundle
        parts = ("\0".join(words).encode(), self._agent, bundle)
        head = b"".join(len(part).to_bytes(8, "big") for part in parts)
        await send_input(stream, head + b"".join(parts))

    def _fittings(self, wish: Wish, gate: PodGate | None) -> Fittings:
        variables: Mapping[str, str] = _NAMES if gate is None else {**_NAMES, **gate.variables()}
        runtime = self._options.runtime_class or "runtime of the node"
        isolation = f"pod ({runtime})+seccomp+network policy"
        return Fittings(wish.run_id, isolation, self._find, wish.limits, variables, gate)
