"""The project under test, installed where a run finds it, and node modules beside it."""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.workspaces import shell

from turnout.core.ids import new_run_id
from turnout.errors import UnfitError
from turnout.sandbox.base import BaseRef, BaseSpec, Limits, Sandbox
from turnout.sandbox.base_layer import find_layer
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.collector import collect_patch
from turnout.sandbox.mirrors.npm_settings import ask_npm
from turnout.sandbox.testrun import run_tests
from turnout.testing.repositories import TinyRepository

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["tools"]
[project]
name = "My.App"
version = "1.0"
[project.scripts]
my-app = "my_app:main"
"""

BACKEND = """
import os, pathlib, re, subprocess, zipfile
VERSION = re.search('version = "(.*)"', pathlib.Path("pyproject.toml").read_text())[1]
FILES = {
    "METADATA": f"Metadata-Version: 2.1\\nName: my-app\\nVersion: {VERSION}\\n"
    "Requires-Dist: iniconfig\\n",
    "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "entry_points.txt": "[console_scripts]\\nmy-app = my_app:main\\n",
    "RECORD": "my_app.pth,,\\n",
}
def build_editable(folder, config_settings=None, metadata_directory=None):
    os.makedirs("src/my_app", exist_ok=True)
    pathlib.Path("src/my_app/_version.py").write_text("version = '1.0'\\n")
    EVIL
    name = f"my_app-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        wheel.writestr("my_app.pth", os.getcwd() + "/src\\nimport os; os.putenv('EVIL', '1')\\n")
        for file, text in FILES.items():
            wheel.writestr(f"my_app-{VERSION}.dist-info/{file}", text)
    return name
"""

EVIL = """
    late = "exec >/dev/null 2>&1; sleep 300; touch /repo/late"
    subprocess.Popen(late, shell=True, start_new_session=True)
    for path in ("/venv", "/project", "/base", "/usr/lib"):
        try:
            pathlib.Path(path, "evil.pth").write_text("import evil")
        except OSError:
            pass
    pathlib.Path("link").symlink_to("/etc/passwd")
"""

FILES = {
    "pyproject.toml": PYPROJECT,
    "tools/backend.py": BACKEND.replace("EVIL\n", "pass\n"),
    "src/my_app/__init__.py": "from my_app._version import version\ndef main(): print(version)\n",
    "tests/test_app.py": "import my_app\ndef test(): assert my_app.version == '1.0'\n",
}


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """One driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


@asynccontextmanager
async def on(driver: BubblewrapDriver, base: BaseRef) -> AsyncIterator[Sandbox]:
    """Start a sandbox on a base layer and end it."""
    sandbox = await driver.create(new_run_id(), base, Limits())
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def test_a_project_is_installed_with_all_that_its_build_makes(driver, tmp_path):
    """Metadata, commands, requirements and generated files; none of it is a change of the run."""
    repository = TinyRepository(tmp_path / "source", FILES)
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    assert (base.requirements, base.warnings) == (("iniconfig",), ())
    async with on(driver, base) as sandbox:
        assert await shell(sandbox, "cd /tmp; my-app") == "1.0"
        ask = "import importlib.metadata as m; print(m.version('my.app'), m.requires('my-app'))"
        assert await shell(sandbox, f'python -c "{ask}"') == "1.0 ['iniconfig']"
        assert "1 passed" in await shell(sandbox, "python -m pytest -q")
        assert (
            await shell(sandbox, "git status --porcelain; ls src/my_app")
            == "__init__.py\n_version.py"
        )
        layer = find_layer(driver.state_dir, base)
        assert not await sandbox.diff()
        whole = await collect_patch(driver, sandbox, layer.history, layer.commit, under=layer.under)
        assert not whole
        await shell(sandbox, "echo 'version = 2' > src/my_app/_version.py; echo > src/my_app/a.py")
        patch = await sandbox.diff()
        assert [file.path for file in patch.files] == ["src/my_app/a.py"]
        assert patch.excluded == (".pytest_cache/", "src/my_app/_version.py")
        spec = (driver, sandbox, layer.history, layer.commit)
        assert await collect_patch(*spec, under=layer.under) == patch


async def test_a_hostile_build_reaches_nothing_that_lasts(driver, tmp_path):
    """What it writes elsewhere is gone, what it started is ended, and none of its code is kept."""
    files = {**FILES, "tools/backend.py": BACKEND.replace("    EVIL\n", EVIL)}
    repository = TinyRepository(tmp_path / "source", {**files, "setup.cfg": "# other key\n"})
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    async with on(driver, base) as sandbox:
        script = "find / -name evil.pth 2>/dev/null || true; ls"
        assert await shell(sandbox, script) == "pyproject.toml\nsetup.cfg\nsrc\ntests\ntools"
        assert await shell(sandbox, "cat /project/site/*.pth") == "/repo/src"
        assert await shell(sandbox, "my-app; echo ${EVIL-none}") == "1.0\nnone"


async def test_commits_with_the_same_manifests_share_an_installation(driver, tmp_path):
    """The path of the workspace is the same for all of them."""
    repository = TinyRepository(tmp_path / "source", FILES)
    first = await driver.prepare(BaseSpec(str(repository), repository.head))
    repository.commit("more", {"src/my_app/more.py": "x = 1\n"})
    second = await driver.prepare(BaseSpec(str(repository), repository.head))
    layers = [find_layer(driver.state_dir, base) for base in (first, second)]
    assert layers[0].project == layers[1].project is not None
    assert layers[0].tree != layers[1].tree
    async with on(driver, second) as sandbox:
        assert await shell(sandbox, "python -c 'import my_app.more; print(1)'") == "1"


async def test_a_repository_with_the_manifests_of_another_is_built_for_itself(driver, tmp_path):
    """A build runs more than manifests say, and could leave files in the other's workspace."""
    planting = BACKEND.replace("EVIL\n", 'pathlib.Path("conftest.py").touch()\n')
    hostile = TinyRepository(tmp_path / "hostile", {**FILES, "tools/backend.py": planting})
    await driver.prepare(BaseSpec(str(hostile), hostile.head))
    repository = TinyRepository(tmp_path / "source", FILES)
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    async with on(driver, base) as sandbox:
        assert await shell(sandbox, "ls") == "pyproject.toml\nsrc\ntests\ntools"


async def test_a_project_that_cannot_be_built_is_worked_on_all_the_same(driver, tmp_path):
    """Its code is found by its path, its requirements by what it states; a warning says why."""
    setup = "import sys\nsetup = sys.exit\nsetup('no luck today')\n"
    setup += "setup(name='x', install_requires=['iniconfig'])\n"
    repository = TinyRepository(tmp_path / "source", {"setup.py": setup, "x.py": "y = 1\n"})
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    assert base.requirements == ("iniconfig",)
    assert any("no luck today" in warning for warning in base.warnings)
    async with on(driver, base) as sandbox:
        assert await shell(sandbox, "cd /tmp; python -c 'import x; print(x.y)'") == "1"


async def test_changed_manifests_are_installed_in_place_of_the_commit_s(driver, tmp_path):
    """A version that the run has changed is the one that the tests see."""
    repository = TinyRepository(tmp_path / "source", FILES)
    changed = (("pyproject.toml", PYPROJECT.replace('"1.0"', '"2.0"')),)
    base = await driver.prepare(BaseSpec(str(repository), repository.head, manifests=changed))
    async with on(driver, base) as sandbox:
        ask = "import importlib.metadata as m; print(m.version('my-app'))"
        assert await shell(sandbox, f'python -c "{ask}"') == "2.0"
        assert 'version = "1.0"' in await shell(sandbox, "cat pyproject.toml")


LOCKED = {
    "name": "app",
    "version": "1.0.0",
    "lockfileVersion": 3,
    "packages": {
        "": {"name": "app", "version": "1.0.0", "dependencies": {"is-number": "6.0.0"}},
        "node_modules/is-number": {
            "version": "6.0.0",
            "integrity": "sha512-Wu1VHeILBK8KAWJUAiSZQX94GmOE45Rg6/538fKwiloUu21KncEkYGPqob2oSZ5m"
            "UT73vLGrHQjKw3KMPwfDzg==",
        },
    },
}


async def test_node_modules_are_there_and_no_change(driver, tmp_path):
    """They are installed once for a lock file, and lie under the tree."""
    npm = await ask_npm()
    if npm is None or shutil.which("node") != "/usr/bin/node":
        pytest.skip("npm is not installed for all users: apt install npm")
    package = {key: LOCKED["packages"][""][key] for key in ("name", "version", "dependencies")}
    files = {"package.json": json.dumps(package), "package-lock.json": json.dumps(LOCKED)}
    repository = TinyRepository(tmp_path / "source", files)
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    if any("ENOTFOUND" in warning or "network" in warning for warning in base.warnings):
        pytest.skip(f"npm's registry cannot be reached: {base.warnings}")
    assert base.warnings == ()
    async with on(driver, base) as sandbox:
        script = "node -e \"console.log(require('is-number')(3))\"; git status --porcelain"
        assert await shell(sandbox, script) == "true"
        assert not await sandbox.diff()
        await shell(sandbox, "rm -rf node_modules/is-number; echo x > node_modules/own.js")
        assert not await sandbox.diff()
    again = await driver.prepare(BaseSpec(str(repository), repository.head))
    assert find_layer(driver.state_dir, again).under == find_layer(driver.state_dir, base).under


async def test_node_modules_without_a_lock_are_told(driver, tmp_path):
    """What would be installed is not known then."""
    package = {"dependencies": {"is-number": "6.0.0"}}
    repository = TinyRepository(tmp_path / "source", {"package.json": json.dumps(package)})
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    assert any("package-lock.json" in warning for warning in base.warnings)


SETUP = """
set -e
mkdir gen; echo 'x = 1' > gen/__init__.py; ln -s __init__.py gen/same.py; echo z >> a.txt
echo made >> runs; echo 'broken(' > /venv/lib/python*/site-packages/turnout_report.py
test -n "$(ls /venv/bin/pip)"; (echo > /dev/tcp/example.org/80) 2>/dev/null && exit 9
setsid sh -c 'sleep 30; echo late > late' >/dev/null 2>&1 &
"""


async def test_a_set_up_command_is_run_once_and_what_it_makes_is_there(driver, tmp_path):
    """In the workspace and in `/venv`; it is no change, and what is ours is as it was."""
    test = "import gen\n\ndef test(): assert gen.x == 1\n"
    files = {"a.txt": "1\n", "tests/test_gen.py": test, "Makefile": "all:\n"}
    repository = TinyRepository(tmp_path / "source", files)
    spec = BaseSpec(str(repository), repository.head, (), setup=SETUP)
    base = await driver.prepare(spec)
    assert ["a.txt" in warning for warning in base.warnings] == [True]
    repository.commit("more", {"b.txt": "2\n"})
    later = await driver.prepare(replace(spec, commit=repository.head))
    layers = [find_layer(driver.state_dir, each) for each in (base, later)]
    assert layers[0].environment == layers[1].environment
    assert layers[0].under == layers[1].under
    async with on(driver, later) as sandbox:
        assert await shell(sandbox, "cat a.txt runs gen/same.py; readlink gen/same.py") == (
            "1\nmade\nx = 1\n__init__.py"
        )
        assert await shell(sandbox, "git status --porcelain") == ""
        assert not await sandbox.diff()
        report = await run_tests(sandbox, "python -m pytest -q", timeout=60)
        assert report.passed == ("tests/test_gen.py::test",), report.output
        await shell(sandbox, "echo 'x = 2' > gen/__init__.py; echo > gen/own.py")
        patch = await sandbox.diff()
        assert [file.path for file in patch.files] == ["gen/own.py"]
        assert patch.excluded == (".pytest_cache/", "gen/__init__.py")
    repository.commit("make", {"Makefile": "all: ;\n"})
    anew = await driver.prepare(replace(spec, commit=repository.head))
    assert find_layer(driver.state_dir, anew).environment != layers[0].environment


UNFIT = {
    "echo no gcc >&2; exit 7": r"`echo no gcc .* exit status 7\.\n  no gcc\n",
    "mkdir d; echo 1 > f; chmod 0 d f sub": r"leaves what cannot be read: d, f, sub\. ",
    "chmod 0 /venv/lib/python3*": r"leaves /venv unfit for use: .*'/venv/lib/python3",
}


async def test_a_set_up_command_that_fails_is_told_with_its_last_words(driver, tmp_path):
    """Or with what it leaves unfit: there is no environment then, and nothing of it is kept."""
    repository = TinyRepository(tmp_path / "source", {"sub/a.txt": "1\n"})
    before = set((driver.state_dir / "setups").iterdir())
    for command, said in UNFIT.items():
        with pytest.raises(UnfitError, match=said):
            await driver.prepare(BaseSpec(str(repository), repository.head, (), setup=command))
    assert set((driver.state_dir / "setups").iterdir()) <= before


async def test_changed_manifests_are_not_what_a_set_up_command_sees(driver, tmp_path):
    """A model has written them: none of it may run where the judge's environment is made."""
    repository = TinyRepository(tmp_path / "source", {"requirements.txt": "", "Makefile": ""})
    command = "cat requirements.txt > seen; ls >> seen"
    changed = (("requirements.txt", "iniconfig\n"),)
    spec = BaseSpec(str(repository), repository.head, manifests=changed, setup=command)
    base = await driver.prepare(spec)
    assert base.requirements == ("iniconfig",)
    async with on(driver, base) as sandbox:
        assert await shell(sandbox, "cat seen") == "Makefile\nrequirements.txt\nseen"
        assert await shell(sandbox, "python -c 'import iniconfig; print(1)'") == "1"
