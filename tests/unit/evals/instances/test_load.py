"""Reading evaluation items: ours, SWE-bench's and the first guide's."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from turnout.errors import ConfigError
from turnout.evals.instances.load import load_instances

ROW: dict[str, Any] = {
    "instance_id": "one",
    "problem_statement": "add is wrong",
    "files": {"calc.py": "x"},
    "hidden_tests": {"tests/test_hidden.py": "y"},
    "test_command": "pytest",
}
PATCH = "diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\n"
SWE: dict[str, Any] = {
    "instance_id": "owner__name-1",
    "problem_statement": "It fails.",
    "repo": "owner/name",
    "base_commit": "abc",
    "FAIL_TO_PASS": '["t.py::test_a[x y]"]',
    "PASS_TO_PASS": ["t.py::test_b"],
    "patch": PATCH.replace("t.py", "s.py"),
    "test_patch": PATCH,
    "hints_text": "look at s.py",
    "version": "1.0",
}
GUIDE: dict[str, Any] = {
    "task": "The parser fails.",
    "repo": "/srv/clone",
    "base": "v1",
    "hidden_tests": "tests/test_hidden.py",
}


def written(folder: Path, *rows: object) -> Path:
    """Write a file of JSON lines."""
    path = folder / "tasks.jsonl"
    path.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    )
    return path


async def test_an_instance_may_bring_its_whole_tree(tmp_path: Path) -> None:
    """Blank lines do not count."""
    (instance,) = await load_instances(written(tmp_path, "", ROW, "  "))
    assert instance.repository == ""
    assert instance.files == {"calc.py": "x"}
    assert instance.hidden_tests == {"tests/test_hidden.py": "y"}
    assert instance.test_command == "pytest"


async def test_a_row_of_swe_bench_is_read(tmp_path: Path) -> None:
    """Lists of tests may be lists or JSON in a string; unknown fields are left alone."""
    (tmp_path / "owner__name").mkdir()
    (instance,) = await load_instances(written(tmp_path, SWE), repositories=tmp_path)
    assert instance.fail_to_pass == ("t.py::test_a[x y]",)
    assert instance.pass_to_pass == ("t.py::test_b",)
    assert instance.repository == str(tmp_path / "owner__name")
    assert instance.repo == "owner/name"
    assert instance.base_commit == "abc"
    assert instance.test_patch == PATCH
    assert instance.patch == SWE["patch"]
    assert instance.hints == "look at s.py"


async def test_a_list_of_rows_is_read_as_well(tmp_path: Path) -> None:
    """As harnesses hand them out in one JSON file, indented or not."""
    path = tmp_path / "tasks.json"
    for indent in (None, 2):
        path.write_text(json.dumps([ROW, {**ROW, "instance_id": "two"}], indent=indent))
        assert [each.instance_id for each in await load_instances(path)] == ["one", "two"]


async def test_a_wrong_entry_of_a_list_is_named_by_its_line(tmp_path: Path) -> None:
    """By the line on which it begins."""
    path = tmp_path / "tasks.json"
    path.write_text(f"[\n{json.dumps(ROW)},\n\n" + '{"instance_id": 5}\n]')
    with pytest.raises(ConfigError, match="line 4: instance_id"):
        await load_instances(path)


@pytest.mark.parametrize("text", ["[", "[{}", '["a" "b"]', "[{},,]", "[1] 2", "[" * 100_000])
async def test_a_broken_list_is_an_error(tmp_path: Path, text: str) -> None:
    """With its place."""
    path = tmp_path / "tasks.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="line 1"):
        await load_instances(path)


async def test_a_row_of_the_first_guide_is_read(tmp_path: Path) -> None:
    """Its hidden tests are a file beside the file of tasks, at the same path in the repository."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_hidden.py").write_text("def test(): pass\n")
    (instance,) = await load_instances(written(tmp_path, GUIDE))
    assert instance.instance_id == "task-1"
    assert instance.problem_statement == "The parser fails."
    assert (instance.repository, instance.base_commit) == ("/srv/clone", "v1")
    assert instance.hidden_tests == {"tests/test_hidden.py": "def test(): pass\n"}


async def test_hidden_tests_may_be_text(tmp_path: Path) -> None:
    """They get a path among the tests."""
    (instance,) = await load_instances(written(tmp_path, {**GUIDE, "hidden_tests": "x = 1\n"}))
    assert instance.hidden_tests == {"tests/test_hidden.py": "x = 1\n"}


@pytest.mark.parametrize("name", ["/etc/hostname", "../aside.py", "link.py", "pipe", "gone.py"])
async def test_hidden_tests_are_a_file_beside_the_tasks_and_no_other(
    tmp_path: Path, name: str
) -> None:
    """A file of tasks from elsewhere reads nothing else of this machine, and waits for nothing."""
    folder = tmp_path / "set"
    folder.mkdir()
    (tmp_path / "aside.py").write_text("secret")
    (folder / "link.py").symlink_to(tmp_path / "aside.py")
    os.mkfifo(folder / "pipe")
    with pytest.raises(ConfigError, match=r"line 1: hidden_tests: .* cannot be read: ") as caught:
        await load_instances(written(folder, {**GUIDE, "hidden_tests": name}))
    assert "Name a file beside the file of tasks" in caught.value.mend


async def test_other_tests_beside_the_file_are_another_row(tmp_path: Path) -> None:
    """A result belongs to the tests that it was graded by."""
    aside = tmp_path / "aside.py"
    digests = set()
    for text in ("a", "b"):
        aside.write_text(text)
        path = written(tmp_path, {**GUIDE, "hidden_tests": str(aside)})
        (instance,) = await load_instances(path)
        assert list(instance.hidden_tests) == ["tests/aside.py"]
        digests.add(instance.digest)
    assert len(digests) == 2


async def test_tests_are_put_in_place_by_one_way_only(tmp_path: Path) -> None:
    """What a row has as text is not patched as well."""
    other = PATCH.replace("t.py", "u.py")
    row = {**SWE, "repo": "/r", "test_patch": PATCH + other, "hidden_tests": {"t.py": "b\n"}}
    (instance,) = await load_instances(written(tmp_path, row))
    assert instance.hidden_tests == {"t.py": "b\n"}
    assert instance.test_patch == other


@pytest.mark.parametrize("folder", ["owner/name", "owner__name", "name"])
async def test_a_clone_is_found_under_its_usual_names(tmp_path: Path, folder: str) -> None:
    """Beneath the folder that was named, which comes before where the row was made."""
    (tmp_path / folder).mkdir(parents=True)
    row = {**SWE, "clone": "/"}
    (instance,) = await load_instances(written(tmp_path, row), repositories=tmp_path)
    assert instance.repository == str(tmp_path / folder)


async def test_a_clone_is_found_where_the_row_was_made(tmp_path: Path) -> None:
    """And beside the file of tasks."""
    (tmp_path / "clone").mkdir()
    row = {**SWE, "clone": str(tmp_path / "clone")}
    (instance,) = await load_instances(written(tmp_path, row))
    assert instance.repository == row["clone"]
    (instance,) = await load_instances(written(tmp_path, {**SWE, "repo": "./clone"}))
    assert Path(instance.repository) == tmp_path / "clone"


@pytest.mark.parametrize("repo", ["/srv/clone", "https://host.example/name.git"])
async def test_a_path_or_url_is_used_as_it_is(tmp_path: Path, repo: str) -> None:
    """No folder of clones is needed."""
    (instance,) = await load_instances(written(tmp_path, {**SWE, "repo": repo}))
    assert instance.repository == repo


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{", "Invalid JSON"),
        ("[]", "object"),
        ({**ROW, "instance_id": ""}, "instance_id"),
        ({"instance_id": "a", "hidden_tests": {"t.py": ""}}, "problem_statement"),
        ({**ROW, "hidden_tests": {}}, "nothing grades"),
        ({**ROW, "files": {"../x": ""}}, "files: '../x' is no path"),
        ({**ROW, "hidden_tests": {"/etc/x": ""}}, "hidden_tests: '/etc/x' is no path"),
        ({**ROW, "hidden_tests": {"t.py": 1}}, "hidden_tests.t.py"),
        ({**ROW, "files": {".git/hooks/x": ""}}, "no path"),
        ({**ROW, "extra_files": {".GIT/x": ""}}, "extra_files: '.GIT/x' is no path"),
        ({**ROW, "files": {}}, "repo: there is no repository"),
        ({**ROW, "spec": "guess"}, "spec: Input should be"),
        ({**ROW, "patch": "nonsense"}, "patch: This is no unified diff"),
        ({**ROW, "test_patch": PATCH.replace("t.py", "../t.py")}, "test_patch: The patch was"),
        (SWE, "repo: no clone of owner/name"),
        ({**SWE, "FAIL_TO_PASS": "test_a"}, "FAIL_TO_PASS: neither a list"),
        ({**GUIDE, "hidden_tests": "none.py"}, "hidden_tests: 'none.py' cannot be read"),
        (ROW, "used before"),
        ({**ROW, "files": {".": ""}}, "files: '.' is no path"),
        ({**ROW, "files": {"a/": ""}}, "files: 'a/' is no path"),
        ({**ROW, "files": {"./a/b": ""}}, "files: './a/b' is no path"),
        ({**ROW, "files": {"a//b": ""}}, "files: 'a//b' is no path"),
        ({**ROW, "files": {"a": "", "a/b": ""}}, "files: 'a' is a file and the folder of 'a/b'"),
        ({**ROW, "files": {"a\nb": ""}}, "is no path"),
        ({**ROW, "files": {"a" * 256: ""}}, "is no path"),
        ({**ROW, "instance_id": "a\nb"}, "instance_id: 'a\\nb' is no name"),
        ({**ROW, "instance_id": "a\u202eb"}, "instance_id"),
        ({**ROW, "instance_id": " a"}, "instance_id: ' a' is no name"),
        ({**ROW, "problem_statement": "a\0"}, "problem_statement: 'a\\x00' holds what is no text"),
        ({**ROW, "setup": "make\0"}, "setup: "),
        ({**ROW, "FAIL_TO_PASS": ["--pdb"]}, "FAIL_TO_PASS: '--pdb' is no name of a test"),
    ],
)
async def test_a_wrong_line_is_named(tmp_path: Path, row: object, says: str) -> None:
    """By file and number, with the field and what is wrong with it."""
    path = written(tmp_path, ROW, row)
    with pytest.raises(ConfigError) as caught:
        await load_instances(path)
    assert f"{path}, line 2" in str(caught.value)
    assert says in str(caught.value)


async def test_a_file_without_instances_is_an_error(tmp_path: Path) -> None:
    """As is one that cannot be read."""
    with pytest.raises(ConfigError, match="holds no instance"):
        await load_instances(written(tmp_path, ""))
    with pytest.raises(ConfigError, match="cannot be read"):
        await load_instances(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("data", "says", "mend"),
    [
        (b'{"a": 1}\n{"task": "caf\xe9"}\n', "line 2: byte 14 (0xe9) is no UTF-8", "-f LATIN1"),
        ('{"a": 1}\n'.encode("utf-16"), "is UTF-16", "-f UTF-16"),
    ],
)
async def test_another_encoding_is_named_with_what_to_do(
    tmp_path: Path, data: bytes, says: str, mend: str
) -> None:
    """By line and byte, where its first line would do."""
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        await load_instances(path)
    assert says in caught.value.message
    assert mend in caught.value.mend


async def test_files_of_other_kinds_are_told_as_what_they_are(tmp_path: Path) -> None:
    """Each is beside the tasks, and easily taken for them."""
    dropped = tmp_path / "x.dropped.jsonl"
    dropped.touch()
    with pytest.raises(ConfigError) as caught:
        await load_instances(dropped)
    assert "x.jsonl" in caught.value.mend
    results = {"instance_id": "a", "instance_digest": "d", "grade": "resolved"}
    with pytest.raises(ConfigError) as caught:
        await load_instances(written(tmp_path, results))
    assert "turnout eval report" in caught.value.mend


async def test_another_row_has_another_digest(tmp_path: Path) -> None:
    """A result belongs to the row that it was made from."""
    (first,) = await load_instances(written(tmp_path, ROW))
    (second,) = await load_instances(written(tmp_path, {**ROW, "problem_statement": "Other."}))
    assert first.digest != second.digest
