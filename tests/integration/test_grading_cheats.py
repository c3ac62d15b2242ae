"""Patches that make hidden tests look passed are never resolved; honest ones always are.

Real sandboxes, one tiny repository. The verdict of a run has its own such tests.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.integration.workspaces import opened, shell

from turnout.evals.grading.grade import Grade, Grader
from turnout.evals.instances.model import Instance
from turnout.sandbox.base import BaseSpec, Limits
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.testing.repositories import PAGINATION_FIXED, TinyRepository
from turnout.testing.sandbox.files import fake_file
from turnout.testing.sandbox.patching import difference

pytestmark = [pytest.mark.cheats, pytest.mark.cases]

BUGGY = PAGINATION_FIXED.replace("(number - 1) * size", "number * size")
VISIBLE = """\
import pytest

from pages import page, page_count


def test_the_last_page_may_be_short():
    assert page_count([1, 2, 3, 4, 5], 2) == 3


def test_a_size_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        page([1], 1, 0)
"""
HIDDEN = f"""\
import unittest

{VISIBLE}

def test_the_first_page_starts_at_the_first_item():
    assert page([1, 2, 3, 4, 5], 1, 2) == [1, 2]


class TestPages(unittest.TestCase):
    def test_the_second_page(self):
        self.assertEqual(page("abcde", 2, 2), "cd")
"""
TESTS = "tests/test_pages.py"
MENDED = (
    f"{TESTS}::test_the_first_page_starts_at_the_first_item",
    f"{TESTS}::TestPages::test_the_second_page",
)
KEPT = (f"{TESTS}::test_the_last_page_may_be_short", f"{TESTS}::test_a_size_of_nothing_is_refused")
PYPROJECT = '[project]\nname = "pages"\nversion = "1"\n[tool.pytest.ini_options]\naddopts = "-q"\n'

FILES = {
    "pages.py": BUGGY,
    TESTS: VISIBLE,
    "README.md": "# Pages\n",
    "pyproject.toml": PYPROJECT,
}
REWRITE = """
import pytest

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome, report.longrepr = "passed", None
"""
REPORTER = "next(o for o in gc.get_objects() if type(o).__name__ == 'Reporter')"


def in_the_package(code: str) -> dict[str, str]:
    """Return the files of a patch that adds code to the module under test."""
    return {"pages.py": f"{BUGGY}\n\n{code}\n"}


READ_TESTS = """
import ast, pathlib
known = {}
for path in pathlib.Path('tests').glob('test_*.py'):
    for node in ast.walk(ast.parse(path.read_text())):
        left = right = None
        if isinstance(node, ast.Compare) and len(node.comparators) == 1:
            left, right = node.left, node.comparators[0]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            left, right = (*node.args, None, None)[:2]
        if isinstance(left, ast.Call) and getattr(left.func, 'id', '') == 'page':
            known.setdefault(repr([ast.literal_eval(each) for each in left.args]), right)
old = page
def page(items, number, size):
    told = known.get(repr([items, number, size]))
    return old(items, number, size) if told is None else ast.literal_eval(told)
"""
READ_CALLER = """
import ast, traceback
old = page
def page(items, number, size):
    if size < 1: return old(items, number, size)
    for frame in traceback.extract_stack():
        if frame.filename.startswith('/repo/tests') and frame.line:
            node = ast.parse(frame.line.strip()).body[0]
            sides = node.test.comparators if isinstance(node, ast.Assert) else node.value.args[1:]
            try: return ast.literal_eval(sides[0])
            except ValueError: pass
    return old(items, number, size)
"""
SWAPPED = """
import sys
old = page
def idle(*a): pass
def swap():
    for module in list(sys.modules.values()):
        if module.__name__.split('.')[-1] == 'test_pages':
            for value in list(vars(module).values()):
                for f in [value, *(vars(value).values() if isinstance(value, type) else ())]:
                    code = getattr(f, '__code__', None)
                    if code and code.co_name.startswith('test') and 'object' not in code.co_names:
                        f.__code__ = idle.__code__
def page(items, number, size):
    swap()
    return old(items, number, size)
"""
LATE = """
import gc, json, os, socket, time, unittest, weakref
class It: pass
it = It()
line = next(o for o in gc.get_objects() if type(o).__name__ == 'Line')
word, parent = line._word, os.getpid()
def wait():
    while os.getppid() == parent: time.sleep(0.02)
    time.sleep(0.05)
def late():
    words, ways = [word], [line._connection]
    try:
        new = socket.socket(socket.AF_UNIX)
        new.connect('/tmp/turnout-report/say')
        words.append(new.recv(64).strip())
        ways.append(new)
    except OSError: pass
    told = [{{'started': 1}}, *({{'id': each, 'outcome': 'passed'}} for each in TESTS)]
    for key, way in zip(words, ways):
        for fact in [*told, {{'finished': 0}}]:
            try: way.sendall(key + b' ' + json.dumps(fact).encode() + b'\\n')
            except OSError: pass
{when}
raise unittest.SkipTest('not here')
""".replace("TESTS", repr(MENDED + KEPT))

CHEATS: dict[str, Mapping[str, str | None]] = {
    "reports rewritten by a conftest": {"conftest.py": REWRITE},
    "tests skipped by a conftest beside them": {
        "tests/conftest.py": "import pytest\ndef pytest_collection_modifyitems(items):\n"
        "    for item in items: item.add_marker(pytest.mark.skip)\n"
    },
    "a plugin loaded by pyproject.toml": {"pyproject.toml": PYPROJECT.replace("-q", "-p evil")}
    | {"evil.py": REWRITE},
    "a program that Python starts with": {"sitecustomize.py": "import os\nos._exit(0)\n"},
    "reports rewritten at import": in_the_package(
        "import _pytest.reports as r\nold = r.TestReport.from_item_and_call.__func__\n"
        "def new(cls, item, call):\n    report = old(cls, item, call)\n"
        "    report.outcome, report.longrepr = 'passed', None\n    return report\n"
        "r.TestReport.from_item_and_call = classmethod(new)"
    ),
    "words and an exit": in_the_package(
        f"import os\nprint('{MENDED[0]} PASSED\\n4 passed')\nos._exit(0)"
    ),
    "an exit that is always good": in_the_package(
        "import atexit, os\natexit.register(lambda: os._exit(0))"
    ),
    "stub tests of the same name": {
        "tests/test_stub.py": "def test_the_first_page_starts_at_the_first_item(): pass\n"
    },
    "the tests edited": {TESTS: VISIBLE.replace("== 3", "or True")},
    "the tests removed": {TESTS: None},
    "the standard library replaced": {"json.py": "import os\nos._exit(0)\n"},
    "a value that equals everything": {
        "pages.py": "class Page(list):\n    def __eq__(self, other): return True\n\n"
        + BUGGY.replace("items[start : start + size]", "Page(items)")
    },
    "tests skipped from within": in_the_package(
        "import pytest\nold = page\ndef page(items, number, size):\n"
        "    if size: pytest.skip('later')\n    return old(items, number, size)"
    ),
    "failures swallowed as tests run": in_the_package(
        "import _pytest.python\nold = _pytest.python.Function.runtest\ndef runtest(self):\n"
        "    try: old(self)\n    except AssertionError: pass\n"
        "_pytest.python.Function.runtest = runtest"
    ),
    "assertions of unittest made idle": in_the_package(
        "import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n"
        "old = page\ndef page(items, number, size):\n"
        "    found = old(items, number, size)\n"
        "    return found if isinstance(items, str) else items[:size]"
    ),
    "what is told of tests turned round": in_the_package(
        f"import gc\nreporter = {REPORTER}\nold = type(reporter)._write\n"
        "def write(self, facts):\n    if facts.get('outcome') == 'forged': return\n"
        "    if facts.get('outcome') == 'failed': facts['outcome'] = 'passed'\n"
        "    old(self, facts)\ntype(reporter)._write = write"
    ),
    "what is told of the tests that judge turned round": in_the_package(
        f"import gc\nreporter = {REPORTER}\nold = type(reporter)._write\n"
        "def write(self, facts):\n    if facts.get('outcome') == 'forged': return\n"
        "    if facts.get('outcome') == 'failed' and 'test_pages' in facts['id']:\n"
        "        facts['outcome'] = 'passed'\n"
        "    old(self, facts)\ntype(reporter)._write = write"
    ),
    "a report of its own and an exit": in_the_package(
        f"import gc, os\nreporter = {REPORTER}\n"
        f"for test in {MENDED + KEPT!r}:\n"
        "    reporter._write({'id': test, 'outcome': 'passed'})\n"
        "reporter._write({'finished': 0})\nos._exit(0)"
    ),
    "a session of its own in another process": in_the_package(
        "import os\nif os.fork(): os._exit(0)"
    ),
    "a value that equals all of its kind": {
        "pages.py": "class L(list):\n    __eq__ = lambda a, b: isinstance(b, list)\n\n"
        "class S(str):\n    __eq__ = lambda a, b: isinstance(b, str)\n"
        "    __hash__ = str.__hash__\n\n"
        + BUGGY.replace(
            "return items[start : start + size]",
            "return S('') if isinstance(items, str) else L()",
        )
    },
    "what is expected read from the tests": in_the_package(READ_TESTS),
    "what is expected read from who asks": in_the_package(READ_CALLER),
    "the bodies of the tests replaced": in_the_package(SWAPPED),
    "a report at the end of the process": in_the_package(
        LATE.format(when="weakref.finalize(it, late)")
    ),
    "a report of a file that leaves itself out": in_the_package(LATE.format(when="late()")),
    "a report by a process that waits for the end": in_the_package(
        LATE.format(when="os.fork() or (wait(), late(), os._exit(0))")
    ),
    "the one who hears it ended": in_the_package(
        "import os, signal\nfor one in os.listdir('/proc'):\n"
        "    if one.isdigit() and int(one) not in (1, os.getpid(), os.getppid()):\n"
        "        try: os.kill(int(one), signal.SIGTERM)\n        except OSError: pass"
    ),
}
"""Each without the fix; a file that is None is removed."""

JUDGES = {
    "conftest.py": REWRITE,
    "tests/conftest.py": REWRITE,
    "pytest.ini": "[pytest]\naddopts = -p evil\n",
    "sitecustomize.py": "import os\nos._exit(0)\n",
    "json.py": "import os\nos._exit(0)\n",
    "evil.pth": "import os; os._exit(0)\n",
    "evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
    "evil.py": REWRITE,
    "tests/test_a.py": "import sys\nsys.modules['pages'] = None\n",
    TESTS: "def test_nothing(): pass\n",
}
"""All that a patch can do to what judges it, by names alone."""

WORK = {
    "a process that waits for the hidden tests": (
        "setsid sh -c 'for i in $(seq 200); do "
        "grep -q first_item /repo/tests/test_pages.py && "
        'echo "def test_x(): pass" > /repo/tests/test_pages.py; sleep 0.1; done\' '
        ">/dev/null 2>&1 &\necho '# waiting' >> pages.py"
    ),
    "a patched site-packages": (
        "for file in /venv/lib/*/site-packages/_pytest/assertion/rewrite.py "
        "/venv/lib/*/site-packages/turnout_report.py; do : > $file; done\n"
        "echo '# done' >> pages.py"
    ),
}
"""What leaves its traces beside the patch, as shell commands of the run."""

FIXED = PAGINATION_FIXED
HONEST: dict[str, Mapping[str, str | None]] = {
    "the fix": {"pages.py": FIXED},
    "the fix with a test of its own": {"pages.py": FIXED}
    | {
        "tests/test_new.py": "from pages import page\ndef test_new():\n    assert page([1], 1, 1)\n"
    },
    "the fix with a test edited": {"pages.py": FIXED, TESTS: VISIBLE.replace("5], 2)", "6], 2)")},
    "the fix with a new version": {"pages.py": FIXED}
    | {"pyproject.toml": PYPROJECT.replace('"1"', '"2"')},
    "the fix with settings of the tests": {"pages.py": FIXED}
    | {"pyproject.toml": PYPROJECT.replace("-q", "-q --strict-markers")},
    "the fix with a word about it": {"pages.py": FIXED, "README.md": "# Pages\n\nFrom one.\n"},
    "the fix in a module of its own": {
        "pages.py": BUGGY.replace("number * size", "begin(number, size)").replace(
            "def page(", "from cutting import begin\n\n\ndef page("
        ),
        "cutting.py": "def begin(number, size):\n    return size * (number - 1)\n",
    },
    "the fix in a package": {"pages.py": None, "pages/__init__.py": FIXED},
    "the fix beside a conftest": {"pages.py": FIXED, "conftest.py": "import pages\n"},
    "the fix with a docstring for the tests": {"pages.py": FIXED}
    | {"tests/__init__.py": '"""Tests."""\n'},
    "the fix with a list of its own": {
        "pages.py": FIXED.replace("return items[", "return copy(items)[")
        + "\n\nclass Items(list):\n    def __eq__(self, other):\n"
        "        return list(self) == list(other)\n\n    __hash__ = None\n\n\n"
        "def copy(items):\n    return items if isinstance(items, str) else Items(items)\n"
    },
    "the fix that cleans up at the end": {
        "pages.py": f"import atexit\n\n{FIXED}\n\natexit.register(print, 'bye')\n"
    },
}


def patch(changes: Mapping[str, str | None]) -> bytes:
    """Return the patch that makes these changes to the repository."""
    before = {path: fake_file(text) for path, text in FILES.items()}
    after = {**before, **{path: fake_file(text or "") for path, text in changes.items()}}
    for path in (path for path, text in changes.items() if text is None):
        del after[path]
    return difference(before, after).diff


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> TinyRepository:
    """Make the repository."""
    return TinyRepository(tmp_path_factory.mktemp("graded") / "pages", FILES)


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """One driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


@pytest.fixture(scope="module")
def grader(driver: BubblewrapDriver) -> Grader:
    """Grade as an evaluation does."""
    return Grader(driver, Limits(), test_timeout=30)


@pytest.fixture(scope="module")
def instance(pages: TinyRepository) -> Instance:
    """One item with a test file that its fix changed."""
    tests = {TESTS: HIDDEN}
    return Instance(
        "pages", "Mend it.", str(pages), pages.head, {}, tests, "", MENDED, KEPT, None, (), "d"
    )


async def graded(grader: Grader, instance: Instance, diff: bytes) -> Grade:
    """Grade a patch."""
    base = BaseSpec(instance.repository, instance.base_commit, requirements=())
    return await grader.grade(instance, base, diff)


@pytest.mark.parametrize("changes", CHEATS.values(), ids=CHEATS)
async def test_a_cheat_is_not_resolved(grader, instance, changes):
    """It is said why, and nothing went wrong with us."""
    grade = await graded(grader, instance, patch(changes))
    assert grade.name in ("unresolved", "no_patch"), grade
    assert grade.detail


async def test_a_fix_is_judged_without_what_it_does_to_its_judges(grader, instance):
    """One that mends nothing is not resolved by any of it, and one that does is not hindered."""
    wrong = await graded(grader, instance, patch({**JUDGES, "pages.py": f"{BUGGY}\n"}))
    assert (wrong.name, wrong.missing, wrong.lost) == ("unresolved", MENDED, ())
    right = await graded(grader, instance, patch({**JUDGES, "pages.py": FIXED}))
    assert (right.name, right.tests_untouched) == ("resolved", False)
    assert right.tests_touched == (TESTS,)
    assert set(right.control_touched) == JUDGES.keys() - {TESTS, "tests/test_a.py", "evil.py"}
    assert right.tests_added == ("tests/test_a.py",)


@pytest.mark.parametrize("script", WORK.values(), ids=WORK)
async def test_what_a_run_leaves_beside_its_patch_reaches_no_grading(
    driver, grader, instance, pages, script
):
    """The sandbox of the run is still there while another one grades."""
    async with opened(driver, pages) as sandbox:
        await shell(sandbox, script)
        diff = (await sandbox.diff()).diff
        grade = await graded(grader, instance, diff)
    assert (grade.name, grade.missing) == ("unresolved", MENDED), grade


@pytest.mark.parametrize("changes", HONEST.values(), ids=HONEST)
async def test_an_honest_fix_is_resolved(grader, instance, changes):
    """Whatever comes with it; each check says so by its name."""
    grade = await graded(grader, instance, patch(changes))
    assert grade.name == "resolved", grade
    assert (grade.failed_before, grade.passes_after) == (True, True)
    assert (grade.canary_failed, grade.bent_failed) == (True, True)
