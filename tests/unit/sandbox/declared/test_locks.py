import json

import pytest

from turnout.sandbox.declared.read import declared

UV = """
version = 1
[[package]]
name = "Attrs"
version = "25.1"
source = { registry = "https://example.org/simple" }
[[package]]
name = "numpy"
version = "1.24"
source = { registry = "https://example.org/simple" }
resolution-markers = ["python_full_version < '3.9'"]
[[package]]
name = "numpy"
version = "2.0"
source = { registry = "https://example.org/simple" }
resolution-markers = ["python_full_version >= '3.9'", "sys_platform == 'win32'"]
[[package]]
name = "app"
version = "1"
source = { editable = "." }
[[package]]
name = "forked"
version = "1"
source = { git = "https://example.org/x" }
"""

POETRY = """
[[package]]
name = "attrs"
version = "25.1"
groups = ["main"]
[[package]]
name = "colorama"
version = "0.4"
markers = "sys_platform == 'win32'"
[[package]]
name = "both"
version = "1"
[package.markers]
main = "python_version < '3.9'"
dev = "os_name == 'nt'"
[[package]]
name = "forked"
version = "1"
[package.source]
type = "git"
url = "https://example.org/x"
"""

PYLOCK = """
lock-version = "1.0"
[[packages]]
name = "attrs"
version = "25.1"
marker = "python_version >= '3.8'"
[[packages]]
name = "here"
directory = { path = "." }
"""

PIPFILE_LOCK = {
    "default": {"attrs": {"version": "==25.1"}, "forked": {"git": "https://example.org/x"}},
    "develop": {"ruff": {"version": "==0.4", "markers": "python_version >= '3.8'"}},
}

LOCKS = {
    "uv.lock": (
        UV,
        (
            "attrs==25.1",
            'numpy==1.24; python_full_version < "3.9"',
            'numpy==2.0; python_full_version >= "3.9" or sys_platform == "win32"',
        ),
    ),
    "poetry.lock": (
        POETRY,
        (
            "attrs==25.1",
            'both==1; python_version < "3.9" or os_name == "nt"',
            'colorama==0.4; sys_platform == "win32"',
        ),
    ),
    "pylock.toml": (PYLOCK, ('attrs==25.1; python_version >= "3.8"',)),
    "pylock.dev.toml": (PYLOCK, ('attrs==25.1; python_version >= "3.8"',)),
    "Pipfile.lock": (
        json.dumps(PIPFILE_LOCK),
        ("attrs==25.1", 'ruff==0.4; python_version >= "3.8"'),
    ),
}


@pytest.mark.parametrize("path", LOCKS)
def test_versions_of_a_lock_file_are_pins(path):
    """What comes from an index, with the markers under which it is meant; nothing else."""
    text, pins = LOCKS[path]
    found = declared({path: text, "pyproject.toml": "[project]\ndependencies = ['attrs']\n"})
    assert found.requirements == ("attrs",)
    assert found.pins == pins
    assert found.warnings == ()


def test_where_a_lock_file_is_all_there_is_it_is_what_is_needed():
    """Its packages are the requirements then."""
    assert declared({"pylock.toml": PYLOCK}).requirements == (
        'attrs==25.1; python_version >= "3.8"',
    )


@pytest.mark.parametrize("path", LOCKS)
@pytest.mark.parametrize(
    "text",
    ["[", "{", "[]", "package = 3", "[[package]]\nname = 1\nversion = [2]", '{"default": 1}'],
)
def test_a_broken_lock_file_is_survived(path, text):
    """Nothing is taken from it and nothing is raised."""
    assert declared({path: text}).pins == ()
