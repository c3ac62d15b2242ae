import pytest

from turnout.sandbox.setup.manifests import changed_manifests, may_declare
from turnout.testing.sandbox import ScriptedSandbox


@pytest.mark.parametrize(
    "path",
    [
        "pyproject.toml",
        "setup.py",
        "requirements/base.txt",
        "test-requirements.txt",
        "uv.lock",
        "pylock.dev.toml",
        "package-lock.json",
        "packages/a/package.json",
    ],
)
def test_files_that_may_declare_dependencies(path):
    """Their names decide."""
    assert may_declare(["README.md", path])


@pytest.mark.parametrize(
    "path",
    [
        "src/setup.py",
        "tests/expected.txt",
        "docs/requirements.txt",
        "package.json.orig",
        "node_modules/a/package.json",
    ],
)
def test_files_that_declare_nothing(path):
    """Where they are decides as well."""
    assert not may_declare([path])


async def test_changed_manifests_are_read_through_the_sandbox():
    """One that was removed has an empty text; bytes that are no text are replaced."""
    sandbox = ScriptedSandbox({"setup.py": "setup()", "uv.lock": b"\xff", "a.py": "x"})
    paths = ["uv.lock", "a.py", "pyproject.toml", "setup.py", "setup.py"]
    assert await changed_manifests(sandbox, paths) == (
        ("pyproject.toml", ""),
        ("setup.py", "setup()"),
        ("uv.lock", "\ufffd"),
    )
