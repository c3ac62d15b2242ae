"""What scripted sandboxes keep of their files, for others to start on."""

from collections.abc import Mapping

from turnout.errors import SandboxError
from turnout.sandbox.base import LayerRef
from turnout.testing.sandbox.patching import FakeFile

__all__ = ["ScriptedLayers"]


class ScriptedLayers:
    """Layers by key, each with all files of its workspace."""

    def __init__(self) -> None:
        self._kept: dict[LayerRef, Mapping[str, FakeFile]] = {}

    def keep(
        self, base_key: str, beneath: LayerRef | None, files: Mapping[str, FakeFile]
    ) -> LayerRef:
        """Keep a workspace that began on `beneath`, or on the base alone."""
        key = f"layer-{len(self._kept)}"
        before = {} if beneath is None else self._kept[beneath]
        size = sum(len(file.data) for path, file in files.items() if before.get(path) != file)
        layer = LayerRef(key, base_key, (*(beneath.stack if beneath else ()), key), size)
        self._kept[layer] = dict(files)
        return layer

    def files(self, base_key: str, layer: LayerRef) -> Mapping[str, FakeFile]:
        """Return what was kept; `SandboxError` where it was not, or of another base."""
        if layer.base_key != base_key or layer not in self._kept:
            raise SandboxError("The layer is not one of this base.")
        return self._kept[layer]
