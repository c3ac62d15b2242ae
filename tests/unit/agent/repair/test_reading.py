"""Which files are read, and that it is few of them."""

import pytest

from turnout.agent.base import Brief
from turnout.agent.repair.reading import Sources, read_sources
from turnout.core.ids import RunId
from turnout.core.runs import TestReport
from turnout.testing.sandbox import ScriptedSandbox

FILES = {
    "src/pkg/__init__.py": "from .core import work\n",
    "src/pkg/core.py": "from pkg import helpers\n",
    "src/pkg/helpers.py": "x = 1\n",
    "src/pkg/unused.py": "y = 1\n",
    "tests/test_core.py": "from pkg import work\n\n\ndef test_work():\n    work('rates.json')\n",
    "tests/test_other.py": "import pkg.unused\n",
    "tests/conftest.py": "import fixtures_code\n",
    "fixtures_code.py": "z = 1\n",
    "rates.json": "{}\n",
    "notes.txt": "nothing\n",
}
PADDING = {f"pad/m{number}.py": "" for number in range(70)}


async def read(
    files: dict[str, str | bytes], *, output: str = "", prompt: str = "It fails."
) -> tuple[Sources, ScriptedSandbox]:
    """Read what the failing `test_work` leads to."""
    sandbox = ScriptedSandbox(files)
    report = TestReport("pytest", 1, (), ("tests/test_core.py::test_work",), 0.1, output)
    brief = Brief(RunId("run-1"), prompt, "guide", "pytest", report, ("tests/test_core.py",))
    return await read_sources(sandbox, brief, report), sandbox


def paths(sources: Sources) -> list[str]:
    """Return the source files in their order."""
    return [module.path for module in sources.modules]


async def test_imports_are_followed_from_the_failing_test() -> None:
    """Through packages, relative imports and conftest files; nothing else in a large tree."""
    sources, _ = await read({**FILES, **PADDING})
    assert set(paths(sources)) == {
        "src/pkg/__init__.py",
        "src/pkg/core.py",
        "src/pkg/helpers.py",
        "fixtures_code.py",
    }
    assert [test.path for test in sources.tests] == ["tests/test_core.py", "tests/conftest.py"]


async def test_a_small_tree_is_read_whole() -> None:
    """What nothing imports comes last."""
    sources, _ = await read(dict(FILES))
    assert paths(sources)[-1] == "src/pkg/unused.py"


async def test_the_files_of_a_traceback_are_read_first() -> None:
    """They are the nearest to the fault."""
    sources, _ = await read({**FILES, **PADDING}, output="src/pkg/unused.py:1: ValueError\n")
    assert paths(sources)[0] == "src/pkg/unused.py"


async def test_no_test_file_is_a_source() -> None:
    """Even where a traceback names it."""
    sources, _ = await read(dict(FILES), output="tests/test_other.py:1: ImportError\n")
    assert not [path for path in paths(sources) if path.startswith("tests/")]


async def test_other_files_are_read_only_where_they_are_named() -> None:
    """By the test or by the report."""
    sources, _ = await read(dict(FILES))
    assert dict(sources.others) == {"rates.json": b"{}\n"}
    sources, _ = await read(dict(FILES), prompt="notes.txt is wrong")
    assert set(sources.others) == {"rates.json", "notes.txt"}


async def test_the_number_of_reads_is_bounded() -> None:
    """However many files import each other."""
    chain = {f"m{n}.py": f"import m{n + 1}\n" for n in range(500)}
    start = {"tests/test_core.py": "import m0\n\n\ndef test_work():\n    pass\n"}
    sources, sandbox = await read({**chain, **start})
    assert len(sources.modules) == 60
    assert len(sandbox.calls) < 80


@pytest.mark.parametrize("data", [b"def (", b"\xff\xfe", b"x" * 300_000, b"(" * 5_000])
async def test_a_file_that_is_no_python_is_left_out(data: bytes) -> None:
    """Broken, binary, huge or hostile."""
    sources, _ = await read({**FILES, "src/pkg/core.py": data})
    assert "src/pkg/core.py" not in paths(sources)
