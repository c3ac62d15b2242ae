"""A run in which everything that a model or a repository can say attacks the page that shows it."""

from collections.abc import Sequence
from typing import Final

from turnout.testing.turns import Call, Turn

__all__ = ["BIDI", "NAMES", "TASK", "TURNS", "UNSEEN", "WIDE"]

UNSEEN: Final = (
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\x1b\x07"
    "\u200c\u200d\u034f\u2800\u17b4\u180b\ufe0e\U0001d173\U000e0101\U000e01ef\ue000\u3164"
)
"""Characters that turn the direction of writing, have no width or look, carry what nobody sees, or
steer a terminal."""
BIDI: Final = "safe\u202e\u2066gnp.exe\u2069\u2066"
_MARKUP: Final = (
    "<script>globalThis.within = 1; alert('script')</script>",
    "<img src=x onerror=\"globalThis.within = 1; alert('image')\">",
    "\"'><svg onload=alert('svg')>",
    "</pre></textarea></title></style><iframe srcdoc='<script>parent.within = 1</script>'>",
    "<a href=\"javascript:alert('link')\">javascript:alert('bare')</a>",
    "<form action=http://elsewhere.example.org><input name=csrf><button>Approve</button></form>",
    "<link rel=stylesheet href=http://elsewhere.example.org/a.css>",
    "<div hx-get=http://elsewhere.example.org hx-trigger=load hx-on:load=\"alert('htmx')\">",
    "{{ 7 * 7 }} {% raw %} ${7*7} <!-- ]]>",
    "[click](javascript:alert('markdown')) ![](http://elsewhere.example.org/a.png)",
)
_ALL: Final = "\n".join((*_MARKUP, BIDI, f"u{UNSEEN}v", "\x1b[31mred\x1b[0m\x07"))
WIDE: Final = 1_000_000
"""Characters of one line, and combining marks on one letter."""
NAMES: Final = (
    "<img src=x onerror=alert(1)>.txt",
    f"{BIDI}.py",
    "new\nline\t&amp;\"'.js",
    "-" + "n" * 200 + ".css",
)
"""Of files."""
TASK: Final = f"Be careful.\n{_ALL}\n" + "W" * 20_000

_PROGRAM: Final = f"""\
import pathlib, sys
everything = {_ALL!r}
for name in {NAMES!r}:
    pathlib.Path(name).write_text(everything)
pathlib.Path("wide.html").write_text(everything + "\\n" + "W" * {WIDE} + "\\n")
pathlib.Path("marks.txt").write_text("e" + "\\u0301" * {WIDE // 2})
pathlib.Path("image.svg").write_bytes(b"\\x89PNG\\r\\n\\0" + bytes(range(256)))
print(everything)
print("W" * {WIDE})
sys.stderr.write("\\u202e" * 1000)
"""
_SHELL: Final = f"python3 - <<'END'\n{_PROGRAM}END\n"

TURNS: Final[Sequence[Turn]] = (
    Turn(f"1. {_ALL}"),
    Turn(_ALL, calls=(Call("run", {"command": _SHELL}),)),
    Turn(_ALL, calls=(Call("run", {"command": "cat wide.html; exit 3"}),)),
    Turn(calls=(Call("read_file", {"path": NAMES[0]}), Call(_MARKUP[0], {_ALL: _ALL}))),
    Turn(calls=(Call("read_file", "{broken " + _ALL),)),
    Turn(calls=(Call("finish", {"summary": _ALL}),)),
    Turn(_ALL),
)
"""What the model says to it, on the surface `shell`."""
