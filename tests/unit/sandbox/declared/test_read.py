import pytest

from turnout.sandbox.declared.read import declared

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

EXTRAS = """
[project]
name = "app"
[project.optional-dependencies]
dev = ["App[lint, other]", "ruff"]
lint = ["mypy"]
other = ["app[dev]", "tox"]
"""

TOOLS = """
[tool.uv]
dev-dependencies = ["a"]
[tool.pdm.dev-dependencies]
test = ["b"]
docs = ["sphinx"]
[tool.hatch.envs.default]
dependencies = ["c"]
[tool.hatch.envs.hatch-test]
extra-dependencies = ["d"]
[tool.hatch.envs.docs]
dependencies = ["mkdocs"]
"""

SETUP_CFG = """
[metadata]
name = My_Project
[options]
install_requires =
    attrs>=20  # why
    click; python_version < "3"
    # nothing
tests_require = file: tests.txt
[options.extras_require]
test = %(docs)s
    hypothesis
docs = sphinx
all = 100%
"""

PIPFILE = """
[packages]
attrs = "*"
requests = {version = ">=2", extras = ["socks"], markers = "sys_platform == 'linux'"}
mine = {path = "."}
[dev-packages]
ruff = "==0.4"
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


def test_an_extra_for_tests_brings_those_of_the_project_that_it_names():
    """`app[lint]` within the project `app` stands for the lines of that extra, round and round."""
    assert declared({"pyproject.toml": EXTRAS}).requirements == ("mypy", "ruff", "tox")


def test_tables_of_tools_are_read_for_what_tests_need():
    """uv, PDM and Hatch have tables of their own; what is for documentation stays out."""
    assert declared({"pyproject.toml": TOOLS}).requirements == ("a", "b", "c", "d")


def test_setup_cfg_is_read_without_setuptools():
    """Lists and extras for tests, references between them included; files are left to the build."""
    found = declared({"setup.cfg": SETUP_CFG})
    assert found.requirements == (
        "attrs>=20",
        'click; python_version < "3"',
        "hypothesis",
        "sphinx",
    )
    assert found.warnings == ()


@pytest.mark.parametrize("text", ["[options", "a = b", "[options]\ninstall_requires = %(x)s %"])
def test_a_broken_setup_cfg_is_survived(text):
    """Nothing plain is in it, and nothing is raised."""
    assert declared({"setup.cfg": text}).requirements == ()


def test_a_pipfile_is_read_with_its_own_syntax():
    """Stars, tables and markers; what lies elsewhere is told."""
    found = declared({"Pipfile": PIPFILE})
    assert found.requirements == (
        "attrs",
        'requests[socks]>=2; sys_platform == "linux"',
        "ruff==0.4",
    )
    assert "mine" in found.warnings[0]


def test_lines_that_a_build_has_told_are_taken_beside_the_others():
    """Whatever files do not say is known from the metadata of the project."""
    texts = {"setup.py": "setup(name=N)", "pyproject.toml": '[project]\nname = "app"\n'}
    found = declared(texts, built=["attrs", 'x; extra == "test"', "app[all]"])
    assert found.requirements == ("attrs", 'x; extra == "test"')
    assert found.builds


@pytest.mark.parametrize(
    ("texts", "builds"),
    [
        ({"setup.py": ""}, True),
        ({"pyproject.toml": "[build-system]\nrequires = ['flit_core']"}, True),
        ({"pyproject.toml": "[project]\nname = 'x'"}, False),
        ({"pyproject.toml": "[build-system]\nrequires = []\n[tool.uv]\npackage = false"}, False),
        ({"setup.cfg": "[metadata]\nname = x", "requirements.txt": "x"}, False),
    ],
)
def test_what_has_a_build_backend_can_be_installed(texts, builds):
    """A table alone says nothing of how it is built; some say that there is nothing to build."""
    assert declared(texts).builds is builds


def test_included_files_are_followed_wherever_they_are():
    """Paths are relative to the file that names them, and a circle ends."""
    texts = {
        "requirements.txt": "-r requirements/base.txt\nattrs",
        "requirements/base.txt": "-r ../extra-requirements.txt\n-r base.txt\nclick",
        "extra-requirements.txt": "rich",
        "requirements/docs.txt": "sphinx",
    }
    found = declared(texts)
    assert found.requirements == ("attrs", "click", "rich")
    assert found.warnings == ()
