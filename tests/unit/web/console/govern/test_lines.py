"""On which line of a policy something is wrong."""

import pytest
from tests.unit.web.console.govern.governed import Governed
from tests.unit.web.console.seen import words

from turnout.web.console.govern.lines import around, line_of, line_of_error

TEXT = """objective = "cost"

[tools]
mode = "dry_run"
allow = [
  "read_file",
  "a = b",
]

[policies.team.session]
"max_calls" = 3
pool = { providers = ["p"] }
"""


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("This is not valid TOML: Unclosed array (at line 5, column 1).", 5),
        ("This is not valid TOML: Unclosed array (at line 500, column 1).", 13),
        ("This is not valid TOML: Expected a value (at end of document).", 12),
        ("`policy.objective` is 'fastest'.", 1),
        ("`policy.tools.mode` is 'x'.", 4),
        ("`policy.tools.allow[1]` must not be empty.", 5),
        ("`policies.team.session.max_calls` must be more.", 11),
        ("`policies.team.session.pool.providers` is empty.", 12),
        ("`policy.tools.by_kind` is no table.", 3),
        ("`name` is not 'team'.", 0),
        ("Something else.", 0),
        ("`\u202e` and `[` and ``.", 0),
    ],
)
def test_an_error_is_at_the_line_that_it_names(said: str, line: int) -> None:
    """By its place, its key, or the nearest table around that."""
    assert line_of_error(TEXT, said) == line


def test_a_key_is_found_without_the_tables_around_the_text() -> None:
    """As findings name it."""
    assert line_of(TEXT, "tools.mode") == 4
    assert line_of("", "tools.mode") == 0


def test_a_line_is_shown_with_those_beside_it() -> None:
    """None of them wider than a page."""
    shown = around("a\nb\n" + "c" * 10_000 + "\nd\ne\nf", 3)
    assert [(one.number, len(one.text), one.wrong) for one in shown] == [
        (1, 1, False),
        (2, 1, False),
        (3, 200, True),
        (4, 1, False),
        (5, 1, False),
    ]
    assert around("a", 0) == ()


def test_the_editor_says_on_which_line_a_draft_is_wrong() -> None:
    """While it is typed and when it is saved, beside the number and with the line itself."""
    boss = Governed().person()
    text = 'objective = "cost"\n\n[tools]\nmode = "<b>"\n'
    fields = {"name": "team", "text": text, "expected": 0, "is_new": "1"}
    saved = boss.send("/policies/_new", **fields)
    assert saved.status_code == 400
    assert "Line 4: policy.tools.mode is" in words(saved)
    assert '<li value="4" class="wrong"><code>mode = &#34;&lt;b&gt;&#34;</code>' in saved.text
    assert "<mark>4</mark>" in saved.text
    assert 'aria-invalid="true"' in saved.text
    fields["text"] = text.replace("<b>", "enforce")
    checked = boss.send("/policies/_check", **fields)
    assert "Line 3: tools.allow is empty" in words(checked)
    assert "<mark>" not in checked.text
