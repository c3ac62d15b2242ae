"""Rows 34 to 40: patches that reach where a patch must not."""

import shlex

from tests.abuse.table import HERE, Attempt, Place, Row

from turnout.sandbox.base import Command

__all__ = ["ROWS", "adding", "applying", "linking"]

_LOOK = (
    "ls -d /tmp/pwn* $OUTSIDE/pwn* {here}/* .git/hooks/pre-commit sub k 2>/dev/null; "
    "git config --list | grep evil; stat -c 'mode %a' su 2>/dev/null; echo looked"
)


def adding(path: str, mode: str = "100644", text: str = "evil") -> bytes:
    """Return a patch that adds a file of one line."""
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\n"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"
    ).encode()


def linking(path: str, target: str) -> bytes:
    """Return a patch that adds a symbolic link."""
    return adding(path, "120000", target) + b"\\ No newline at end of file\n"


def applying(*patches: bytes, before: str = "true") -> Attempt:
    """Try to apply patches, each by itself, after a shell command; then look what there is."""

    async def attempt(place: Place) -> str:
        prepare = Command(shell=before, env=place.variables)
        await place.sandbox.run(prepare)
        lines = []
        for patch in patches:
            result = await place.sandbox.apply_patch(
                patch.replace(b"$OUTSIDE", bytes(place.outside))
            )
            lines.append(f"APPLIED {result.files}" if result.applied else "refused")
        look = Command(shell=_LOOK.format(here=HERE), env=place.variables)
        seen = (await place.sandbox.run(look)).stdout.decode(errors="backslashreplace")
        outside = sorted(path.name for path in place.outside.glob("pwn*"))
        return "\n".join([*lines, seen, f"outside {outside}"])

    return attempt


async def _gnu_patch(place: Place) -> str:
    names = (f"{HERE}/ld{place.outside}/pwn5", "../../tmp/pwn6", f"{place.outside}/pwn7")
    lines = []
    await place.run("ln -s / ld")
    for name in names:
        for options in ("-p1", "-p0", "-p1 --follow-symlinks"):
            text = shlex.quote(adding(name).decode())
            run = Command(shell=f"patch {options} <<<{text}; echo ended $?", timeout=10)
            lines.append((await place.sandbox.run(run)).stdout.decode(errors="replace"))
    outside = sorted(path.name for path in place.outside.glob("pwn*"))
    return "\n".join([*lines, f"outside {outside}"])


_REFUSED = "^looked\n+outside \\[\\]$"

ROWS = (
    Row(
        34,
        "a patch of ../../tmp/pwn",
        applying(adding("../../tmp/pwn"), adding("a/../../tmp/pwn"), adding("./../tmp/pwn")),
        must=("^refused\nrefused\nrefused$", _REFUSED),
        never=("APPLIED", "pwn"),
        without="refused\nAPPLIED ('../../tmp/pwn',)\n/tmp/pwn\nlooked\n\noutside []",
    ),
    Row(
        35,
        "a patch of an absolute path",
        applying(
            b"--- /dev/null\n+++ /tmp/pwn2\n@@ -0,0 +1 @@\n+evil\n",
            b"--- /dev/null\n+++ $OUTSIDE/pwn2\n@@ -0,0 +1 @@\n+evil\n",
            adding("/tmp/pwn2"),
        ),
        must=("^refused\nrefused\nrefused$", _REFUSED),
        never=("APPLIED", "pwn"),
        without="refused\nrefused\nrefused\nlooked\n\noutside ['pwn2']",
    ),
    Row(
        36,
        "patches into .git",
        applying(
            adding(".git/hooks/pre-commit", "100755"),
            adding(".git/config", text="[core] fsmonitor = evil"),
            adding(".GIT/config"),
            adding("sub/.git/config"),
            adding("sub/.Git/hooks/x"),
            b'--- /dev/null\n+++ "b/.gi\\164/hooks/x"\n@@ -0,0 +1 @@\n+evil\n',
        ),
        must=("^(refused\n){6}", _REFUSED),
        never=("APPLIED", "pre-commit", "^sub", "evil"),
        without="refused\nrefused\nAPPLIED\n.git/hooks/pre-commit\nlooked\n\noutside []",
    ),
    Row(
        37,
        "a patch that makes a link and writes through it",
        applying(
            linking("k", "/tmp") + adding("k/pwn3"),
            linking("k", "$OUTSIDE") + adding("k/pwn3"),
            linking("k", ".git/hooks") + adding("k/pre-commit", "100755"),
        ),
        must=("^refused\nrefused\nrefused$", _REFUSED),
        never=("APPLIED", "pwn", "^k", "pre-commit"),
        without="refused\nrefused\nrefused\n/tmp/pwn3\nlooked\n\noutside []",
    ),
    Row(
        38,
        "a patch through a link that is there",
        applying(
            adding("ld/tmp/pwn4"),
            adding("ld$OUTSIDE/pwn4"),
            adding("lg/hooks/pre-commit", "100755"),
            before="ln -s / ld; ln -s .git lg",
        ),
        must=("^refused\nrefused\nrefused$", _REFUSED),
        never=("APPLIED", "pwn", "pre-commit"),
        without="APPLIED\nrefused\nrefused\nlooked\n\noutside ['pwn4']",
    ),
    Row(
        39,
        "the same by the patch program",
        _gnu_patch,
        must=(r"^(ended (1|2|127)\s+(.*\n)*?){3}", r"^outside \[\]$"),
        never=(r"outside \['",),
        without="ended 0\nended 0\nended 0\noutside ['pwn5']",
    ),
    Row(
        40,
        "a patch of modes that no file may have",
        applying(
            adding("su", "104755"),
            adding("su", "100755") + b"diff --git a/su b/su\nold mode 100755\nnew mode 106755\n",
            adding("module", "160000", "Subproject commit " + "1" * 40),
            adding("device", "060000"),
        ),
        must=("^(refused\n){4}", _REFUSED),
        never=("APPLIED", r"mode [2-7]\d{3}"),
        without="APPLIED ('su',)\nrefused\nmode 4755\nlooked\n\noutside []",
    ),
)
