import os
import subprocess
import sys
from pathlib import Path

import pytest

from turnout.sandbox.setup.metadata import lay_out

METADATA = "Metadata-Version: 2.1\nName: My.App\nVersion: 1.2+local\n"
ENTRY_POINTS = """
[console_scripts]
my-app = my_app.cli:main
nested = my_app.cli:Thing.run [extra]
../up = my_app:main
evil = os;system:main
shell = my_app:main();evil
[gui_scripts]
window = my_app:gui
[pytest11]
plugin = my_app.plugin
[broken
"""


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_python_finds_what_was_laid_out(tmp_path):
    """The description, under the name that it looks for, and the paths."""
    files = {"METADATA": METADATA, "entry_points.txt": "[x]\na = b:c\n", "RECORD": "x", "evil": "y"}
    assert lay_out(tmp_path, files, ["/repo/src"])
    ask = (
        f"import sys; sys.path.append({str(tmp_path / 'site')!r}); import importlib.metadata as m;"
        "print(m.version('my-app'), [e.value for e in m.entry_points(group='x')])"
    )
    told = subprocess.run([sys.executable, "-ISc", ask], capture_output=True, text=True, check=True)
    assert told.stdout == "1.2+local ['b:c']\n"
    assert names(tmp_path / "site" / "my_app-1.2+local.dist-info") == [
        "METADATA",
        "entry_points.txt",
    ]


def test_scripts_are_written_anew_from_entry_points(tmp_path):
    """Only from those that name a function, and only under a plain name."""
    text = ENTRY_POINTS.replace("[broken\n", "")
    lay_out(tmp_path, {"METADATA": METADATA, "entry_points.txt": text}, [])
    assert names(tmp_path / "bin") == ["my-app", "nested", "window"]
    script = (tmp_path / "bin" / "nested").read_text()
    assert script.startswith("#!/venv/bin/python\n")
    assert "from my_app.cli import Thing\n" in script
    assert script.endswith("sys.exit(Thing.run())\n")
    assert os.access(tmp_path / "bin" / "nested", os.X_OK)


def test_entry_points_that_cannot_be_read_make_no_scripts(tmp_path):
    """A build may write anything there."""
    lay_out(tmp_path, {"METADATA": METADATA, "entry_points.txt": ENTRY_POINTS}, [])
    assert names(tmp_path / "bin") == []


@pytest.mark.parametrize(
    "line",
    ["import os", "/etc", "/repo/../etc", "/repox", "relative", "/repo\nimport os", "/repo/a\r"],
)
def test_no_line_of_a_path_file_is_code_or_leads_out(tmp_path, line):
    """Python would run it at every start."""
    lay_out(tmp_path, {"METADATA": METADATA}, ["/repo/lib", line])
    assert (tmp_path / "site" / "project.pth").read_text() == "/repo/lib\n"


@pytest.mark.parametrize(
    "metadata", ["", "Name: x\n", "Name: ../x\nVersion: 1\n", "Name: x\nVersion: 1/../../y\n", "\0"]
)
def test_what_is_no_description_of_a_project_leaves_nothing(tmp_path, metadata):
    """Names of folders are never taken from a build unchecked."""
    assert not lay_out(tmp_path, {"METADATA": metadata}, ["/repo"])
    assert names(tmp_path) == []
