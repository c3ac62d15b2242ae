import pytest
from packaging.specifiers import SpecifierSet

from turnout.sandbox.declared.poetry import standard_constraint
from turnout.sandbox.declared.read import declared

CONSTRAINTS = [
    ("^1.2.3", ["1.2.3", "1.9"], ["1.2.2", "2.0"]),
    ("^1", ["1.0", "1.9"], ["0.9", "2.0"]),
    ("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0"]),
    ("^0.0.3", ["0.0.3"], ["0.0.4"]),
    ("^0.0", ["0.0.9"], ["0.1"]),
    ("^0", ["0.9"], ["1.0"]),
    ("~1.2.3", ["1.2.3", "1.2.9"], ["1.3"]),
    ("~1.2", ["1.2", "1.2.9"], ["1.3"]),
    ("~1", ["1.0", "1.9"], ["2.0"]),
    ("*", ["0.1", "9"], []),
    ("1.2.*", ["1.2.7"], ["1.3"]),
    ("1.2.3", ["1.2.3"], ["1.2.4"]),
    ("=1.2", ["1.2"], ["1.3"]),
    (">= 1.0, < 2.0", ["1.5"], ["2.0"]),
    (">=1.0 <2.0", ["1.5"], ["2.0"]),
    ("!=1.5", ["1.4"], ["1.5"]),
    ("~=1.4", ["1.9"], ["2.0"]),
    ("^2 || ^3", ["2.0", "3.1"], []),
]

PYPROJECT = """
[tool.poetry]
name = "App"
[tool.poetry.dependencies]
python = "^3.8"
app = "*"
attrs = "^20"
socks = {version = "^1", optional = true}
requests = {version = "^2.3", extras = ["socks"], python = "<3.9", optional = true}
near = {path = "../near"}
many = [{version = "^1", python = "<3.8"}, {version = "^2", python = "^3.8"}]
[tool.poetry.dev-dependencies]
black = "*"
[tool.poetry.group.test.dependencies]
hypothesis = {version = "~6.1", markers = "sys_platform == 'linux'"}
[tool.poetry.group.docs.dependencies]
sphinx = "*"
[tool.poetry.extras]
tests = ["requests"]
[build-system]
requires = ["poetry-core"]
"""


@pytest.mark.parametrize(("constraint", "inside", "outside"), CONSTRAINTS)
def test_a_constraint_means_the_same_in_the_standard_s_words(constraint, inside, outside):
    """Versions that fit still do, and those that do not still do not."""
    found = SpecifierSet(standard_constraint(constraint))
    assert all(version in found for version in inside)
    assert not any(version in found for version in outside)


@pytest.mark.parametrize("constraint", ["latest", "^", "~x", "==", "1 - 2"])
def test_what_is_no_constraint_stays_what_it_is(constraint):
    """It is no plain requirement then, and is told as such."""
    text = f"[tool.poetry.dependencies]\nfoo = '{constraint}'\nbar = '*'\n"
    found = declared({"pyproject.toml": text})
    assert found.requirements == ("bar",)
    assert len(found.warnings) == 1


def test_tables_of_poetry_are_read():
    """Groups for tests, extras for tests, several constraints; Python is no package."""
    found = declared({"pyproject.toml": PYPROJECT})
    assert found.requirements == (
        "attrs<21,>=20",
        "black",
        'hypothesis<6.2,>=6.1; sys_platform == "linux"',
        'many<2,>=1; python_version < "3.8"',
        'many<3,>=2; python_version >= "3.8" and python_version < "4"',
        'requests[socks]<3,>=2.3; python_version < "3.9"',
    )
    assert [warning.partition("`")[2][:4] for warning in found.warnings] == ["near"]
    assert found.builds


def test_the_standard_table_wins_over_poetry_s_own():
    """What is in both is enriched there, not declared."""
    text = (
        "[project]\nname = 'app'\ndependencies = ['attrs>=20']\n"
        "[tool.poetry.dependencies]\nattrs = {source = 'x'}\n"
        "[tool.poetry]\npackage-mode = false\n[build-system]\nrequires = []\n"
    )
    found = declared({"pyproject.toml": text})
    assert found.requirements == ("attrs>=20",)
    assert not found.builds
