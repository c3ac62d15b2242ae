"""What mining keeps on disk."""

import json
from pathlib import Path

import pytest

from turnout.core.json import JsonObject
from turnout.errors import ConfigError, ConflictError
from turnout.evals.mine.output import MinedFile
from turnout.evals.mine.reasons import Dropped


def row(name: str, size: str = "2-5") -> JsonObject:
    """Return the least of a row."""
    return {"instance_id": name, "fix_commit": f"c-{name}", "difficulty": size}


def test_what_was_decided_is_known_again(tmp_path: Path) -> None:
    """Rows for good, what was dropped as long as the same is asked for."""
    path = tmp_path / "tasks.jsonl"
    out = MinedFile(path, asked="a")
    out.keep(row("one"))
    out.keep(row("two", "1"))
    out.drop("c-3", "Fix it", Dropped("flaky", "odd"))
    out.drop("c-4", "Logo", Dropped("not_a_fix"))
    assert json.loads(path.read_text().splitlines()[0]) == row("one")
    same, other = MinedFile(path, asked="a"), MinedFile(path, asked="b")
    assert (same.kept, dict(same.sizes)) == (2, {"2-5": 1, "1": 1})
    assert same.commits == {"c-one", "c-two", "c-3"}
    assert dict(same.reasons) == {"flaky": 1}
    assert other.commits == {"c-one", "c-two"}
    assert json.loads(same.dropped_path.read_text())["detail"] == "odd"


def test_a_crash_in_the_middle_of_a_line_is_cut_off(tmp_path: Path) -> None:
    """That row is mined again."""
    path = tmp_path / "tasks.jsonl"
    MinedFile(path, asked="a").keep(row("one"))
    with path.open("a") as file:
        file.write('{"instance_id": "tw')
    out = MinedFile(path, asked="a")
    out.keep(row("three"))
    assert MinedFile(path, asked="a").ids == {"one", "three"}


def test_one_process_at_a_time_fills_a_file(tmp_path: Path) -> None:
    """Its folder is made; another one is told at once."""
    path = tmp_path / "new" / "tasks.jsonl"
    out = MinedFile(path, asked="a")
    with out.alone():
        out.keep(row("one"))
        with pytest.raises(ConflictError, match="Another process"), out.alone():
            pass
    with out.alone():
        out.keep(row("two"))
    nowhere = MinedFile(tmp_path / "other" / "tasks.jsonl", asked="a")
    (tmp_path / "other").touch()
    with pytest.raises(ConfigError, match="cannot be written"), nowhere.alone():
        pass


def test_nothing_is_left_behind_of_what_could_not_begin(tmp_path: Path) -> None:
    """What was dropped stays, once something was."""
    out = MinedFile(tmp_path / "tasks.jsonl", asked="a")
    with out.alone():
        pass
    assert list(tmp_path.iterdir()) == []
    with out.alone():
        out.drop("c" * 40, "Fix it", Dropped("no_test"))
    assert [each.name for each in tmp_path.iterdir()] == ["tasks.dropped.jsonl"]


@pytest.mark.parametrize("text", ["notes", '{"a": 1}\n', "notes\nmore", "\0\n"])
def test_a_file_of_others_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    """It is an error to name one."""
    path = tmp_path / "notes"
    path.write_text(text)
    with pytest.raises(ConfigError, match="mining did not write"):
        MinedFile(path, asked="a")
    assert path.read_text() == text
