"""Prints `docs/reference/sdk.md`: names, signatures and docstrings of the SDK, as they are."""

import ast
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType

from turnout import errors
from turnout.core import runs
from turnout.sandbox import base
from turnout.sdk import file_calls, options, result, sandbox

HEAD = """\
# SDK

Made from the code itself. [How to use it](../howto/sdk.md) has programs to start from.

`Sandbox` and `AsyncSandbox` are in `turnout`, everything else on this page is in `turnout.sdk`, and
errors are in `turnout.errors`. `AsyncSandbox`, with its `commands` and `files`, has the methods of
`Sandbox` as coroutines: `await AsyncSandbox.create()`, `async with`, `await sandbox.exec("make")`.
"""


def class_of(module: ModuleType, name: str) -> ast.ClassDef:
    """Return a class as it is written."""
    tree = ast.parse(inspect.getsource(module))
    return next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)


def prose(node: ast.ClassDef | ast.FunctionDef) -> str:
    """Return a docstring as paragraphs of one line each."""
    paragraphs = (ast.get_docstring(node) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def fields(node: ast.ClassDef) -> Iterator[str]:
    """Yield the fields of a class as lines of a table."""
    yield "| Name | Type | Meaning |\n|---|---|---|"
    for at, child in enumerate(node.body):
        if not isinstance(child, ast.AnnAssign):
            continue
        beneath = node.body[at + 1] if at + 1 < len(node.body) else None
        said = isinstance(beneath, ast.Expr) and isinstance(beneath.value, ast.Constant)
        text = " ".join(str(beneath.value.value).split()) if said else ""
        kind = ast.unparse(child.annotation).replace("|", "\\|")
        yield f"| `{ast.unparse(child.target)}` | `{kind}` | {text} |"


def signature(node: ast.FunctionDef) -> str:
    """Return the call that a method takes."""
    arguments = ast.arguments(
        [],
        [a for a in node.args.args if a.arg not in {"self", "cls"}],
        None,
        node.args.kwonlyargs,
        node.args.kw_defaults,
        node.args.kwarg and ast.arg(node.args.kwarg.arg),
        node.args.defaults,
    )
    returned = ast.unparse(node.returns).strip("'\"") if node.returns else "None"
    taken = ast.unparse(arguments).replace("=", " = ")
    return f"{node.name}({taken}) -> {returned}"


def methods(node: ast.ClassDef) -> Iterator[str]:
    """Yield the public methods and properties of a class."""
    for child in node.body:
        if not isinstance(child, ast.FunctionDef) or child.name.startswith("_"):
            continue
        decorators = {ast.unparse(decorator) for decorator in child.decorator_list}
        if "overload" in decorators:
            continue
        shown = child.name if "property" in decorators else signature(child)
        yield f"### `{shown}`\n\n{prose(child)}"


def page() -> Iterator[str]:
    """Yield the parts of the page."""
    yield HEAD
    face = class_of(sys.modules["turnout.sdk.face"], "Face")
    made = class_of(sandbox, "Sandbox")
    yield f"## Sandbox\n\n{prose(made)}"
    yield from methods(face)
    yield from methods(made)
    for name in ("CreateOptions", "ExecOptions"):
        node = class_of(options, name)
        yield f"## {name}\n\n{prose(node)}"
        yield "\n".join(fields(node))
    for name in ("Commands", "Files", "RunningCommand"):
        node = class_of(sandbox, name)
        yield f"## {name}\n\n{prose(node)}"
        yield from methods(node)
    yield "## Values"
    for module, name in (
        (result, "ExecResult"),
        (file_calls, "FileInfo"),
        (base, "SandboxUsage"),
        (runs, "Connection"),
        (runs, "Patch"),
        (runs, "FileChange"),
    ):
        node = class_of(module, name)
        yield f"### `{name}`\n\n{prose(node)}"
        yield "\n".join(fields(node))
        yield from (text.replace("### ", "#### ", 1) for text in methods(node))
    yield "## Errors\n\nAll of them are `turnout.errors.TurnoutError`."
    yield "\n".join(raised())


def raised() -> Iterator[str]:
    """Yield the errors that the SDK raises as lines of a table."""
    yield "| Error | When |\n|---|---|"
    for name in (
        "CommandFailedError",
        "ToolError",
        "SandboxDiedError",
        "SandboxError",
        "SandboxUnavailableError",
        "RepositoryError",
        "MissingExtraError",
        "ConfigError",
        "UsageError",
    ):
        yield f"| `{name}` | {prose(class_of(errors, name)).splitlines()[0]} |"


def main() -> None:
    """Print the page."""
    sys.stdout.write("\n\n".join(part.rstrip("\n") for part in page()) + "\n")


if __name__ == "__main__":
    main()
