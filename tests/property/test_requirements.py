from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from turnout.sandbox.workspace.requirements import declared

NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?", fullmatch=True)
PIECES = st.sampled_from(
    [
        "-e",
        "-r",
        "--index-url",
        "https://x/y",
        "git+ssh://x",
        "@",
        "file:///x",
        " ",
        "\n",
        "\\\n",
        "[",
        "]",
        ";",
        "#",
        "==1",
        "\0",
        "\r",
        "=",
        ".",
        "/",
        "../a",
        "\u2028",
        "é",
        "foo",
    ]
)


@given(st.text() | st.lists(PIECES | NAMES).map("".join))
def test_whatever_a_file_holds_only_plain_names_are_taken(text):
    """No input raises, and nothing that is taken is an option, a URL or a path."""
    found = declared({"requirements.txt": text, "pyproject.toml": text})
    for requirement in found.requirements:
        parsed = Requirement(requirement)
        assert parsed.url is None
        assert requirement[0].isalnum()
        assert requirement.isprintable()


@given(NAMES, st.sampled_from(["", "==1.0", ">=2,<3", "~=4.1", "!=5"]))
def test_a_plain_name_is_taken_from_either_kind_of_file(name, specifier):
    """The same line means the same in both kinds of file."""
    line = f"{name}{specifier}"
    from_file = declared({"requirements.txt": f"{line}\n"})
    from_table = declared({"pyproject.toml": f'[project]\ndependencies = ["{line}"]\n'})
    assert from_file.requirements == from_table.requirements
    assert len(from_file.requirements) == 1
