"""Sandboxes for other programs: `Sandbox` where calls wait, `AsyncSandbox` where they are awaited.

with Sandbox.create(timeout=600) as sandbox:
    sandbox.files.write("hello.py", "print('hello')")
    print(sandbox.exec("python hello.py").stdout)
"""

from turnout.core.runs import Connection, FileChange, Patch
from turnout.errors import CommandFailedError
from turnout.sandbox.base import SandboxUsage
from turnout.sdk.async_sandbox import (
    AsyncCommands,
    AsyncFiles,
    AsyncRunningCommand,
    AsyncSandbox,
)
from turnout.sdk.file_calls import FileInfo
from turnout.sdk.options import CreateOptions, ExecOptions
from turnout.sdk.result import ExecResult
from turnout.sdk.sandbox import Commands, Files, RunningCommand, Sandbox

__all__ = [
    "AsyncCommands",
    "AsyncFiles",
    "AsyncRunningCommand",
    "AsyncSandbox",
    "CommandFailedError",
    "Commands",
    "Connection",
    "CreateOptions",
    "ExecOptions",
    "ExecResult",
    "FileChange",
    "FileInfo",
    "Files",
    "Patch",
    "RunningCommand",
    "Sandbox",
    "SandboxUsage",
]
