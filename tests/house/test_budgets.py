"""Sizes that keep every part readable in one sitting."""

from tests.house.sources import ROOT, SRC, sources

FILE_LINES = 500
FUNCTION_LINES = 70
PARAMETERS = 7
CLASS_METHODS = 20
FOLDER_MODULES = 12
WIDE_FOLDERS = {"agent/tools", "store"}


def test_no_file_is_longer_than_its_budget() -> None:
    """A file that needs more is two files."""
    everything = sources(SRC, ROOT / "tests", ROOT / "bench")
    long = {s.name: n for s in everything if (n := s.text.count("\n")) > FILE_LINES}
    assert not long


def test_no_function_is_longer_than_its_budget() -> None:
    """Counted from its `def` to its last line."""
    long = [
        f"{source.name}:{node.lineno} {node.name}"
        for source in sources()
        for node in source.functions()
        if (node.end_lineno or node.lineno) - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long


def test_no_function_takes_more_parameters_than_its_budget() -> None:
    """`self`, `cls` and the options of a command do not count."""
    wide = []
    for source in sources():
        for node in source.functions():
            if source.name.startswith("src/turnout/cli/") and node.decorator_list:
                continue
            args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if len([a for a in args if a.arg not in {"self", "cls"}]) > PARAMETERS:
                wide.append(f"{source.name}:{node.lineno} {node.name}")
    assert not wide


def test_no_class_has_more_methods_than_its_budget() -> None:
    """A class with more has a second job."""
    wide = [
        f"{source.name}:{node.lineno} {node.name}"
        for source in sources()
        for node in source.classes()
        if sum(hasattr(child, "args") for child in node.body) > CLASS_METHODS
    ]
    assert not wide


def test_no_folder_holds_more_modules_than_its_budget() -> None:
    """Tools and stores are many by nature; every other room is cut into sub-packages."""
    wide = {}
    for folder in [SRC, *(p for p in SRC.rglob("*") if p.is_dir())]:
        modules = [p for p in folder.glob("*.py") if p.name != "__init__.py"]
        name = folder.relative_to(SRC).as_posix()
        if name not in WIDE_FOLDERS and len(modules) > FOLDER_MODULES:
            wide[name] = len(modules)
    assert not wide
