"""The driver of scripted sandboxes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from turnout.core.ids import RunId
from turnout.sandbox.base import (
    NO_EGRESS,
    BaseRef,
    BaseSpec,
    Capabilities,
    Egress,
    LayerRef,
    Limits,
)
from turnout.testing.sandbox.files import fake_file
from turnout.testing.sandbox.layers import ScriptedLayers
from turnout.testing.sandbox.patching import FakeFile
from turnout.testing.sandbox.scripted import Origin, ScriptedSandbox

__all__ = ["Created", "ScriptedDriver"]


@dataclass(frozen=True, slots=True)
class Created:
    """What a sandbox was created with."""

    run_id: RunId
    base: BaseRef
    limits: Limits
    egress: Egress = NO_EGRESS
    layer: LayerRef | None = None


class ScriptedDriver:
    """A `SandboxDriver` whose sandboxes start with the same files and answers."""

    def __init__(
        self,
        files: Mapping[str, str | bytes | FakeFile] | None = None,
        *,
        script: Callable[[ScriptedSandbox], None] = lambda _: None,
        failure: Exception | None = None,
    ) -> None:
        self._files = {path: fake_file(content) for path, content in (files or {}).items()}
        self._script = script
        self._failure = failure
        self._layers = ScriptedLayers()
        self.sandboxes: list[ScriptedSandbox] = []
        """Every sandbox that was created, in this order."""
        self.created: list[Created] = []
        """What each of them was asked for with."""
        self.prepared: list[BaseSpec] = []

    @property
    def name(self) -> str:
        """Says that there are no walls."""
        return "none"

    async def probe(self) -> Capabilities:
        """Return that everything a script needs is there."""
        return Capabilities("none", True, "scripted", ())

    async def prepare(self, spec: BaseSpec) -> BaseRef:
        """Return a base; raises `failure` where one was given."""
        if self._failure is not None:
            raise self._failure
        self.prepared.append(spec)
        return BaseRef("scripted", spec.commit, spec.requirements or ())

    async def create(
        self,
        run_id: RunId,
        base: BaseRef,
        limits: Limits,
        *,
        egress: Egress = NO_EGRESS,
        layer: LayerRef | None = None,
    ) -> ScriptedSandbox:
        """Return a sandbox with the given files or those of a layer, its answers by `script`."""

        async def start(fork_id: RunId, kept: LayerRef) -> ScriptedSandbox:
            return await self.create(fork_id, base, limits, egress=egress, layer=kept)

        files = self._files if layer is None else self._layers.files(base.key, layer)
        self.created.append(Created(run_id, base, limits, egress, layer))
        origin = Origin(base.key, self._layers, layer, start)
        sandbox = ScriptedSandbox(files, run_id=run_id, origin=origin)
        sandbox.base = dict(self._files)
        self._script(sandbox)
        self.sandboxes.append(sandbox)
        return sandbox

    async def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """Close every sandbox of a run that is not known."""
        lost = [each for each in self.sandboxes if not each.closed and each.run_id not in known]
        for sandbox in lost:
            await sandbox.close()
        return tuple(sorted({sandbox.run_id for sandbox in lost}))

    async def close(self) -> None:
        """Do nothing: nothing is kept ready."""
