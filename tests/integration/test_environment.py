"""Environments made in sandboxes: from where packages come, and what a run finds."""

import io
import subprocess
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.egress import Certifier, FixedResolver, Site, server
from tests.integration.workspaces import shell

from turnout.core.ids import new_run_id
from turnout.errors import SandboxUnavailableError, UnfitError
from turnout.sandbox.base import BaseRef, BaseSpec, Limits, Mount, Sandbox
from turnout.sandbox.base_layer import find_layer
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.egress.authority import RunAuthority
from turnout.sandbox.egress.gate import EgressServices
from turnout.sandbox.mirrors.packages import packages_egress
from turnout.sandbox.mirrors.pip_settings import PackagePlace, PipSettings
from turnout.sandbox.mirrors.reach import Reach
from turnout.sandbox.rooms.room import SCRATCH, Room, opened_room
from turnout.sandbox.setup.environment import prepare_environment
from turnout.sandbox.setup.pip import OUR_PIP, Pip, our_pip
from turnout.sandbox.setup.project import Source, prepare_project
from turnout.sandbox.setup.tools import Mirrors, Tools, open_tools
from turnout.testing.repositories import TinyRepository

BACKEND = """
import zipfile
FILES = {
    "METADATA": "Metadata-Version: 2.1\\nName: built\\nVersion: 1.0\\n",
    "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "RECORD": "built.py,,\\n",
}
def build_wheel(folder, config_settings=None, metadata_directory=None):
    whole = "built-1.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{whole}", "w") as wheel:
        wheel.writestr("built.py", f"where = {__file__!r}\\n")
        for name, text in FILES.items():
            wheel.writestr(f"built-1.0.dist-info/{name}", text)
    return whole
"""
VENV_INSIDE = f"{SCRATCH}/venv"
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


WORLD = Certifier()
SECRET = "hunter2hunter2"


def source_distribution() -> bytes:
    """Return a package that is built by a backend of its own."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in {"pyproject.toml": PYPROJECT, "backend.py": BACKEND}.items():
            info = tarfile.TarInfo(f"built-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


def pages(link: str) -> dict[str, bytes]:
    """Return the pages of an index of one package, whose file is at `link`."""
    page = f'<a href="{link}/built-1.0.tar.gz">built-1.0.tar.gz</a>'.encode()
    names = ("/simple/built/", "/simple/pip/")
    return {**dict.fromkeys(names, page), "/built-1.0.tar.gz": source_distribution()}


class WithoutEgress:
    """A driver that starts no sandbox with a network."""

    def __init__(self, driver: BubblewrapDriver, state_dir: Path) -> None:
        self.state_dir = state_dir
        self._driver = driver

    @property
    def python(self) -> str:
        """Path inside of the interpreter."""
        return self._driver.python

    async def start_bare(
        self, run_id, mounts, limits, *, workspace="empty", egress=None
    ) -> Sandbox:
        """Start one without."""
        if egress is not None and egress.rules:
            raise SandboxUnavailableError("There is no network here.")
        return await self._driver.start_bare(run_id, mounts, limits, workspace=workspace)


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """One driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


@pytest.fixture(scope="module")
def local_driver(sandbox_state: Path) -> BubblewrapDriver:
    """One whose sandboxes know this machine by every name."""
    services = EgressServices(FixedResolver(), RunAuthority)
    return BubblewrapDriver(sandbox_state, egress=services)


@asynccontextmanager
async def opened_run(driver: BubblewrapDriver, base: BaseRef) -> AsyncIterator[Sandbox]:
    """Start a sandbox on a base layer and end it."""
    sandbox = await driver.create(new_run_id(), base, Limits())
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def install_built(room: Room, reach: Reach) -> None:
    """Install the package of the index in a sandbox, and nothing that is not there."""
    pip = Pip(room, VENV_INSIDE, seconds=120)
    await pip.begin(OUR_PIP, reach.files)
    assert await pip.install("--", "built"), pip.said
    ask = f"{VENV_INSIDE}/bin/python -Ic 'import built; print(built.where)'"
    assert (await shell(room.sandbox, ask)).startswith("/tmp/")
    assert not await pip.install("--", "absent")
    assert "absent" in pip.said


async def test_packages_come_from_the_user_s_own_index_and_are_built_inside(local_driver):
    """A host inside the company that hands out files of another; no code of them runs outside."""
    site = Site()
    async with server(site) as port:
        site.pages = pages(f"http://files.test:{port}")
        place = PackagePlace(f"http://index.test:{port}/simple")
        settings = PipSettings((place,), trusted=("index.test", "files.test"))
        reach = await Mirrors(local_driver, settings).reach()
        assert reach.obstacle == ""
        assert [rule.host for rule in reach.egress.rules] == ["index.test", "files.test"]
        async with opened_room(local_driver, our_pip(), egress=reach.egress) as room:
            await install_built(room, reach)


async def test_credentials_of_an_index_never_enter(local_driver, sandbox_state, tmp_path):
    """Pip inside sends what stands for them; without the extra, the host fetches wheels."""
    (tmp_path / "ca.pem").write_bytes(WORLD.pem)
    site = Site(pages=pages("../.."), credentials=f"someone:{SECRET}".encode())
    async with server(site, WORLD.server("index.test")) as port:
        place = PackagePlace(f"https://someone:{SECRET}@index.test:{port}/simple")
        settings = PipSettings((place,), certificates=f"{tmp_path}/ca.pem")
        reach = await Mirrors(local_driver, settings).reach()
        assert reach.obstacle == ""
        async with opened_room(local_driver, our_pip(), egress=reach.egress) as room:
            await install_built(room, reach)
            script = f"env; cat {SCRATCH}/pip.conf; grep -rl {SECRET} /tmp || true"
            assert SECRET not in await shell(room.sandbox, script)
        without = BubblewrapDriver(sandbox_state, egress=EgressServices(FixedResolver()))
        assert (await Mirrors(without, settings).reach()).obstacle


async def test_where_no_index_answers_a_sandbox_it_is_said(local_driver):
    """Nobody listens at that port."""
    settings = PipSettings((PackagePlace("http://index.test:9/simple"),))
    reach = await Mirrors(local_driver, settings).reach()
    assert "no index answers" in reach.obstacle


async def test_where_a_sandbox_has_no_network_the_host_fetches_wheels(driver, sandbox_state):
    """The environment is the same, but for what would have to be built."""
    tools = await open_tools(driver)
    starter = WithoutEgress(driver, sandbox_state)
    offline = Tools(starter, tools.interpreter, Mirrors(starter))
    assert (await offline.mirrors.reach()).obstacle.startswith("There is no network here.")
    made = await prepare_environment(offline, ["pluggy!=0.1"], ["iniconfig==2.0.0"])
    assert made.requirements == ("pluggy!=0.1",)
    async with opened_room(driver, [Mount(str(made.folder), "/venv")]) as room:
        listed = await shell(room.sandbox, "pip list; pytest --version")
        assert "iniconfig 2.0.0" in " ".join(listed.split())


async def test_without_a_network_inside_a_project_is_built_with_wheels(driver, tmp_path):
    """Its build backend is fetched by the host as well, and run by a sandbox."""
    text = "from setuptools import setup\nsetup(name='old', version='3', py_modules=['old'])\n"
    repository = TinyRepository(tmp_path / "source", {"setup.py": text, "old.py": ""})
    base = await driver.prepare(BaseSpec(str(repository), repository.head, requirements=()))
    layer = find_layer(driver.state_dir, base)
    tools = await open_tools(driver)
    starter = WithoutEgress(driver, tmp_path / "state")
    starter.state_dir.mkdir(mode=0o711)
    offline = Tools(starter, tools.interpreter, Mirrors(starter))
    source = Source(layer.tree, layer.history, {"setup.py": text})
    project = await prepare_project(offline, source)
    assert project.warnings == ()
    assert [path.name for path in project.shown.glob("site/*.dist-info")] == ["old-3.dist-info"]


async def test_an_empty_workspace_has_pip_and_pytest(driver):
    """Without a repository there is no history and nothing to compare with."""
    base = await driver.prepare(BaseSpec(None))
    assert (base.commit, base.requirements) == ("", ())
    async with opened_run(driver, base) as sandbox:
        assert await shell(sandbox, "ls -A; pwd") == "/repo"
        assert "pytest" in await shell(sandbox, "python -m pip list && pytest --version")


async def test_a_model_may_install_packages_where_its_policy_lets_it(driver, sandbox_state):
    """From the user's own mirrors, for the run alone, and nothing else is reached."""
    base = await driver.prepare(BaseSpec(None))
    egress = await packages_egress(sandbox_state)
    sandbox = await driver.create(new_run_id(), base, Limits(), egress=egress)
    try:
        await shell(sandbox, "pip install --quiet sniffio; python -c 'import sniffio'")
        ask = "import urllib.request as u, sniffio; u.urlopen('https://elsewhere.test')"
        refused = await shell(sandbox, f'python -c "{ask}" 2>&1 || true')
        assert "not reachable from this sandbox" in refused
        asked = {(connection.allowed, connection.host) for connection in sandbox.connections()}
        assert (False, "elsewhere.test") in asked
        assert all(allowed or host == "elsewhere.test" for allowed, host in asked)
    finally:
        await sandbox.close()
    async with opened_run(driver, base) as other:
        script = "python -c 'import sniffio' 2>/dev/null || echo absent"
        assert await shell(other, script) == "absent"


async def test_versions_of_a_lock_file_are_installed(driver, tmp_path):
    """Newer ones are there, and another package's pin cannot be had."""
    lock = "".join(
        f'[[package]]\nname = "{name}"\nversion = "{version}"\nsource = {{registry = "x"}}\n'
        for name, version in (("iniconfig", "2.0.0"), ("elsewhere", "0.0.0"))
    )
    pyproject = "[project]\nname = 'app'\ndependencies = ['iniconfig']\n"
    repository = TinyRepository(tmp_path / "source", {"pyproject.toml": pyproject, "uv.lock": lock})
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    assert (base.requirements, base.warnings) == (("iniconfig",), ())
    async with opened_run(driver, base) as sandbox:
        assert "iniconfig 2.0.0" in " ".join((await shell(sandbox, "pip list")).split())


async def test_changed_manifests_make_another_environment_for_the_same_tree(driver, tmp_path):
    """What the run has changed counts there; the workspace is the commit's."""
    repository = TinyRepository(tmp_path / "source", {"requirements.txt": "iniconfig\n"})
    spec = BaseSpec(str(repository), repository.head)
    manifests = (("requirements.txt", "iniconfig\nsniffio\n"),)
    base = await driver.prepare(replace(spec, manifests=manifests))
    assert base.requirements == ("iniconfig", "sniffio")
    assert (await driver.prepare(spec)).requirements == ("iniconfig",)
    sandbox = await driver.create(new_run_id(), base, Limits())
    try:
        assert (
            await shell(sandbox, "python -c 'import sniffio'; cat requirements.txt") == "iniconfig"
        )
    finally:
        await sandbox.close()


async def test_a_full_disk_is_told_as_such(small_state):
    """Whichever program finds out: the folder is named, and what to do."""
    driver = BubblewrapDriver(small_state)
    with pytest.raises(UnfitError, match="is full") as caught:
        await driver.prepare(BaseSpec(None, requirements=("iniconfig",)))
    assert str(small_state) in str(caught.value)
    assert not list(small_state.glob("environments/.*"))


@pytest.fixture
def small_state() -> Iterator[Path]:
    """Mount a state folder that is too small for an environment."""
    folder = Path(tempfile.mkdtemp(prefix="turnout-small-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m,mode=711", "turnout-test", folder]
    done = subprocess.run(mount, check=False, capture_output=True)
    if done.returncode:
        folder.rmdir()
        pytest.skip(f"only root can mount a small disk: {done.stderr!r}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
    folder.rmdir()
