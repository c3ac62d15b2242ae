import json

from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from turnout.sandbox.declared.read import declared

KEYS = st.sampled_from(
    [
        *("project", "tool", "poetry", "dependencies", "group", "test", "version", "extras"),
        *("optional-dependencies", "dependency-groups", "include-group", "markers", "python"),
        *("package", "packages", "source", "registry", "name", "default", "git", "path"),
    ]
)
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

FILES = (
    *("requirements.txt", "pyproject.toml", "setup.cfg", "Pipfile"),
    *("uv.lock", "poetry.lock", "pylock.toml", "Pipfile.lock"),
)
ODD = st.text(max_size=8) | st.lists(PIECES | NAMES, max_size=4).map("".join)
TABLES = st.recursive(
    ODD | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | ODD, inner, max_size=4),
    max_leaves=12,
)


@given(st.text() | st.lists(PIECES | NAMES).map("".join))
def test_whatever_a_file_holds_only_plain_names_are_taken(text):
    """No input raises, and nothing that is taken is an option, a URL or a path."""
    found = declared(dict.fromkeys(FILES, text), built=[text])
    for requirement in (*found.requirements, *found.pins):
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


@given(st.dictionaries(KEYS | ODD, TABLES, max_size=5), st.sampled_from(FILES))
def test_no_shape_of_a_table_is_too_odd(table, path):
    """Whatever stands where something else was expected, only plain names are taken."""
    text = json.dumps(table) if path == "Pipfile.lock" else as_toml(table)
    found = declared({path: text})
    for requirement in (*found.requirements, *found.pins):
        assert Requirement(requirement).url is None


def as_toml(value: object) -> str:
    """Write a table as TOML, inline below its first level."""
    if isinstance(value, dict):
        return "".join(f"{key(name)} = {inline(one)}\n" for name, one in value.items())
    return ""


def inline(value: object) -> str:
    """Write a value of TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key(name)} = {inline(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return key(value) if isinstance(value, str) else json.dumps(value)


def key(name: str) -> str:
    """Write a text of TOML."""
    return json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
