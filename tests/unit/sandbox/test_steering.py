"""What steers the tests, told apart from what does not."""

import pytest

from turnout.sandbox.steering import read_steering, steering_of
from turnout.testing.sandbox import ScriptedSandbox

pytestmark = pytest.mark.cheats

PYPROJECT = '[project]\nversion = "1"\n[tool.pytest.ini_options]\naddopts = "-q"\n'


@pytest.mark.parametrize(
    ("path", "text", "other", "command"),
    [
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace("-q", "-k x"), "pytest"),
        ("pyproject.toml", PYPROJECT, "[tool]\npytest = 3", "pytest"),
        ("pyproject.toml", PYPROJECT, "[tool\n", "pytest"),
        ("pyproject.toml", "", PYPROJECT, "pytest"),
        ("sub/pyproject.toml", PYPROJECT, "", "cd sub && pytest"),
        ("tox.ini", "", "[pytest]\naddopts = -k x", "pytest"),
        ("setup.cfg", "[tool:pytest]\n", "[tool:pytest]\n  [x]\n -k x", "pytest"),
        ("Makefile", "test:\n\tpytest\n", "test:\n\ttrue\n", "make test"),
        ("GNUmakefile", "", "test:\n\ttrue\n", "make test"),
        ("tox.ini", "[testenv]\ncommands = a", "[testenv]\ncommands = true", "tox -e py"),
        ("noxfile.py", "1", "2", "nox -s tests"),
        ("sub/justfile", "test:\n a", "test:\n true", "cd sub && just test"),
        ("scripts/test", "a", "exit 0", "./scripts/test --all"),
        ("scripts/test.sh", "a", "exit 0", "cd scripts; bash test.sh"),
        ("ci/check.sh", "a", "exit 0", "env X=1 ci/check.sh"),
        ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {}}', "npm test"),
        ("package.json", '{"jest": {}}', '{"jest": {"bail": 1}}', "npm test"),
    ],
)
def test_what_changes_the_tests_is_another_reading(path, text, other, command):
    """Options, paths and the command itself count."""
    assert steering_of(path, text, command) != steering_of(path, other, command)


@pytest.mark.parametrize(
    ("path", "text", "other", "command"),
    [
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace('"1"', '"2"'), "pytest"),
        ("pyproject.toml", "[project]", "[build-system]", "pytest"),
        ("setup.cfg", "[metadata]\nversion = 1", "[metadata]\nversion = 2", "pytest"),
        ("Makefile", "a:", "b:", "python -m pytest"),
        ("package.json", '{"scripts": {}}', '{"scripts": {"x": "y"}}', "pytest"),
        ("package.json", '{"version": "1"}', '{"version": "2"}', "npm test"),
        ("pages.py", "1", "2", "make test"),
        ("src/app.py", "1", "2", "python src/app.py --self-test"),
        ("test", "1", "2", "make test"),
        ("other/check.sh", "1", "2", "ci/check.sh"),
        ("noxfile.py", "1", "2", "pytest"),
    ],
)
def test_what_does_not_is_the_same_reading(path, text, other, command):
    """Versions, dependencies and files of other runners do not count."""
    assert steering_of(path, text, command) == steering_of(path, other, command)


async def test_only_files_that_may_steer_are_read():
    """A missing file and one without such settings read alike; a huge one is told by its hash."""
    huge = "# pytest\n" * 200_000
    sandbox = ScriptedSandbox({"pyproject.toml": "[project]", "setup.cfg": huge, "a.py": "1"})
    paths = ("pyproject.toml", "setup.cfg", "tox.ini", "a.py")
    found = await read_steering(sandbox, "pytest", paths)
    assert (found["pyproject.toml"], found["tox.ini"]) == (None, None)
    assert len(found["setup.cfg"] or "") == 64
    assert "a.py" not in found
