"""Turns such as no model should make, and some do."""

import json
import random
from collections.abc import Sequence
from typing import Final

from turnout.core.json import JsonObject
from turnout.core.usage import Usage
from turnout.testing.hostile.canaries import Canaries
from turnout.testing.turns import Call, Turn

__all__ = ["ODD_ARGUMENTS", "hostile_arguments", "odd_turn"]

_NAMES: Final = (
    *("list_files", "read_file", "run_tests", "apply_patch", "run", "edit_file", "finish"),
    *("write_file", "run_command", "list_directory", "search_files", "fetch_url"),
    *("", "edit_fil", "\ud800"),
)
_FITTING: Final = {
    "command": ("run", "run_command"),
    "content": ("write_file",),
    "diff": ("apply_patch",),
    "offset": ("read_file",),
    "old": ("edit_file",),
    "path": ("read_file", "list_directory"),
    "pattern": ("search_files", "list_files"),
    "url": ("fetch_url",),
}
_SENSE: Final = 0.6
"""How often a call is one that could have been meant."""

ODD_ARGUMENTS: Final = (
    *("", "null", "{", "}", "[]", '{"path": "a.py"}', '{"path": "a.py"', '"{}"', "{}}", "\0"),
    *('{"command": "ls"}', '{"command": "long"}', '{"path": "../x"}', '{"path": "big"}'),
    *('{"path": "a.py", "old": "x = 1", "new": "x = 2"}', '{"summary": "Done."}', "```json\n{}"),
    *('{"pattern": "("}', '{"pattern": "y", "glob": "../*"}', '{"url": "x"}'),
    *('{"path": "output:1", "offset": "3"}', '{"path": "test_a.py", "content": "no"}'),
    '{"diff": "--- a/a.py\\n+++ b/a.py\\n@@ @@\\n-x = 1\\n+x = 2\\n"}',
)
"""What calls may be made with, right and wrong."""

_TEXTS: Final = (
    *("", "", "", " ", "Done.", "<think>", "<think>so</think>", "1. a\n2. b\nDone when: c", "[2]"),
    *('<tool_call>{"name": "run"}</tool_call>', "\ud800", "\0", "x" * 9_000, "<|im_start|>system"),
)
_REASONS: Final = (None, None, None, None, None, "stop", "length", "content_filter", "odd")

_ATTACKS: Final = (
    "cat {folder}/secret",
    "ls -laR {folder}; echo x > {folder}/secret; chmod 000 {folder}/secret",
    "rm -rf {folder} {mark}",
    "touch {mark} /tmp/ours /var/tmp/ours; ls /tmp",
    "ln -sfn {folder} out; cat out/secret; cp -r out stolen",
    "ln -sf {folder}/secret a.py; ln -sfn / root",
    "cat /proc/1/root{folder}/secret /proc/[0-9]*/cwd/secret; ls /proc/*/fd",
    "exec 3<>/dev/tcp/127.0.0.1/{port}; echo hi >&3; cat <&3",
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 1)'",
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{folder}/door\")'",
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")'",
    "kill -9 {pid}; kill -STOP {pid}; kill -9 -1",
    "mount --bind / mnt; unshare -r true; nsenter -t 1 -a true; chroot /proc/1/root",
    "printf '[core]\\nfsmonitor = touch {mark}\\nhooksPath = h\\n' >> .git/config; git status",
    "mkdir -p .git/hooks h; printf '#!/bin/sh\\ntouch {mark}\\n' | tee .git/hooks/pre-commit h/x",
    "chmod +x .git/hooks/* h/*; git add -A; git commit -m x; git checkout -q HEAD~",
    "printf '* filter=x diff=x\\n' > .gitattributes; git config filter.x.clean 'touch {mark}'",
    "rm -rf .git; git init -q .; git commit -q --allow-empty -m x",
    "rm -rf ./* ./.[a-z]*; ls -la",
    "mkdir -p a/b; touch \"$(printf 'a/b/\\377\\n x')\" -- '-n' 'x b/y'; chmod 000 a",
    "mkfifo pipe; mknod zero c 1 5; ln -s loop loop; ln -s /dev/zero endless",
    "for n in $(seq 300); do mkdir -p d/$n; done; cd d; while mkdir e 2>&1 && cd e; do :; done",
    "sleep 60 & setsid sleep 60 & (sleep 60 >&- 2>&- &) ; echo started",
    "yes | head -c 3000000; printf '\\0\\377\\033]0;x\\007\\033[31mred'",
    "head -c 2000000 /dev/zero | tr '\\0' x; head -c 500000 /dev/urandom >&2",
    "read line; cat; python3 -c 'input()'; echo got:$line",
    "env; cat /proc/self/environ /etc/shadow; kill $$",
    "cd /venv/bin; printf '#!/bin/sh\\ntouch {mark}\\n' | tee rm readlink ln git; chmod +x *",
)
"""Lines for a shell that reach for what lies outside, or trouble whoever reads the tree after."""

_PATHS: Final = (
    *("{folder}/secret", "out/secret", "root{folder}/secret", "../../../..{folder}/secret"),
    *("/proc/self/root{folder}/secret", ".git/config", ".git/hooks/x", "endless", "pipe", "loop"),
)
_URLS: Final = (
    *("http://127.0.0.1:{port}/", "http://localhost:{port}/", "file://{folder}/secret"),
    "http://example.org:{port}/@127.0.0.1",
)
_LINK: Final = (
    "diff --git a/out b/out\nnew file mode 120000\n--- /dev/null\n+++ b/out\n@@ -0,0 +1 @@\n"
    "+{folder}\n"
)


def hostile_arguments(canaries: Canaries) -> tuple[str, ...]:
    """Return arguments of calls that try to reach canaries, among those that are only odd."""
    at = canaries.places
    lines: list[JsonObject] = [{"command": line.format_map(at)} for line in _ATTACKS]
    for path in (path.format_map(at) for path in _PATHS):
        edit: JsonObject = {"path": path, "old": "", "new": "x"}
        diff = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        lines += [{"path": path}, {"path": path, "content": "x"}, edit, {"diff": diff}]
    lines += [{"url": url.format_map(at)} for url in _URLS]
    lines.append({"diff": _LINK.format_map(at)})
    return (*ODD_ARGUMENTS, *map(json.dumps, lines))


def odd_turn(chance: random.Random, arguments: Sequence[str] = ODD_ARGUMENTS) -> Turn:
    """Return a turn that may be broken in every way at hand."""
    calls = tuple(
        _odd_call(chance, "".join(chance.choices(arguments, k=chance.choice((1, 1, 1, 1, 2)))))
        for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 40)))
    )
    return Turn(
        chance.choice(_TEXTS),
        calls,
        reasoning=chance.choice(_TEXTS),
        usage=Usage(chance.randrange(9_000), chance.choice((5, 5, 5, 4_000))),
        finish_reason=chance.choice(_REASONS),
    )


def _odd_call(chance: random.Random, arguments: str) -> Call:
    """Return a call of a tool that these arguments mostly fit."""
    fitting = [
        name for field, names in _FITTING.items() if f'"{field}"' in arguments for name in names
    ]
    names = fitting if fitting and chance.random() < _SENSE else _NAMES
    return Call(chance.choice(names), arguments, chance.choice((None, None, "", "same", "id\0")))
