"""Reading evaluation items, ours and SWE-bench's."""

import json
from pathlib import Path
from typing import Any

import pytest

from turnout.errors import ConfigError
from turnout.evals.instances import load_instances

ROW: dict[str, Any] = {
    "instance_id": "one",
    "problem_statement": "add is wrong",
    "files": {"calc.py": "x"},
    "hidden_tests": {"tests/test_hidden.py": "y"},
    "test_command": "pytest",
}
SWE: dict[str, Any] = {
    "instance_id": "owner__name-1",
    "problem_statement": "It fails.",
    "repo": "owner/name",
    "base_commit": "abc",
    "FAIL_TO_PASS": '["t.py::test_a[x y]"]',
    "PASS_TO_PASS": ["t.py::test_b"],
    "test_patch": "diff --git a/t.py b/t.py\n",
    "version": "1.0",
}


def written(folder: Path, *rows: object) -> Path:
    """Write a file of JSON lines."""
    path = folder / "tasks.jsonl"
    path.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    )
    return path


def test_an_instance_may_bring_its_whole_tree(tmp_path: Path) -> None:
    """Blank lines do not count."""
    (instance,) = load_instances(written(tmp_path, "", ROW, "  "))
    assert instance.repository == ""
    assert instance.files == {"calc.py": "x"}
    assert instance.hidden_tests == {"tests/test_hidden.py": "y"}
    assert instance.test_command == "pytest"


def test_a_row_of_swe_bench_is_read(tmp_path: Path) -> None:
    """Lists of tests may be lists or JSON in a string; unknown fields are left alone."""
    (tmp_path / "owner__name").mkdir()
    (instance,) = load_instances(written(tmp_path, SWE), repositories=tmp_path)
    assert instance.fail_to_pass == ("t.py::test_a[x y]",)
    assert instance.pass_to_pass == ("t.py::test_b",)
    assert instance.repository == str(tmp_path / "owner__name")
    assert instance.base_commit == "abc"


@pytest.mark.parametrize("folder", ["owner/name", "owner__name", "name"])
def test_a_clone_is_found_under_its_usual_names(tmp_path: Path, folder: str) -> None:
    """Beneath the folder that was named."""
    (tmp_path / folder).mkdir(parents=True)
    (instance,) = load_instances(written(tmp_path, SWE), repositories=tmp_path)
    assert instance.repository == str(tmp_path / folder)


@pytest.mark.parametrize("repo", ["/srv/clone", "https://host.example/name.git"])
def test_a_path_or_url_is_used_as_it_is(tmp_path: Path, repo: str) -> None:
    """No folder of clones is needed."""
    (instance,) = load_instances(written(tmp_path, {**SWE, "repo": repo}))
    assert instance.repository == repo


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{", "Invalid JSON"),
        ("[]", "object"),
        ({**ROW, "instance_id": ""}, "instance_id"),
        ({"instance_id": "a", "hidden_tests": {"t.py": ""}}, "problem_statement"),
        ({**ROW, "hidden_tests": {}}, "nothing grades"),
        ({**ROW, "files": {"../x": ""}}, "no path"),
        ({**ROW, "hidden_tests": {"/etc/x": ""}}, "no path"),
        ({**ROW, "files": {".git/hooks/x": ""}}, "no path"),
        ({**ROW, "files": {}}, "no repository"),
        (SWE, "no clone of owner/name"),
        ({**SWE, "FAIL_TO_PASS": "test_a"}, "FAIL_TO_PASS"),
        (ROW, "used before"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, row: object, says: str) -> None:
    """By file and number, with what is wrong with it."""
    path = written(tmp_path, ROW, row)
    with pytest.raises(ConfigError) as caught:
        load_instances(path)
    assert f"{path}, line 2" in str(caught.value)
    assert says in str(caught.value)


def test_a_file_without_instances_is_an_error(tmp_path: Path) -> None:
    """As is one that cannot be read."""
    with pytest.raises(ConfigError, match="holds no instance"):
        load_instances(written(tmp_path, ""))
    with pytest.raises(ConfigError, match="cannot be read"):
        load_instances(tmp_path / "none.jsonl")


def test_another_row_has_another_digest(tmp_path: Path) -> None:
    """A result belongs to the row that it was made from."""
    (first,) = load_instances(written(tmp_path, ROW))
    (second,) = load_instances(written(tmp_path, {**ROW, "problem_statement": "Other."}))
    assert first.digest != second.digest
