"""An image for tests of containers, made without a registry, once for each machine.

It stays in Podman's store: the next test run finds it there. Its tag names what it was made of.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.overdue import unbounded

__all__ = ["image_name", "require_image"]

PROGRAMS = ("podman", "runc", "debootstrap")
PACKAGES = "git,python3,python3-venv"
LEFT_OUT = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man")
SECONDS = 900.0


def require_image() -> str:
    """Return the name of the image; skips where it cannot be made here."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"containers need {', '.join(missing)}: apt-get install {' '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("making an image for the tests of containers takes root")
    name = image_name()
    with unbounded(), alone():
        if podman("image", "exists", name) != 0:
            make(name)
    return name


def image_name() -> str:
    """Return what the image is called, whether it is there or not."""
    recipe = hashlib.sha256(f"{suite()} {PACKAGES} {LEFT_OUT}".encode()).hexdigest()[:12]
    return f"localhost/turnout-test:{recipe}"


def suite() -> str:
    """Return the release that this machine can bootstrap: its own, else one of Debian's."""
    release = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if line
    )
    own = release.get("VERSION_CODENAME", "").strip('"')
    return own if Path("/usr/share/debootstrap/scripts", own or "-").exists() else "bookworm"


@contextmanager
def alone() -> Iterator[None]:
    """Let one test process make the image while the others wait for it."""
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def podman(*words: str) -> int:
    """Run a command of Podman and return its exit status."""
    return subprocess.run(
        ["podman", *words], check=False, capture_output=True, timeout=60
    ).returncode


def make(name: str) -> None:
    """Bootstrap a system and import it; takes about a minute."""
    with tempfile.TemporaryDirectory(prefix="turnout-image-") as folder:
        run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite(), folder)
        for path in LEFT_OUT:
            shutil.rmtree(Path(folder, path), ignore_errors=True)
        run("tar", "--create", "--file=image.tar", "--exclude=./image.tar", ".", cwd=folder)
        run("podman", "import", "--quiet", "image.tar", name, cwd=folder)


def run(*argv: str, cwd: str = "/") -> None:
    """Run a program that must succeed; skips with its last words where the network is missing."""
    done = subprocess.run(
        argv, check=False, capture_output=True, text=True, cwd=cwd, timeout=SECONDS
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines() or ["it printed nothing"]
        pytest.skip(f"no image for the tests of containers: {argv[0]}: {said[-1]}")
