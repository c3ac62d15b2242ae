"""A sandbox in memory: files in a mapping, commands answered by a script.

    sandbox = ScriptedSandbox({"calc.py": "add = int.__sub__"})
    sandbox.answer("pytest", result(b"1 failed", code=1), result(b"1 passed"))
    ...
    assert sandbox.commands[0].shell == "pytest -q"

Files, patches and diffs behave as in a real sandbox, symbolic links excepted. A command whose
line no answer matches exits with status 0 and prints nothing.
"""

from turnout.testing.sandbox.driver import Created, ScriptedDriver
from turnout.testing.sandbox.patching import FakeFile
from turnout.testing.sandbox.scripted import Call, ScriptedSandbox, command_line, result

__all__ = [
    "Call",
    "Created",
    "FakeFile",
    "ScriptedDriver",
    "ScriptedSandbox",
    "command_line",
    "result",
]
