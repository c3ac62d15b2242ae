"""Arguments as models write them."""

import pytest

from turnout.agent.tools.arguments import did_you_mean, read_arguments
from turnout.agent.tools.edit_file import EditFile
from turnout.agent.tools.read_file import ReadFile
from turnout.errors import ToolError


@pytest.mark.cases
@pytest.mark.parametrize(
    "raw",
    [
        '{"path": "a", }',
        '{"path": "a"}}',
        '```json\n{"path": "a"}\n```',
        '"{\\"path\\": \\"a\\"}"',
        '{"file_path": "a"}',
        '{"path": "a", "why": "to see it"}',
        '{"path": "a", "offset": null}',
    ],
)
def test_a_certain_meaning_is_read(raw: str) -> None:
    """Slips that leave no doubt are mended."""
    assert read_arguments(ReadFile.spec, raw).text("path") == "a"


@pytest.mark.cases
def test_a_raw_line_break_in_a_string_is_text() -> None:
    """Models forget to escape line breaks."""
    raw = '{"path": "a", "old": "x\ny,}", "new": ""}'
    assert read_arguments(EditFile.spec, raw).text("old") == "x\ny,}"


def test_a_number_in_quotes_is_a_number() -> None:
    """`"12"` where an integer is declared can only mean 12."""
    assert read_arguments(ReadFile.spec, '{"path": "a", "offset": "12"}').number("offset", 1) == 12


@pytest.mark.cases
@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        ("", "`path` is missing\nYou sent: nothing"),
        ("{}", "`path` is missing"),
        ("null", "`path` is missing"),
        ('{"path": "a', 'You sent: {"path": "a'),
        ('{"path": "a"} and {"path": "b"}', "not valid JSON"),
        ('{"path": "a", "path": "b"}', "given twice"),
        ('["a"]', "not a JSON object"),
        ('{"path": ["a"]}', "`path` must be a string"),
        ('{"path": "a", "offset": true}', "`offset` must be a whole number"),
        ('{"path": "a", "offfset": 3}', "Did you mean `offset`?"),
        ('{"path": "\\ud800"}', "surrogate"),
        ('{"path": "a\\u0000b"}', "NUL"),
        ('{"path": "' + '\\"' * 100_000, "not valid JSON"),
        ("```" + "\n" * 100_000, "not valid JSON"),
        ("[" * 100_000, "You sent: [[["),
        ('{"path": ' + "9" * 10_000 + "}", "You sent"),
    ],
)
def test_an_uncertain_meaning_is_refused_with_what_was_sent(raw: str, hint: str) -> None:
    """The model reads what was wrong, the start of what it sent, and what to send."""
    with pytest.raises(ToolError) as refused:
        read_arguments(ReadFile.spec, raw)
    assert hint in str(refused.value)
    assert '{"path": "<string>"' in str(refused.value)
    assert len(str(refused.value)) < 700


@pytest.mark.parametrize("name", ["readfile", "Read_File", "functions.read_file", "read_fil"])
def test_a_name_that_is_nearly_right_is_recognised(name: str) -> None:
    """The hint names the tool that was meant."""
    assert "`read_file`" in did_you_mean(name, ["run", "read_file"])


def test_a_name_that_resembles_nothing_gets_no_hint() -> None:
    """A wrong hint is worse than none."""
    assert did_you_mean("browse", ["run", "read_file"]) == ""
