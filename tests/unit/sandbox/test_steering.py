"""What steers the tests, told apart from what does not."""

import pytest

from turnout.sandbox.steering.programs import Said, reached
from turnout.sandbox.steering.read import read_steering, steering_of
from turnout.testing.sandbox import ScriptedSandbox

pytestmark = pytest.mark.cheats

PYPROJECT = '[project]\nversion = "1"\n[tool.pytest.ini_options]\naddopts = "-q"\n'

PLUGIN = '[project.entry-points.pytest11]\na = "evil"\n'
SETUP = """from setuptools import find_packages, setup
VERSION = "1"
setup(name="pages", version=VERSION, install_requires=[], packages=find_packages(), c=1)
"""


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
        ("src/app.py", "1", "2", "python src/app.py --self-test"),
        ("runtests.py", "1", "pass", "python -W error runtests.py"),
        ("runtests.py", "1", "pass", "CI=1 ./runtests.py"),
        ("tests/run.py", "1", "pass", "python -m tests.run"),
        ("tools/check/__main__.py", "1", "pass", "python -m tools.check"),
        ("check_u.py", "1", "pass", "python -m unittest -q check_u"),
        ("run.js", "1", "2", "node --require ./hook.js run.js"),
        ("hook.js", "1", "2", "node --require ./hook.js run.js"),
        ("runtests.py", "1", "pass", "coverage run runtests.py"),
        ("runtests.py", "1", "pass", "uv run runtests.py"),
        ("ci/inner", "1", "2", ". ci/inner"),
        ("mk/test.mk", "1", "2", "make test"),
        ("pyproject.toml", PYPROJECT, PYPROJECT + PLUGIN, "pytest"),
        ("pyproject.toml", "", "[tool.poetry.plugins.pytest11]\na = 'evil'", "pytest"),
        ("pyproject.toml", "", "[tool.flit.entrypoints.pytest11]\na = 'evil'", "pytest"),
        ("pyproject.toml", "", "[tool.setuptools.dynamic]\nentry-points.file = 'x'", "pytest"),
        ("pyproject.toml", "", "[build-system]\nbackend-path = ['.']", "pytest"),
        ("plugins.txt", "", "[pytest11]\na = evil", "pytest"),
        ("setup.cfg", "", "[options.entry_points]\npytest11 =\n  a = evil", "pytest"),
        (
            "setup.py",
            SETUP,
            SETUP.replace("c=", 'entry_points={"pytest11": ["a=b"]}, c='),
            "pytest",
        ),
        (
            "setup.py",
            SETUP,
            SETUP.replace("c=", 'entry_points={"py" + "test11": []}, c='),
            "pytest",
        ),
        ("setup.py", SETUP, SETUP + "open('conftest.py', 'w')", "pytest"),
        ("hatch_build.py", "", "1", "pytest"),
        ("tests/__init__.py", "", "import evil", "pytest"),
        ("tests/test_a.py", "", "pytest_plugins = ['evil']", "pytest"),
        ("tests/test_a.py", "", "from _pytest.config import PytestPluginManager", "pytest"),
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
        ("src/app.py", "1", "2", "python -m doctest src/app.py"),
        ("src/app.py", "1", "2", "python -m pytest src/app.py"),
        ("src/app.py", "1", "2", "mypy ./src/app.py && uv run pytest src/app.py"),
        ("pyproject.toml", "", "[project.entry-points.pages]\na = 'b'", "pytest"),
        ("setup.py", SETUP, SETUP.replace('"1"', '"2"').replace("[]", "['attrs']"), "pytest"),
        (
            "setup.py",
            SETUP,
            SETUP.replace("c=", 'entry_points={"gui_scripts": ["a=b"]}, c='),
            "pytest",
        ),
        ("src/setup.py", "1", "2", "pytest"),
        ("tests/__init__.py", "", '"""Tests."""\n', "pytest"),
        ("pages/__init__.py", "", "import page", "pytest"),
        ("tests/test_a.py", "", "pytest_plugins = 'pytester'", "pytest"),
        ("tests/test_a.py", "", "def test_a(): pass", "pytest"),
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


CHAINS = {
    "Makefile": "-include rules.inc\nPY = python\ntest: lint\n\t@$(PY) runtests.py\n"
    "lint:\n\tbash ci/lint.sh\nserve:\n\t$(PY) app.py\n",
    "rules.inc": "",
    "runtests.py": "",
    "ci/lint.sh": '. "$(dirname "$0")/inner.sh"',
    "ci/inner.sh": "./deep.py",
    "ci/deep.py": "",
    "app.py": "",
    "package.json": '{"scripts": {"test": "npm run a", "a": "node run.js", "x": "node x.js"}}',
    "run.js": "",
    "x.js": "",
}


@pytest.mark.parametrize(
    ("command", "steering"),
    [
        ("make test", {*CHAINS} - {"app.py", "package.json", "run.js", "x.js"}),
        ("npm test", {"package.json", "run.js"}),
        ("bash ci/lint.sh", {"ci/lint.sh", "ci/inner.sh", "ci/deep.py"}),
        ("python -m pytest", set()),
    ],
)
async def test_what_a_script_or_recipe_runs_steers_as_well(command, steering):
    """It is followed through targets, sourced files and scripts, but not into other targets."""
    found = await read_steering(ScriptedSandbox(CHAINS), command, CHAINS)
    assert {path for path, reading in found.items() if reading is not None} == steering


async def test_a_module_beside_tests_may_stand_in_for_the_standard_library():
    """Only in folders that come first on the path, which those of a package do not."""
    there = ("checks/test_a.py", "pages/tests/test_b.py", "pages/tests/__init__.py")
    there += ("pages/__init__.py", "checks/filecmp.py", "checks/json/__init__.py", "checks/a.py")
    there += ("pages/tests/json.py", "pages/calendar.py", "tools/json.py", "checks/test/data.py")
    found = await read_steering(ScriptedSandbox(dict.fromkeys(there, "")), "pytest", there)
    taken = {path for path, reading in found.items() if reading is not None}
    assert taken == {"checks/filecmp.py", "checks/json/__init__.py"}
    there = ("tests/test_a.py", "tests/filecmp.py")
    found = await read_steering(ScriptedSandbox(dict.fromkeys(there, "")), "pytest", there)
    assert found["tests/filecmp.py"]
    others = ScriptedSandbox({"checks/test_a.py": "", "checks/json.py": "1"})
    altered = ScriptedSandbox({"checks/test_a.py": "", "checks/json.py": "2"})
    first, second = [
        await read_steering(box, "pytest", ["checks/json.py"]) for box in (others, altered)
    ]
    assert first == second


def test_hostile_scripts_and_listings_are_looked_through_in_time():
    """Neither long lines nor many names are gone through again for each other."""
    assert reached("Makefile", "a" + " " * 200_000, "make") == "a" + " " * 200_000
    said = Said(" ".join(f"./{number}.sh" for number in range(40_000)))
    assert sum(said.names(f"ci/{number}.sh") for number in range(80_000)) == 40_000
