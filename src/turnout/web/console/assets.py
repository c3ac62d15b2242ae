"""Style sheets and scripts of the console: all of them shipped, none of them made."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from starlette.responses import Response

from turnout.errors import GatewayError

__all__ = ["Asset", "Assets", "load_assets"]

_TYPES: Final[Mapping[str, str]] = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is served."""

    body: bytes
    media_type: str
    mark: str
    """Of its content: an address with it never means anything else."""


@dataclass(frozen=True, slots=True)
class Assets:
    """All of them, by their path below the folder."""

    files: Mapping[str, Asset]

    def address(self, name: str) -> str:
        """Return where the page gets one from, below `/console`; `KeyError` for none of ours."""
        return f"/static/{name}?{self.files[name].mark}"

    def answer(self, name: str, asked: str) -> Response:
        """Return one, to be kept for ever if `asked` is its mark; `GatewayError` (404) for none."""
        asset = self.files.get(name)
        if asset is None:
            raise GatewayError(
                "There is no such file.", status=404, code="not_found", mend="Reload the page."
            )
        kept = "public, max-age=31536000, immutable" if asked == asset.mark else "no-cache"
        return Response(asset.body, media_type=asset.media_type, headers={"cache-control": kept})


def load_assets() -> Assets:
    """Read the files that are shipped."""
    folder = resources.files("turnout.web.console") / "static"
    return Assets(dict(_found(folder, "")))


def _found(folder: Traversable, above: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for entry in folder.iterdir():
        name = f"{above}{entry.name}"
        media_type = _TYPES.get(name.rpartition(".")[2])
        if entry.is_dir():
            found += _found(entry, f"{name}/")
        elif media_type is not None:
            body = entry.read_bytes()
            mark = hashlib.sha256(body).hexdigest()[:_DIGITS]
            found.append((name, Asset(body, media_type, mark)))
    return found
