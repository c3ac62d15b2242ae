"""Runs inside a set-up sandbox: install the node modules that a lock file names.

    python3 -ISE -c SOURCE TREE FOLDER SCRATCH  < input.json

Takes what npm looks at from the read-only `TREE`, and from the input: `changed`, texts by path, and
`npmrc`. Leaves `node_modules` folders below the empty `FOLDER`, and that git is to ignore them. No
script of any package is run. Prints one JSON object: `{"npm": true, "complete": true}`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

__all__ = ["clean", "copy", "install", "main", "write"]

NAMES = ("package.json", "package-lock.json", "npm-shrinkwrap.json")
COMMAND = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")


def copy(tree: str, folder: str) -> None:
    """Take the files of the tree along that npm looks at."""
    for where, names, files in os.walk(tree):
        names[:] = [name for name in names if name not in (".git", "node_modules")]
        for name in set(files) & set(NAMES):
            source = os.path.join(where, name)
            if not os.path.islink(source):
                target = os.path.join(folder, os.path.relpath(where, tree), name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(source, target)


def write(path: str, text: str) -> None:
    """Write a small file, making its folders."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def install(npm: str, folder: str, scratch: str) -> bool:
    """Install what the lock file names, exactly."""
    settings = ("--cache", scratch + "/cache", "--userconfig", scratch + "/npmrc")
    done = subprocess.run([npm, *COMMAND, *settings], cwd=folder, check=False, stdout=sys.stderr)
    return done.returncode == 0


def clean(folder: str) -> None:
    """Remove everything but the modules."""
    for where, names, files in os.walk(folder):
        names[:] = [name for name in names if name != "node_modules"]
        for name in files:
            os.unlink(os.path.join(where, name))


def main(tree: str, folder: str, scratch: str) -> None:
    """Install and say whether that went well."""
    given = json.load(sys.stdin)
    npm = shutil.which("npm")
    complete = False
    if npm is not None:
        copy(tree, folder)
        for path, text in given["changed"].items():
            write(os.path.join(folder, path), text)
        write(scratch + "/npmrc", given["npmrc"])
        complete = install(npm, folder, scratch)
        clean(folder)
        write(os.path.join(folder, ".git/info/exclude"), "node_modules/\n")
    sys.stdout.write(json.dumps({"npm": npm is not None, "complete": complete}))


if __name__ == "__main__":
    main(*sys.argv[1:])
