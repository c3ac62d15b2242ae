"""A reply put into the files: what is replaced, what is kept, what is refused."""

from textwrap import dedent

import pytest

from turnout.agent.repair.grafting.graft import Candidate, Rejected, graft
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.grafting.source import Module, parse_module


def module(text: str | bytes, path: str = "code.py") -> Module:
    """Parse a file given as text."""
    data = text if isinstance(text, bytes) else dedent(text).encode()
    parsed = parse_module(path, data)
    assert parsed is not None
    return parsed


def fenced(code: str) -> str:
    """Write code the way a model replies."""
    return f"Here it is:\n```python\n{dedent(code).strip()}\n```\nThat is all."


def grafted(text: str | bytes, reply: str) -> str:
    """Return the one file after a reply that must be accepted."""
    result = graft(fenced(reply), [module(text)], {})
    assert isinstance(result, Candidate)
    return result.files["code.py"].decode()


def refused(text: str, reply: str) -> Rejected:
    """Return why a reply was not accepted."""
    result = graft(reply, [module(text)], {})
    assert isinstance(result, Rejected)
    return result


TWO = """\
    # first
    def one(x):
        return x  # kept?

    def two(x):
        return 2 * x
"""


def test_only_the_named_function_changes() -> None:
    """Comments, blank lines and other functions stay as they are."""
    after = grafted(TWO, "def two(x):\n    return x + 2")
    assert after == dedent(TWO).replace("2 * x", "x + 2")


def test_several_functions_of_one_reply_are_replaced() -> None:
    """One block may correct more than one symbol."""
    after = grafted(TWO, "def one(x):\n    return -x\n\ndef two(x):\n    return 0")
    assert "return -x" in after
    assert "return 0" in after


def test_several_files_are_changed_by_one_reply() -> None:
    """Each definition goes to the file that has it."""
    first = module("def one():\n    return 1\n", "a.py")
    second = module("def two():\n    return 1\n", "b.py")
    reply = fenced("def one():\n    return 2\n\ndef two():\n    return 3")
    result = graft(reply, [first, second], {})
    assert isinstance(result, Candidate)
    assert result.changed == (Target("a.py", "one"), Target("b.py", "two"))
    assert result.files["b.py"] == b"def two():\n    return 3\n"


def test_a_method_is_replaced_inside_its_class() -> None:
    """A reply may leave out the class; the indentation is the file's."""
    before = "class A:\n\tdef f(self):\n\t\treturn 1\n\n\tdef g(self):\n\t\treturn 2\n"
    after = grafted(before, "def g(self):\n    if self:\n        return 3")
    assert after == before.replace("return 2", "if self:\n\t\t\treturn 3")


def test_members_that_a_class_of_the_reply_leaves_out_are_kept() -> None:
    """A class is replaced member by member."""
    before = "class A:\n    x = 1\n\n    def f(self):\n        return 1\n"
    after = grafted(before, "class A:\n    def f(self):\n        return 2")
    assert after == before.replace("return 1", "return 2")


def test_a_class_with_another_base_is_replaced_as_a_whole() -> None:
    """No member may be missing for that."""
    before = "class A:\n    def f(self):\n        return 1\n\n\ny = 1\n"
    after = grafted(before, "class A(dict):\n    def f(self):\n        return 1")
    assert after == before.replace("class A:", "class A(dict):")


def test_a_nested_function_is_replaced_by_its_own_name() -> None:
    """Functions in functions are found too."""
    before = "def outer():\n    def inner(x):\n        return x\n    return inner\n"
    after = grafted(before, "def inner(x):\n    return x + 1")
    assert after == before.replace("return x\n", "return x + 1\n")


def test_a_function_in_a_branch_keeps_its_indentation() -> None:
    """Definitions below `if` and `try` are found too."""
    before = "try:\n  import json\nexcept ImportError:\n  def f():\n    return 1\n"
    after = grafted(before, "def f():\n    return 2")
    assert after == before.replace("return 1", "return 2")


def test_a_constant_is_replaced_and_its_comment_stays() -> None:
    """What follows the value on its line is not part of it."""
    assert grafted("LIMIT = 10  # per page\n", "LIMIT = 11") == "LIMIT = 11  # per page\n"


def test_a_docstring_that_the_reply_drops_is_kept() -> None:
    """Also below a body that stands on the line of its header."""
    before = 'def f(x):\n    """Say\n\n    it."""\n    return x\n'
    assert grafted(before, "def f(x):\n    return -x") == before.replace("return x", "return -x")
    assert grafted(before, "def f(x): return -x") == before.replace("return x", "return -x")


def test_decorators_and_async_that_the_reply_drops_are_kept() -> None:
    """A small model repeats the body and forgets the rest."""
    before = "@cache\n@other(1)\nasync def f(x):\n    return x\n"
    assert grafted(before, "def f(x):\n    return 2") == before.replace("return x", "return 2")


def test_decorators_of_the_reply_take_the_place_of_the_old_ones() -> None:
    """A wrong decorator can be the fault."""
    after = grafted("@cache\ndef f(x):\n    return x\n", "@lru\ndef f(x):\n    return x")
    assert after == "@lru\ndef f(x):\n    return x\n"


def test_a_property_and_its_setter_are_told_apart() -> None:
    """Two definitions share a name and differ by decorator."""
    before = dedent("""\
        class A:
            @property
            def x(self):
                return 1

            @x.setter
            def x(self, value):
                self.y = value
    """)
    getter = grafted(before, "@property\ndef x(self):\n    return self.y")
    setter = grafted(before, "def x(self, value):\n    self.y = -value")
    assert getter == before.replace("return 1", "return self.y")
    assert setter == before.replace("= value", "= -value")


def test_lines_inside_a_string_are_not_indented() -> None:
    """Moving them would change the value."""
    before = "class A:\n    def f(self):\n        return 1\n"
    after = grafted(before, 'def f(self):\n    return """a\nb\n  c"""')
    assert after == before.replace("return 1", 'return """a\nb\n  c"""')


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_endings_are_those_of_the_file(newline: str) -> None:
    """The reply has its own; the file wins."""
    before = newline.join(["def f(x):", "    y = x", "    return y", "", "z = 1"]).encode()
    after = grafted(before, "def f(x):\n    y = 2\n    return y")
    assert after.encode() == before.replace(b"y = x", b"y = 2")


def test_mark_and_encoding_of_the_file_are_kept() -> None:
    """Bytes outside the function are not decoded and encoded again."""
    marked = b"\xef\xbb\xbf# \xc3\xa4\ndef f():\n    return '\xc3\xa4'\n"
    result = graft(fenced("def f():\n    return 'ö'"), [module(marked)], {})
    assert isinstance(result, Candidate)
    assert result.files["code.py"] == marked.replace(b"'\xc3\xa4'", b"'\xc3\xb6'")
    latin = b"# coding: latin-1\nx = '\xe4'; y = 1 # \xe4\n"
    result = graft(fenced("y = 'ö'"), [module(latin)], {})
    assert isinstance(result, Candidate)
    assert result.files["code.py"] == latin.replace(b"y = 1", b"y = '\xf6'")


def test_text_that_the_encoding_cannot_hold_is_refused() -> None:
    """Nothing is written in another encoding."""
    latin = module(b"# coding: latin-1\ny = 1\n")
    result = graft(fenced("y = '\N{SNOWMAN}'"), [latin], {})
    assert isinstance(result, Rejected)
    assert result.why == "broken"


def test_new_imports_go_below_the_old_ones() -> None:
    """Those of the reply, and a standard module that it uses without importing it."""
    before = '"""Doc."""\nimport os\n\ndef f(x):\n    return x\n'
    after = grafted(
        before, "from functools import reduce\n\ndef f(x):\n    return reduce(math.gcd, x)"
    )
    assert after.startswith('"""Doc."""\nimport os\nfrom functools import reduce\nimport math\n\n')


def test_imports_that_the_file_has_or_the_code_does_not_use_are_left_out() -> None:
    """A reply often imports the function that it corrects."""
    before = "import os\n\ndef f(x):\n    return x\n"
    after = grafted(before, "import os, re\nfrom code import f\n\ndef f(x):\n    return os.sep")
    assert after == before.replace("return x", "return os.sep")


def test_a_variable_of_another_function_is_no_import() -> None:
    """Only what the module itself has counts."""
    before = "def g():\n    re = 1\n\ndef f(x):\n    return x\n"
    assert "import re\n" in grafted(before, "import re\n\ndef f(x):\n    return re.escape(x)")


def test_a_helper_that_the_new_code_uses_comes_along() -> None:
    """It stands behind the function that uses it."""
    before = "def f(x):\n    return x\n\ny = 1\n"
    after = grafted(
        before, "def g(x):\n    return 1\n\ndef unused():\n    pass\n\ndef f(x):\n    return g(x)"
    )
    assert after == "def f(x):\n    return g(x)\n\n\ndef g(x):\n    return 1\n\ny = 1\n"


def test_a_reply_that_repeats_the_code_is_unchanged() -> None:
    """Comments, layout, a lost docstring and lost decorators make no difference."""
    before = '@cache\ndef f(x):\n    """Doc."""\n    return x\n'
    assert refused(before, fenced("def f(x):\n    # better\n    return (x)")).why == "unchanged"


def test_a_placeholder_is_no_correction() -> None:
    """A body of dots does not replace code."""
    assert refused("def f(x):\n    return x\n", fenced("def f(x):\n    ...")).why == "unchanged"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I do not know.", "no_code"),
        ("```python\ndef f(:\n```", "no_code"),
        ("```python\ndef g(x):\n    return 1\n```", "unknown"),
        ("```python\n# file: tests/test_code.py\ndef g():\n    return 1\n```", "unknown"),
        ("", "no_code"),
    ],
)
def test_a_reply_without_a_known_definition_is_refused(reply: str, why: str) -> None:
    """Nothing is guessed, and no file is made."""
    assert refused("def f(x):\n    return x\n", reply).why == why


def test_a_block_that_names_its_file_is_looked_for_there() -> None:
    """Two files may define one name."""
    first = module("def f():\n    return 1\n", "a.py")
    second = module("def f():\n    return 1\n", "pkg/b.py")
    result = graft("```python\n# file: pkg/b.py\ndef f():\n    return 2\n```", [first, second], {})
    assert isinstance(result, Candidate)
    assert list(result.files) == ["pkg/b.py"]


def test_of_two_methods_of_one_name_the_suspected_one_is_meant() -> None:
    """The failure says which class."""
    text = "class A:\n    def f(self): return 1\nclass B:\n    def f(self): return 1\n"
    result = graft(
        fenced("def f(self):\n    return 2"), [module(text)], {}, [Target("code.py", "B.f")]
    )
    assert isinstance(result, Candidate)
    assert result.changed == (Target("code.py", "B.f"),)


def test_a_search_and_replace_edit_needs_exactly_one_match() -> None:
    """Files that are no Python are edited by text, with their own line endings."""
    reply = "<<<<<<< SEARCH\nb\nc\n=======\nB\n>>>>>>> REPLACE"
    once = graft(reply, [], {"x.txt": b"a\r\nb\r\nc\r\n"})
    twice = graft(reply, [], {"x.txt": b"b\nc\nb\nc\n"})
    assert isinstance(once, Candidate)
    assert once.files["x.txt"] == b"a\r\nB\r\n"
    assert isinstance(twice, Rejected)


def test_a_reply_nested_deeper_than_people_write_is_no_code() -> None:
    """Whatever walks it would exhaust the stack."""
    assert refused("x = 1\n", fenced("x = 1" + " + 1" * 900)).why == "no_code"


@pytest.mark.parametrize("text", ["(" * 9_000, "-" * 90_000 + "1", "a" + ".b" * 90_000, "x\0"])
def test_a_hostile_file_is_not_parsed(text: str) -> None:
    """Depth and size are bounded."""
    assert parse_module("code.py", text.encode()) is None
    assert parse_module("code.py", b"#" * 300_000) is None
