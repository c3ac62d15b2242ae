import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from turnout.sandbox.inside.project import required_statically

SETUP = """
import os
from setuptools import setup
import setuptools
REQUIRED = ["attrs>=20", "click"]
MORE = ("rich",)
EXTRAS = {"test": ["hypothesis ; python_version > '3'"], "docs": REQUIRED}
setup(
    name=os.environ["NAME"],
    install_requires=REQUIRED + list(MORE) + ["x"],
    tests_require=REQUIRED + ["mock"],
    extras_require=EXTRAS,
)
"""

DOUBLED = "".join(f"a{n} = [a{n - 1}, a{n - 1}]\n" for n in range(1, 45))
DOUBLING = f"a0 = []\n{DOUBLED}setup(install_requires=a44)"


def told(tmp_path: Path, setup: str = "") -> dict[str, object]:
    """Run the program on an environment, a tree and what that was before."""
    for name in ("venv", "tree", "base"):
        (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / "tree" / "setup.py").write_text(setup)
    (tmp_path / "base" / "setup.py").write_text(setup)
    source = files("turnout.sandbox.inside").joinpath("project.py").read_text("utf-8")
    argv = [sys.executable, "-ISE", "-c", source]
    argv += [str(tmp_path / name) for name in ("venv", "tree", "base")]
    return json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)


def packages(tmp_path: Path) -> Path:
    """Make the folder of packages."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folder = tmp_path / "venv" / "lib" / version / "site-packages"
    folder.mkdir(parents=True)
    return folder


def test_what_a_setup_script_states_is_read_without_running_it():
    """Names, sums and tables are followed; what has to be computed is left out."""
    assert required_statically(SETUP) == [
        "attrs>=20",
        "click",
        "mock",
        "hypothesis ; (python_version > '3') and extra == \"test\"",
        'attrs>=20 ; extra == "docs"',
        'click ; extra == "docs"',
    ]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("setup(install_requires='''\na\nb\n''')", ["a", "b"]),
        ("setuptools.setup(extras_require=dict(test=['a']))", ['a ; extra == "test"']),
        ("D = dict(x=['a'])\nsetup(install_requires=D['x'])", ["a"]),
        ("setup(install_requires=open('r').read())", []),
        ("setup(install_requires=[f() for f in g])", []),
        ("x = y\ny = x\nsetup(install_requires=x)", []),
    ],
)
def test_usual_ways_to_state_requirements(call, found):
    """And some that are none."""
    assert required_statically(call) == found


@pytest.mark.parametrize(
    "source",
    ["(", "x = " + "[" * 5_000, "\0", DOUBLING],
)
def test_no_source_is_too_odd(source):
    """Nothing is raised, and it does not take long."""
    assert required_statically(source) == []


def test_an_editable_installation_is_told(tmp_path):
    """Its description, its requirements, and paths within the tree."""
    site = packages(tmp_path)
    described = site / "app-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(
        "Name: app\nVersion: 1\nRequires-Dist: attrs\n\nRequires-Dist: no"
    )
    (described / "direct_url.json").write_text(
        '{"dir_info": {"editable": true}, "url": "file:///x"}'
    )
    (described / "RECORD").write_text("x")
    (site / "other-1.dist-info").mkdir()
    (site / "app.pth").write_text(f"{tmp_path}/tree/src\nimport os\n/etc\n{tmp_path}/tree/../x\n")
    facts = told(tmp_path)
    assert facts["requires"] == ["attrs"]
    assert facts["paths"] == [f"{tmp_path}/tree/src"]
    assert set(facts["files"]) == {"METADATA", "direct_url.json"}


def test_files_that_a_build_has_made_are_told(tmp_path):
    """Regular files that were not there before, but for what nobody imports."""
    facts = told(tmp_path)
    assert facts["made"] == []
    tree = tmp_path / "tree"
    for path in (
        "pkg/_version.py",
        "build/lib/x.py",
        "a.egg-info/x",
        "pkg/__pycache__/x.pyc",
        ".git/x",
    ):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text("x")
    (tree / "link").symlink_to("/etc/passwd")
    assert told(tmp_path)["made"] == ["pkg/_version.py"]


def test_a_build_that_makes_too_much_is_told(tmp_path):
    """Then nothing of it is kept."""
    told(tmp_path)
    for number in range(2_001):
        (tmp_path / "tree" / str(number)).touch()
    facts = told(tmp_path)
    assert facts["made"] == []
    assert facts["made_all"] is False
