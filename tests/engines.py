"""A stand-in for a container engine: a program that answers from a table and notes each call."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from turnout.sandbox.container.engines.engine import Engine

__all__ = ["DOCKER", "PODMAN", "ROOTLESS", "FakeEngine", "docker_info", "podman_info"]

_PROGRAM = """#!{python} -ISE
import json, pathlib, sys
here = pathlib.Path(__file__).parent
with open(here / "asked", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
for answer in json.loads((here / "answers").read_text()):
    words = answer["words"].split()
    if sys.argv[1 : 1 + len(words)] == words:
        sys.stdout.write(answer["stdout"])
        sys.stderr.write(answer["stderr"])
        sys.exit(answer["code"])
sys.exit("unknown command: " + " ".join(sys.argv[1:]))
"""

PODMAN = Engine("podman", "/usr/bin/podman", "4.3.1", "runc", cgroups="v1")
ROOTLESS = Engine("podman", "/usr/bin/podman", "5.4.0", "crun", rootless=True, limits=False)
DOCKER = Engine("docker", "/usr/bin/docker", "28.2.2", "runc")


def podman_info(**security: object) -> dict[str, object]:
    """Return what `podman info` says, as recorded, with another word on security."""
    return {
        "host": {
            "cgroupControllers": ["memory", "pids"],
            "cgroupVersion": "v2",
            "ociRuntime": {"name": "crun", "path": "/usr/bin/crun"},
            "security": {"rootless": False, "seccompEnabled": True, **security},
            "serviceIsRemote": False,
        },
        "version": {"APIVersion": "4.3.1", "Version": "4.3.1"},
    }


def docker_info(**fields: object) -> dict[str, object]:
    """Return what `docker info` says, as recorded, with other fields."""
    return {
        "ServerVersion": "28.2.2",
        "SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"],
        "DefaultRuntime": "runc",
        "CgroupVersion": "2",
        "MemoryLimit": True,
        "PidsLimit": True,
        "CpuCfsQuota": True,
        **fields,
    }


class FakeEngine:
    """The program, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.program = folder / "engine"
        self.program.write_text(_PROGRAM.format(python=sys.executable))
        self.program.chmod(0o755)
        self._answers: list[Mapping[str, object]] = []
        self._keep()

    def answer(
        self, words: str, stdout: object = "", *, stderr: str = "", code: int = 0
    ) -> "FakeEngine":
        """Answer commands that begin with these words; what is no text is given as JSON."""
        text = stdout if isinstance(stdout, str) else json.dumps(stdout)
        self._answers.append({"words": words, "stdout": text, "stderr": stderr, "code": code})
        self._keep()
        return self

    @property
    def asked(self) -> list[list[str]]:
        """Return the arguments of each call so far."""
        path = self.program.with_name("asked")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _keep(self) -> None:
        self.program.with_name("answers").write_text(json.dumps(self._answers))
