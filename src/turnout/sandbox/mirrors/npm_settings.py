"""What the user's own npm is told about where packages come from."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from turnout.sandbox.mirrors.pip_settings import PackagePlace
from turnout.sandbox.workspace.process import run_program

__all__ = ["NpmSettings", "ask_npm", "read_npm_settings"]

_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class NpmSettings:
    """Where packages come from."""

    registry: PackagePlace
    scoped: tuple[tuple[str, PackagePlace], ...] = ()
    """Registries of single scopes, each with its scope, such as `@company`."""
    certificates: str | None = None
    """File with the certificate authorities that count."""
    proxy: bool = False

    @property
    def places(self) -> tuple[PackagePlace, ...]:
        """All of them."""
        return (self.registry, *(place for _, place in self.scoped))


async def ask_npm() -> NpmSettings | None:
    """Ask the npm of the host, run as the user; None where there is none that answers."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    asked = [npm, "config", "list", "--json"]
    done = await run_program(asked, timeout=_TIMEOUT, cwd=Path("/"))
    return read_npm_settings(done.stdout) if done.ok else None


def read_npm_settings(listing: bytes) -> NpmSettings | None:
    """Understand what `npm config list --json` prints; None where it makes no sense."""
    try:
        settings = json.loads(listing)
    except ValueError:
        return None
    registry = settings.get("registry") if isinstance(settings, dict) else None
    if not isinstance(registry, str):
        return None
    scoped = tuple(
        (name.removesuffix(":registry"), PackagePlace(value))
        for name, value in settings.items()
        if name.startswith("@") and name.endswith(":registry") and isinstance(value, str)
    )
    certificates = settings.get("cafile")
    return NpmSettings(
        registry=PackagePlace(registry),
        scoped=scoped,
        certificates=certificates if isinstance(certificates, str) else None,
        proxy=bool(settings.get("proxy") or settings.get("https-proxy")),
    )
