"""The code of a prompt, cut to what a small model can hold."""

import ast
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from turnout.agent.repair.grafting.excerpt import Region
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.grafting.source import (
    Definition,
    FunctionNode,
    Module,
    docstring_of,
    first_line,
    parse_module,
)
from turnout.agent.repair.plain import as_text
from turnout.agent.repair.reading import named_tests, used_fixtures
from turnout.agent.repair.showing.marks import marked
from turnout.agent.repair.showing.windows import window
from turnout.agent.repair.suspects import Suspects

__all__ = [
    "shown_code",
    "shown_definition",
    "shown_lines",
    "shown_tests",
    "shown_texts",
    "statement_text",
    "without_body",
]

_WHOLE = 3_000
"""Bytes of a file up to which it is shown whole."""

_MOST_TESTS = 5
"""Failing tests of a long file that are shown."""

_LEAST = 200
"""Characters with which it is worth to begin one more test."""

_DOCSTRING = 240
"""Characters of a docstring up to which it is shown whole."""

_MOST = 12
"""Suspects of long files that are shown."""


def shown_code(suspects: Suspects, others: Mapping[str, bytes], limit: int) -> str:
    """Return the suspected files under their names in at most about `limit` characters.

    A short file is shown whole; of a long one the suspects, most suspected first as far as there
    is room, and the signatures of the rest. Files without a suspect are shown only where there is
    room for all that was read.
    """
    left = limit
    pieces: list[str] = []
    short = [m for m in suspects.modules if len(m.data) <= _WHOLE]
    room = limit - sum(len(m.data) for m in short if suspects.is_suspected(m))
    all_fit = sum(len(module.data) for module in suspects.modules) <= limit
    chosen = _chosen(suspects, room)
    if others:
        told = shown_texts(others, suspects.lines, left // 2 if suspects.modules else left)
        pieces.append(told)
        left -= len(told)
    for module in suspects.modules:
        text = module.text(0, len(module.data))
        if module not in short:
            text = _excerpt(module, chosen.get(module.path, []), left)
        if text.strip() and len(text) <= left and (all_fit or suspects.is_suspected(module)):
            pieces.append(_piece(module.path, text, "python"))
            left -= len(text)
    return "\n\n".join(pieces)


def shown_texts(texts: Mapping[str, bytes], lines: Mapping[str, Sequence[int]], limit: int) -> str:
    """Return files of any language under their names, the first ones with the most room.

    What is too long for that is shown around the `lines` in question.
    """
    left = limit
    pieces: list[str] = []
    for path, data in texts.items():
        text = as_text(data).replace("\r\n", "\n")
        room = left if len(texts) == 1 else left * 2 // 3
        if len(text) > room:
            text = window(text.split("\n"), lines.get(path, ()), room)
        pieces.append(_piece(path, text, ""))
        left -= len(text)
    return "\n\n".join(pieces)


def _chosen(suspects: Suspects, room: int) -> Mapping[str, list[str]]:
    """Return the suspects of long files that fit in `room` characters, by file."""
    modules = {module.path: module for module in suspects.modules}
    chosen: dict[str, list[str]] = {}
    for target in suspects.targets[:_MOST]:
        module = modules[target.path]
        sizes = {each.name: each.end - each.start for each in module.definitions}
        if len(module.data) > _WHOLE and sizes.get(target.name, room + 1) <= room:
            chosen.setdefault(target.path, []).append(target.name)
            room -= sizes[target.name]
    return chosen


def shown_tests(
    tests: Sequence[Module],
    failed: Sequence[str],
    lines: Mapping[str, Sequence[int]],
    limit: int,
) -> str:
    """Return the test files whole where they fit in `limit` characters, else what fails in them.

    What is too long for that too is shown around the `lines` in question. Of a conftest file it is
    the fixtures that the failing tests have.
    """
    failing = [each for module in tests for each in named_tests(module, failed)]
    left = limit
    pieces: list[str] = []
    for module in tests:
        text = module.text(0, len(module.data))
        if failing and module.path.rpartition("/")[2] == "conftest.py":
            fixtures = used_fixtures(module, failing)
            text = _windows(module, fixtures, lines.get(module.path, ()), left)
        elif len(text) > left:
            mine = named_tests(module, failed)[:_MOST_TESTS]
            text = _windows(module, mine, lines.get(module.path, ()), left)
        if text.strip():
            pieces.append(_piece(module.path, text, "python"))
            left -= len(text)
    return "\n\n".join(pieces)


def statement_text(suspects: Suspects, target: Target, region: Region) -> str:
    """Return the statement of a region that is in question, at the left margin."""
    module, _ = _found(suspects, target)
    return textwrap.dedent(_marked(module, Region(region.begin, region.end), {})).rstrip()


def _windows(module: Module, shown: Sequence[Definition], wanted: Sequence[int], limit: int) -> str:
    """Return definitions, those with `wanted` lines first, each around these if it is long."""
    spans = [(each.node.lineno, each.node.end_lineno or each.node.lineno) for each in shown]
    asked = [span for span in spans if any(span[0] <= n <= span[1] for n in wanted)]
    texts: list[str] = []
    for first, last in dict.fromkeys([*asked, *spans]):
        if limit < _LEAST:
            break
        rows = module.lines(first, last).replace("\r\n", "\n").rstrip("\n").split("\n")
        inside = [n - first + 1 for n in wanted if first <= n <= last]
        text = textwrap.dedent("\n".join(rows))
        if len(text) > limit:
            text = window(rows, [*inside, 1] if inside else [1], limit)
        texts.append(text)
        limit -= len(text)
    return "\n\n".join(texts)


def shown_definition(suspects: Suspects, target: Target, errors: Mapping[int, str]) -> str:
    """Return a definition, and the heads of the classes and functions around it.

    The lines of the file in which there were `errors` are marked.
    """
    module, each = _found(suspects, target)
    around = [other for other in module.definitions if each.name.startswith(f"{other.name}.")]
    heads = [f"{_signature(module, other)}\n" for other in around if other.start < each.start]
    return _piece(target.path, "".join([*heads, _brief(module, each, errors)]), "python")


def shown_lines(
    suspects: Suspects, target: Target, region: Region, errors: Mapping[int, str]
) -> str:
    """Return some lines of a definition, at the left margin, those with `errors` marked."""
    module, _ = _found(suspects, target)
    text = textwrap.dedent(_marked(module, region, errors))
    place = f"{target.path}, lines {region.first} to {region.last}, in `{target.name}`"
    return _piece(place, text, "python")


def without_body(suspects: Suspects, target: Target) -> Suspects | None:
    """Return the suspects with the body of one function left out; None where it is no function."""
    module, each = _found(suspects, target)
    cut = _cut(module, each)
    if cut is None:
        return None
    modules = (cut if other is module else other for other in suspects.modules)
    return replace(suspects, modules=tuple(modules))


def _found(suspects: Suspects, target: Target) -> tuple[Module, Definition]:
    """Return the last definition of a name: the one that holds at the end of the file."""
    module = next(each for each in suspects.modules if each.path == target.path)
    return module, [each for each in module.definitions if each.name == target.name][-1]


def _marked(module: Module, region: Region, errors: Mapping[int, str]) -> str:
    text = module.lines(region.first, region.last).replace("\r\n", "\n")
    inside = {line - region.first + 1: error for line, error in errors.items()}
    return "".join(marked(text.splitlines(keepends=True), inside))


def _brief(module: Module, each: Definition, errors: Mapping[int, str]) -> str:
    """Return a definition with its indentation, of its docstring the first paragraph only."""
    node = each.node
    text = each.indent + module.text(each.start, each.end)
    if isinstance(node, FunctionNode):
        text = _marked(module, Region(first_line(node), node.end_lineno or node.lineno), errors)
    doc = docstring_of(node) if isinstance(node, FunctionNode | ast.ClassDef) else None
    if doc is None or doc.lineno == node.lineno:
        return text
    whole = module.lines(doc.lineno, doc.end_lineno or doc.lineno).replace("\r\n", "\n")
    said = whole.strip()
    first, gap, _ = said.partition("\n\n")
    if not gap or len(whole) <= _DOCSTRING:
        return text
    quote = said[-3:] if said.endswith(('"""', "'''")) else ""
    kept = f"{whole[: len(whole) - len(whole.lstrip())]}{first}{quote}\n" if quote else ""
    return text.replace(whole, kept, 1)


def _cut(module: Module, each: Definition) -> Module | None:
    if not isinstance(each.node, FunctionNode):
        return None
    body = each.node.body[1:] if docstring_of(each.node) else each.node.body
    if not body:
        return None
    start = module.offset(first_line(body[0]), body[0].col_offset)
    return parse_module(
        module.path, module.data[:start] + b"...  # to be written" + module.data[each.end :]
    )


def _piece(path: str, text: str, language: str) -> str:
    body = text.replace("\r\n", "\n").rstrip("\n")
    return f"# file: {path}\n```{language}\n{body}\n```"


def _excerpt(module: Module, names: Sequence[str], limit: int) -> str:
    """Return the definitions of `names` whole, most suspected first as far as they fit."""
    rest = sum(map(len, _outline(module, frozenset(), rest=True))) <= limit // 4
    left = limit - sum(map(len, _outline(module, frozenset(), rest=rest)))
    whole: set[str] = set()
    sizes = {each.name: each.end - each.start for each in module.definitions}
    for name in names:
        if sizes[name] <= left:
            whole.add(name)
            left -= sizes[name]
    return "".join(_outline(module, frozenset(whole), rest=rest)) if whole else ""


def _outline(module: Module, whole: frozenset[str], *, rest: bool) -> Iterator[str]:
    """Yield the imports, the definitions of `whole`, and if `rest` a line for each other."""
    for node in module.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield module.lines(node.lineno, node.end_lineno or node.lineno)
    done = -1
    for each in module.definitions:
        if each.start < done:
            continue
        if each.name in whole:
            yield f"\n{each.indent}{module.text(each.start, each.end)}\n"
            done = each.end
        elif any(name.startswith(f"{each.name}.") for name in whole):
            yield f"\n{_signature(module, each)}\n"
        elif rest and isinstance(each.node, FunctionNode | ast.ClassDef):
            yield f"{_signature(module, each)} ...\n"
            done = each.end if isinstance(each.node, FunctionNode) else done


def _signature(module: Module, each: Definition) -> str:
    """Return `def name(parameters):` or `class Name(Base):` as the file has it."""
    node = each.node
    first = node.body[0] if isinstance(node, FunctionNode | ast.ClassDef) else node
    text = module.text(each.body, module.offset(first.lineno, first.col_offset))
    return each.indent + text.rpartition(":")[0].rstrip() + ":"
