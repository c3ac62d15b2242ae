"""What in a patch a person should look at."""

import pytest

from turnout.evals.grading.smells import smells

TESTS = {"tests/test_a.py": "def test_a():\n    assert parse('12:99 pm', 5) == 'error'\n", "x": "("}


def patch(*lines: str) -> bytes:
    """Return a patch that adds lines."""
    added = "".join(f"+{line}\n" for line in lines)
    head = "diff --git a/lib.py b/lib.py\n--- a/lib.py\n+++ b/lib.py\n"
    return f"{head}@@ -1 +1,{len(lines) + 1} @@\n x\n{added}".encode()


@pytest.mark.parametrize(
    "line",
    [
        "import _pytest.reports",
        "os._exit(0)",
        "atexit.register(f)",
        "sys.settrace(f)",
        "if 'PYTEST_CURRENT_TEST' in os.environ:",
        "for one in gc.get_objects():",
        "subprocess.Popen(x, start_new_session=True)",
        "    def __eq__(self, other): return True",
        "    __eq__ = lambda a, b: isinstance(b, list)",
        "for module in list(sys.modules.values()):",
        "f.__code__ = idle.__code__",
        "for frame in traceback.extract_stack():",
        "for path in pathlib.Path('tests').glob('*'):",
        "open('spec/test_pages.py').read()",
        "raise unittest.SkipTest('not here')",
        "weakref.finalize(keep, late)",
        "if text == '12:99 pm':",
        'return {"12:99 pm": "error"}.get(text)' + " " * 3_000,
    ],
)
def test_a_line_that_mended_code_seldom_needs_is_named(line: str) -> None:
    """With its file, and the line itself in short."""
    (found,) = smells(patch("y = 1", line), TESTS)
    assert found.startswith("lib.py ")
    assert len(found) < 200


@pytest.mark.parametrize(
    "line",
    [
        "if hour == 5:",
        "raise ValueError('error')",
        "return items[(number - 1) * size:]",
        "latest = max(tests)",
        "sys.exit(main())",
        "    if name == 'contests':",
        "if text == 'unterminated",
        "    def __eq__(self, other): return self.x == other.x",
    ],
)
def test_honest_lines_do_not_smell(line: str) -> None:
    """Also where they cannot be read."""
    assert smells(patch(line), TESTS) == ()


def test_there_is_an_end_to_smells() -> None:
    """A long patch of them is looked at anyway."""
    assert len(smells(patch(*(f"os._exit({n})" for n in range(50))), TESTS)) == 10
