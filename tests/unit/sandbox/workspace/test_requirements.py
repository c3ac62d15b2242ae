import pytest

from turnout.errors import ConfigError
from turnout.sandbox.workspace.requirements import applicable, declared, explicit

PYPROJECT = """
[project]
name = "My.Project"
dependencies = ["attrs>=20", "my_project[extra]", "click ; python_version < '3.0'"]

[project.optional-dependencies]
test = ["hypothesis", "my-project[other]"]
docs = ["sphinx"]

[dependency-groups]
dev = ["ruff", {include-group = "lint"}]
lint = ["mypy==1.10", {include-group = "dev"}]
"""

REFUSED = [
    "foo @ https://example.org/foo.whl",
    "https://example.org/foo.whl",
    "git+https://example.org/foo.git",
    "./local",
    "../local",
    "/abs/local",
    "-e ./other",
    "--editable=git+https://example.org/x#egg=x",
    "--index-url https://example.org/simple",
    "-i https://example.org/simple",
    "--extra-index-url=https://example.org/simple",
    "--find-links /tmp",
    "-c constraints.txt",
    "-r elsewhere.txt",
    "--trusted-host example.org",
    "foo; os.system('x')",
    "foo bar",
    "x" * 400,
]


def test_dependencies_and_test_groups_of_pyproject_are_taken():
    """Dependencies, the test and dev extras and groups; not other extras, nor the project."""
    found = declared({"pyproject.toml": PYPROJECT})
    assert found.requirements == (
        "attrs>=20",
        'click; python_version < "3.0"',
        "hypothesis",
        "mypy==1.10",
        "ruff",
    )
    assert found.warnings == ()


def test_requirements_files_are_read_line_by_line():
    """Comments, continuations and hashes go; the project itself and known files are passed over."""
    text = (
        "# top\nFoo_Bar==1.0 \\\n  --hash=sha256:00\n\n-e .\n.[dev]\n-r requirements.txt\nbaz # x\n"
    )
    found = declared({"requirements-dev.txt": text, "requirements.txt": "attrs"})
    assert found.requirements == ("attrs", "baz", "foo-bar==1.0")
    assert found.warnings == ()


def test_a_file_included_from_its_own_folder_is_known():
    """`-r` is relative to the file that says it."""
    texts = {"requirements/dev.txt": "-r test.txt\nruff", "requirements/test.txt": "pytest-mock"}
    assert declared(texts).requirements == ("pytest-mock", "ruff")
    assert declared(texts).warnings == ()


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_no_plain_specifier_is_left_out_and_told(line):
    """URLs, paths and options of a repository never reach pip."""
    found = declared({"requirements.txt": f"{line}\nattrs\n"})
    assert found.requirements == ("attrs",)
    assert len(found.warnings) == 1
    assert "requirements.txt" in found.warnings[0]


@pytest.mark.parametrize(
    "text", ["not toml [", "x = " + "[" * 20_000, "[project]\ndependencies = 3\nname = []\n"]
)
def test_a_broken_pyproject_is_survived(text):
    """Nothing is taken from it and nothing is raised."""
    assert declared({"pyproject.toml": text}).requirements == ()


def test_too_many_requirements_are_cut_and_told():
    """A repository cannot make the host fetch without end."""
    found = declared({"requirements.txt": "\n".join(f"p{n}" for n in range(300))})
    assert len(found.requirements) == 200
    assert "200 of 300" in found.warnings[0]


@pytest.mark.parametrize("line", REFUSED)
def test_explicit_requirements_must_be_plain(line):
    """A user's own list is refused as a whole, with the mend."""
    with pytest.raises(ConfigError, match="test requirement") as caught:
        explicit(["attrs", line])
    assert caught.value.mend


def test_explicit_requirements_are_normalised_and_sorted():
    """The same set in another spelling is the same environment."""
    assert explicit(["Zope.Interface", "attrs"]) == explicit(["attrs", "zope-interface"])


def test_markers_are_judged_for_the_sandbox_and_dropped():
    """The interpreter inside decides, not the one that runs us."""
    requirements = [
        'a; python_version < "3.9"',
        'b; sys_platform == "linux"',
        "c",
        'd; extra == "x"',
    ]
    inside = {"python_version": "3.8", "sys_platform": "linux"}
    assert applicable(requirements, inside) == ("a", "b", "c")
