"""Runs inside a set-up sandbox: make a virtual environment that holds pip, and finish it.

    python3 -ISE -c SOURCE begin VENV PIP SCRATCH   < files.json
    python3 -ISE -c SOURCE finish VENV PROJECT      < pytest_report.py

`VENV` is an empty folder, `PIP` one with pip as it was installed elsewhere, or with a wheel of it;
it may be missing. `SCRATCH` is made, with the files of the input in it: texts by name, in which
`${TURNOUT_…}` stands for a variable, and `${TURNOUT_SCRATCH}` for that folder. Between the two
calls pip is run. `PROJECT` is where the metadata of the project under test will be shown.
"""

from __future__ import annotations

import compileall
import glob
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

__all__ = [
    "add_pip",
    "add_plugin",
    "add_project",
    "begin",
    "copied",
    "finish",
    "main",
    "packages",
    "ways",
    "works",
    "write",
]

PLUGIN = "turnout_report"
METADATA = "Metadata-Version: 2.1\nName: turnout-report\nVersion: 1\n"
ENTRY_POINTS = "[pytest11]\nturnout_report = turnout_report\n"
ASK_PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'), end='')"
HERE = "${TURNOUT_SCRATCH}"
VARIABLE = re.compile(r"\$\{TURNOUT_\w+\}")
PIP_SCRIPT = """\
#!{python}
import sys
from pip._internal.cli.main import main
sys.exit(main())
"""


def packages(venv: str) -> str:
    """Return the folder of the environment's packages."""
    return subprocess.check_output([venv + "/bin/python", "-I", "-c", ASK_PACKAGES], text=True)


def copied(venv: str, source: str) -> None:
    """Put pip into the environment as it was installed elsewhere."""
    target = packages(venv)
    for name in os.listdir(source):
        if name == "pip" or name.startswith("pip-"):
            shutil.copytree(os.path.join(source, name), os.path.join(target, name))
    for name in ("pip", "pip3"):
        script = os.open(f"{venv}/bin/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777)
        with os.fdopen(script, "w") as file:
            file.write(PIP_SCRIPT.format(python=venv + "/bin/python"))


def ways(venv: str, source: str) -> Iterator[list[str]]:
    """Yield commands that may install pip; an empty one where it was copied."""
    if os.path.isdir(os.path.join(source, "pip")):
        copied(venv, source)
        yield []
    python = [venv + "/bin/python", "-I"]
    yield [*python, "-m", "ensurepip", "--upgrade", "--default-pip"]
    for wheel in glob.glob(os.path.join(glob.escape(source), "pip-*.whl"))[:1]:
        yield [*python, wheel + "/pip", "--isolated", "install", "--no-index", "--quiet", wheel]


def works(command: list[str]) -> bool:
    """Run a command, whatever it prints, and say whether that went well."""
    quiet = subprocess.DEVNULL
    return subprocess.run(command, check=False, stdout=quiet, stderr=quiet).returncode == 0


def add_pip(venv: str, source: str) -> bool:
    """Install pip by the first way that works."""
    for command in ways(venv, source):
        if command and not works(command):
            continue
        if works([venv + "/bin/python", "-I", "-m", "pip", "--version"]):
            return True
    return False


def begin(venv: str, source: str, scratch: str) -> None:
    """Make the environment, and what pip is to know."""
    os.makedirs(scratch, exist_ok=True)
    for name, text in json.load(sys.stdin).items():
        here = text.replace(HERE, scratch)
        known = VARIABLE.sub(lambda found: os.path.expandvars(found[0]), here)
        write(os.path.join(scratch, name), known)
    make = [sys.executable, "-I", "-m", "venv", "--without-pip", "--symlinks", venv]
    subprocess.run(make, check=True)
    if not add_pip(venv, source):
        sys.exit("there is no pip to begin with")


def add_plugin(folder: str, source: str) -> None:
    """Install the plugin that reports to us, such that every pytest in the environment loads it."""
    described = os.path.join(folder, PLUGIN + "-1.dist-info")
    shutil.rmtree(described, ignore_errors=True)
    os.mkdir(described)
    write(os.path.join(folder, PLUGIN + ".py"), source)
    write(os.path.join(described, "METADATA"), METADATA)
    write(os.path.join(described, "entry_points.txt"), ENTRY_POINTS)
    compileall.compile_file(os.path.join(folder, PLUGIN + ".py"), quiet=2)


def add_project(folder: str, project: str) -> None:
    """Let Python look where the metadata of the project under test is, if there is any."""
    site = os.path.join(project, "site")
    line = f"import os, site; os.path.isdir({site!r}) and site.addsitedir({site!r})\n"
    write(os.path.join(folder, "turnout_project.pth"), line)


def finish(venv: str, project: str) -> None:
    """Add what is ours, after everything that others have made."""
    folder = packages(venv)
    compileall.compile_dir(os.path.join(folder, "pip"), quiet=2)
    add_plugin(folder, sys.stdin.read())
    add_project(folder, project)


def write(path: str, text: str) -> None:
    """Write a small file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(what: str, *arguments: str) -> None:
    """Do what the first argument says."""
    if what == "begin":
        begin(*arguments)
    else:
        finish(*arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
