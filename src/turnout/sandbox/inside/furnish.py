"""Runs inside a set-up sandbox: make the environment of the tests.

    python3 -ISE -c SOURCE WHEELS VENV REQUIREMENT...  < pytest_report.py

`WHEELS` holds wheels, pip's own among them; `VENV` is an empty folder. Prints one JSON object:
`{"complete": true}`, or false where pytest alone could be installed.
"""

from __future__ import annotations

import compileall
import glob
import json
import os
import subprocess
import sys

__all__ = [
    "add_plugin",
    "install",
    "main",
    "write",
]

PLUGIN = "turnout_report"
METADATA = "Metadata-Version: 2.1\nName: turnout-report\nVersion: 1\n"
ENTRY_POINTS = "[pytest11]\nturnout_report = turnout_report\n"


def install(wheels: str, venv: str, requirements: list[str]) -> bool:
    """Install from the wheels alone; nothing is fetched."""
    (pip,) = glob.glob(os.path.join(glob.escape(wheels), "pip-*.whl"))[:1]
    command = [venv + "/bin/python", "-I", pip + "/pip", "--isolated", "install"]
    command += ["--no-index", "--find-links", wheels, "--no-cache-dir", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--no-warn-script-location", "--"]
    return subprocess.run(command + requirements, check=False).returncode == 0


def add_plugin(venv: str, source: str) -> None:
    """Install the plugin that reports to us, such that every pytest in the environment loads it."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'), end='')"
    packages = subprocess.check_output([venv + "/bin/python", "-I", "-c", ask], text=True)
    described = os.path.join(packages, PLUGIN + "-1.dist-info")
    os.mkdir(described)
    write(os.path.join(packages, PLUGIN + ".py"), source)
    write(os.path.join(described, "METADATA"), METADATA)
    write(os.path.join(described, "entry_points.txt"), ENTRY_POINTS)
    compileall.compile_file(os.path.join(packages, PLUGIN + ".py"), quiet=2)


def write(path: str, text: str) -> None:
    """Write a small file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(wheels: str, venv: str, *requirements: str) -> None:
    """Make the environment and say whether it is complete."""
    plugin = sys.stdin.read()
    make = [sys.executable, "-I", "-m", "venv", "--without-pip", "--symlinks", venv]
    subprocess.run(make, check=True)
    complete = install(wheels, venv, ["pytest", *requirements])
    if not complete and not install(wheels, venv, ["pytest"]):
        sys.exit("pytest could not be installed")
    add_plugin(venv, plugin)
    sys.stdout.write(json.dumps({"complete": complete}))


if __name__ == "__main__":
    main(*sys.argv[1:])
