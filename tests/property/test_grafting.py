"""Whatever a file looks like, grafting changes the one definition and no other byte."""

import ast

from hypothesis import given
from hypothesis import strategies as st

from turnout.agent.repair.grafting.graft import Candidate, graft
from turnout.agent.repair.grafting.source import parse_module

NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])
INDENTS = st.sampled_from(["  ", "    ", "\t"])
NOISE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
VALUES = st.one_of(st.integers().map(repr), st.text(max_size=8).map(repr))


@st.composite
def surroundings(draw: st.DrawFn) -> str:
    """Draw lines that may stand before or after a function."""
    pieces = st.one_of(
        st.just(""),
        NOISE.map(lambda text: f"# {text}"),
        VALUES.map(lambda value: f"x{len(value)} = {value}  # \N{SNOWMAN}"),
        VALUES.map(lambda value: f"def g{len(value)}(): return {value}"),
        st.just("\x0c"),
    )
    return "\n".join(draw(st.lists(pieces, max_size=5)))


@given(
    before=surroundings(),
    after=surroundings(),
    newline=NEWLINES,
    indent=INDENTS,
    in_class=st.booleans(),
    mark=st.booleans(),
    value=VALUES,
)
def test_every_byte_outside_the_function_stays(
    before: str, after: str, newline: str, indent: str, in_class: bool, mark: bool, value: str
) -> None:
    """Prefix and suffix are the same bytes, and the file still parses to what was asked."""
    lines = ["def target(a):", f"{indent}if a:", f"{indent * 2}return target", f"{indent}return a"]
    if in_class:
        lines = ["class Owner:", *(indent + line for line in lines)]
    head, tail = lines[: 1 + in_class], lines[1 + in_class :]
    prefix = "\n".join([before, *head[:in_class], ""]).replace("\n", newline)
    prefix += indent if in_class else ""
    body = newline.join([head[-1].strip(), *tail])
    suffix = f"\n{after}\n".replace("\n", newline)
    data = (b"\xef\xbb\xbf" if mark else b"") + (prefix + body + suffix).encode()
    module = parse_module("code.py", data)
    assert module is not None
    reply = f"```python\ndef target(a):\n    if not a:\n        return {value}\n    return 1\n```"
    result = graft(reply, [module], {})
    assert isinstance(result, Candidate)
    new = result.files["code.py"]
    start = len(data) - len((body + suffix).encode())
    assert new[:start] == data[:start]
    assert new.endswith(suffix.encode())
    wanted = ast.parse(f"def target(a):\n    if not a:\n        return {value}\n    return 1")
    found = [node for node in ast.walk(ast.parse(new)) if getattr(node, "name", "") == "target"]
    assert [ast.dump(node) for node in found] == [ast.dump(wanted.body[0])]


@given(st.text(max_size=400))
def test_no_reply_breaks_a_file(reply: str) -> None:
    """Any text is either refused or leaves a file that parses."""
    module = parse_module("code.py", b"def f(x):\n    return x\n\nLIMIT = 3\n")
    assert module is not None
    result = graft(f"```\n{reply}\n```", [module], {})
    if isinstance(result, Candidate):
        ast.parse(result.files["code.py"])
