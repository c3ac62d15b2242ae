"""Metadata of an installed project, as text from a build that nobody vouches for."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser, Error
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from turnout.sandbox.base import REPO, VENV
from turnout.sandbox.workspace.folders import readable

__all__ = ["lay_out"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,100}")
_ENTRY = re.compile(r"([A-Za-z_][\w.]*)\s*:\s*([A-Za-z_][\w.]*)\s*(?:\[.*\])?", re.ASCII)
_SCRIPT_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,100}", re.ASCII)
_FILES: Final = (
    *("METADATA", "WHEEL", "INSTALLER", "entry_points.txt", "top_level.txt", "direct_url.json"),
)
_SCRIPT = """\
#!{python}
import sys
from {module} import {first}
sys.exit({function}())
"""


def lay_out(folder: Path, files: Mapping[str, str], paths: Sequence[str]) -> bool:
    """Write what Python is to know of a project into an empty folder; False where it is none.

    `site` has the description and the paths, `bin` the scripts. Of all that is given nothing runs
    when Python starts: the lines of a path file that begin with `import` would.
    """
    described = _folder_name(files.get("METADATA", ""))
    if described is None:
        return False
    site, scripts = readable(folder / "site"), readable(folder / "bin")
    target = readable(site / described)
    for name in _FILES:
        if name in files:
            _write(target / name, files[name])
    _write(site / "project.pth", "".join(f"{path}\n" for path in filter(_is_path, paths)))
    for name, text in _scripts(files.get("entry_points.txt", "")):
        _write(scripts / name, text, mode=0o755)
    return True


def _folder_name(metadata: str) -> str | None:
    """Return the name by which Python finds the description."""
    headers = HeaderParser().parsestr(metadata)
    name, version = str(headers.get("Name", "")), str(headers.get("Version", ""))
    if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
        return None
    return f"{re.sub('[-_.]+', '_', name).lower()}-{version.replace('-', '_')}.dist-info"


def _is_path(path: str) -> bool:
    within = path == REPO or path.startswith(f"{REPO}/")
    return within and path.isprintable() and os.path.normpath(path) == path


def _scripts(entry_points: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the commands that entry points make."""
    parser = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    try:
        parser.read_string(entry_points)
    except Error:
        return
    for section in ("console_scripts", "gui_scripts"):
        for name, value in parser.items(section) if parser.has_section(section) else ():
            entry = _ENTRY.fullmatch(value.strip())
            if entry is None or not _SCRIPT_NAME.fullmatch(name):
                continue
            module, function = entry.groups()
            first = function.partition(".")[0]
            script = _SCRIPT.format(
                python=f"{VENV}/bin/python", module=module, first=first, function=function
            )
            yield name, script


def _write(path: Path, text: str, *, mode: int = 0o644) -> None:
    path.write_text(text, "utf-8", errors="replace")
    path.chmod(mode)
