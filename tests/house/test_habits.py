"""Habits that a linter alone does not hold, with no escape per line."""

import ast
import re

from tests.house.sources import ROOT, SRC, Source, sources

BROAD_EXCEPT_ALLOWED: dict[str, str] = {
    "src/turnout/cli/main.py": "the one place that turns any exception into an exit code",
}
ESCAPE = re.compile(r"#\s*(type:\s*ignore|noqa|pragma|pyright:|mypy:|ruff:|fmt:)")


def broad(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches everything."""
    names = (
        [n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)] if handler.type else []
    )
    return handler.type is None or bool({"Exception", "BaseException"} & set(names))


def public_definitions(source: Source) -> list[tuple[str, ast.AST]]:
    """Functions, classes and methods whose names are public."""
    found: list[tuple[str, ast.AST]] = []
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append((node.name, node))
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found += [
                    (child.name, child)
                    for child in node.body
                    if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
    return [(name, node) for name, node in found if not name.startswith("_")]


def test_no_line_escapes_a_check() -> None:
    """A check that does not fit is changed for everybody, in the open."""
    escapes = [
        f"{source.name}:{number}"
        for source in sources(SRC, ROOT / "tests", ROOT / "bench")
        for number, line in enumerate(source.text.splitlines(), 1)
        if ESCAPE.search(line)
    ]
    assert not escapes


def test_no_import_hides_inside_a_function() -> None:
    """What a module needs stands at its top."""
    hidden = [
        f"{source.name}:{child.lineno}"
        for source in sources()
        for node in source.functions()
        for child in ast.walk(node)
        if isinstance(child, ast.Import | ast.ImportFrom)
    ]
    assert not hidden


def test_modules_are_loaded_by_name_only_where_allowed() -> None:
    """`wiring` loads extras, `cli.main` commands, the package its SDK, and others what is slow."""
    allowed = {
        "src/turnout/gateway/config/prices.py",
        "src/turnout/store/database.py",
        "src/turnout/wiring/accounts.py",
        "src/turnout/wiring/connections.py",
        "src/turnout/wiring/sandboxes.py",
        "src/turnout/wiring/serving/queueing.py",
        "src/turnout/wiring/traces.py",
        "src/turnout/cli/main.py",
        "src/turnout/__init__.py",
    }
    found = {s.name for s in sources() if "import_module" in s.text}
    assert found <= allowed


def test_only_settings_reads_the_environment() -> None:
    """Every other module is told what it needs."""
    readers = set()
    for source in sources():
        for node in ast.walk(source.tree):
            attribute = isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
            imported = isinstance(node, ast.ImportFrom) and any(
                alias.name in {"environ", "getenv"} for alias in node.names
            )
            if attribute or imported:
                readers.add(source.name)
    assert readers <= {"src/turnout/settings/environment.py"}


def test_broad_excepts_are_on_the_list_with_a_reason() -> None:
    """Code catches what it can name."""
    found = {
        source.name
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and broad(node)
    }
    assert found <= set(BROAD_EXCEPT_ALLOWED)


def overload(node: ast.AST) -> bool:
    """Whether a function only states a signature of one that follows, which has the docstring."""
    decorators = getattr(node, "decorator_list", ())
    return any(ast.unparse(decorator) == "overload" for decorator in decorators)


def test_every_public_name_is_documented() -> None:
    """A docstring says what the name cannot."""
    bare = [
        f"{source.name}: {name}"
        for source in sources()
        for name, node in public_definitions(source)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not ast.get_docstring(node)
        and not overload(node)
    ]
    assert not bare


def test_public_names_leave_a_module_by_a_literal_list() -> None:
    """`__all__` is complete in every module that defines public names; ruff keeps it sorted."""
    wrong = []
    for source in sources():
        if source.path.name == "__main__.py":
            continue
        exported = None
        for node in source.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                exported = ast.literal_eval(node.value)
        defined = {
            node.name
            for node in source.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not node.name.startswith("_")
        }
        migration = "migrations" in source.path.parts
        if migration or (exported is None and not defined):
            continue
        if exported is None or not defined <= set(exported):
            wrong.append(source.name)
    assert not wrong


def test_every_test_says_what_must_hold() -> None:
    """A test has a docstring of its own."""
    silent = [
        f"{source.name}: {node.name}"
        for source in sources(ROOT / "tests")
        for node in source.functions()
        if node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert not silent


def test_no_test_patches_what_it_tests() -> None:
    """Fakes are handed in; nothing is patched from outside."""
    patching = [
        source.name
        for source in sources(ROOT / "tests")
        if source.name != "tests/house/test_habits.py"
        and re.search(r"unittest\.mock|monkeypatch\.setattr|mocker", source.text)
    ]
    assert not patching
