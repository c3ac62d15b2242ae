"""What failing tests of languages without a syntax tree here lead to, by names and by text."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import join, normpath
from typing import Final

from turnout.agent.repair.frames import Frame
from turnout.errors import ToolError
from turnout.sandbox.base import Sandbox

__all__ = [
    "SOURCE_SUFFIXES",
    "as_text",
    "called_names",
    "defining",
    "failing_tests",
    "imported",
    "mentioned",
    "read_bytes",
    "read_texts",
]

SOURCE_SUFFIXES: Final = frozenset(
    [
        "c",
        "cc",
        "cpp",
        "cs",
        "cjs",
        "dart",
        "ex",
        "exs",
        "go",
        "h",
        "hpp",
        "java",
        "js",
        "jsx",
        "kt",
        "mjs",
        "php",
        "rb",
        "rs",
        "scala",
        "swift",
        "ts",
        "tsx",
    ]
)
"""Endings of source files in other languages than Python."""

_MAX_OTHERS = 6
_MAX_BYTES = 131_072
_MAX_NAMES = 20
_MAX_HITS = 100

_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_RELATIVE = re.compile(r"""["'](\.{1,2}/[^"'\n]{1,200})["']""")
_CALLED = re.compile(r"\b([A-Za-z_]\w{2,60})\(")
_TEST_MARK = re.compile(r"(?:[._-](?:test|spec|tests)|Tests?|^test_)(?=\.|$)|^test_")
_KEYWORDS = frozenset(
    [
        "describe",
        "expect",
        "test",
        "assert",
        "require",
        "import",
        "function",
        "equal",
        "deepEqual",
        "strictEqual",
    ]
)


def failing_tests(places: Sequence[Frame], tests: Sequence[str]) -> list[str]:
    """Return the test files that an output names; all of them where it names none."""
    named = {place.path for place in places}
    return [path for path in tests if path in named] or [
        path for path in tests if path.rpartition(".")[2] in SOURCE_SUFFIXES
    ]


def imported(tests: Mapping[str, bytes], paths: Sequence[str]) -> Iterator[str]:
    """Yield the files that tests import by a relative path, and the namesakes of tests."""
    known = {path.rpartition(".")[0]: path for path in reversed(paths)}
    whole = frozenset(paths)
    for test, data in tests.items():
        folder = test.rpartition("/")[0]
        for told in _RELATIVE.findall(as_text(data)):
            path = normpath(join(folder, told))
            found = path if path in whole else known.get(path.removesuffix(".js"))
            if found := found or known.get(f"{path}/index"):
                yield found
        stem = _TEST_MARK.sub("", test.rpartition("/")[2].rpartition(".")[0])
        yield from (path for path in paths if path.rpartition("/")[2].rpartition(".")[0] == stem)


def mentioned(paths: Sequence[str], words: str, *, any_name: bool) -> list[str]:
    """Return the files whose name occurs in `words`; by the stem alone if `any_name`."""
    found = []
    for path in paths:
        name = path.rpartition("/")[2]
        stem = name.partition(".")[0]
        said = name in words or (any_name and len(stem) > 2 and stem in words)
        if said and not name.startswith("."):
            found.append(path)
    return found


def called_names(text: str) -> list[str]:
    """Return the names that a text calls, in its order."""
    return [name for name in dict.fromkeys(_CALLED.findall(text)) if name not in _KEYWORDS]


async def defining(
    sandbox: Sandbox, names: Sequence[str], paths: Sequence[str], *, glob: str = "**/*"
) -> list[str]:
    """Return the files of `paths` in which one of the first `names` is likely defined."""
    if not names:
        return []
    wanted = "|".join(map(re.escape, names[:_MAX_NAMES]))
    words = "function|const|let|var|class|def|func|fn|sub|struct|interface|type"
    pattern = rf"\b(?:{words})\s+(?:\([^)]*\)\s*)?(?:{wanted})\b"
    try:
        hits = await sandbox.search(pattern, glob=glob, limit=_MAX_HITS)
    except ToolError:
        return []
    known = frozenset(paths)
    return list(dict.fromkeys(hit.path for hit in hits if hit.path in known))


async def read_bytes(sandbox: Sandbox, path: str, limit: int) -> bytes | None:
    """Return a whole file; None where it is larger than `limit` or no regular file."""
    try:
        blob = await sandbox.read(path, limit=limit)
    except ToolError:
        return None
    return blob.data if blob.size <= limit else None


async def read_texts(
    sandbox: Sandbox, paths: Iterable[str], *, most: int = _MAX_OTHERS
) -> Mapping[str, bytes]:
    """Return the first `most` of these files that are text of no great length."""
    found: dict[str, bytes] = {}
    for path in paths:
        if len(found) >= most:
            break
        data = await read_bytes(sandbox, path, _MAX_BYTES)
        if data and not _BINARY.search(data):
            found[path] = data
    return found


def as_text(data: bytes) -> str:
    """Return bytes as text, whatever they are."""
    return data.decode(errors="replace")
