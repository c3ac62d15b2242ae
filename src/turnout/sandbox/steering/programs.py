"""Which files of a workspace say what a shell command does: scripts, recipes, programs."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

__all__ = ["Said", "reached"]

_RECIPES: Final[Mapping[str, frozenset[str]]] = {
    "make": frozenset({"GNUmakefile", "makefile", "Makefile"}),
    "tox": frozenset({"tox.ini"}),
    "nox": frozenset({"noxfile.py"}),
    "just": frozenset({"justfile", "Justfile", ".justfile"}),
    "task": frozenset({"Taskfile.yml", "Taskfile.yaml"}),
    "rake": frozenset({"Rakefile"}),
}
"""Files that say what a program does which a command names; all of such a file counts."""
_NODE = ("npm", "pnpm", "yarn", "bun")
_BY_TARGET = _RECIPES["make"] | _RECIPES["just"]

_SCRIPTS = frozenset({"", ".sh", ".bash", ".zsh", ".ksh"})
"""Suffixes of what runs tests wherever it is named; another file may be the code under test."""

_VARIABLE = re.compile(r"\$[({](\w+)[)}]")
_PARTS = re.compile(r"[;&|()\n]+")
_WORD = re.compile(r"[^\s;&|()<>'\"=`]+")
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|nodejs|deno|bun|tsx|ts-node|ruby|perl|php|lua|rscript|julia"
    r"|\$py|bash|sh|dash|ksh|zsh|source|run|\.)[\d.]*"
)
"""What runs the file that is named next; `run` is that of coverage, uv, poetry and the like."""
_BEFORE = re.compile(
    r"[^a-z].*|env|time|exec|command|nice|sudo|timeout|xvfb-run|if|then|else|do|not"
)
"""What may stand before the program of a command: settings, options, numbers, wrappers."""
_SKIPPING = frozenset({"-W", "-X"})
_TAKING = frozenset({"-r", "--require", "--import", "--loader", "-I"})
_RUNNERS = frozenset({"pytest", "coverage", "pip", "tox", "nox", "build", "doctest", "mypy"})
"""Modules that a repository does not hold."""
_INCLUDES = frozenset({"include", "-include", "sinclude", "import"})
_TARGET = re.compile(r"([^\s#:=][^:=#]*)::?(?!=)(.*)")


@dataclass(frozen=True, slots=True)
class Said:
    """What a shell command says, or a script or recipe that it runs."""

    text: str
    _scripts: frozenset[str] = field(init=False)
    _programs: frozenset[str] = field(init=False)
    _recipes: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        parts = [_WORD.findall(part) for part in _PARTS.split(_VARIABLE.sub(r"$\1", self.text))]
        scripts = {w for words in parts for w in words if "/" in w or w.endswith("sh")}
        programs = {program for words in parts for program in _programs(words)}
        recipes = (names for program, names in _RECIPES.items() if program in self.text)
        object.__setattr__(self, "_scripts", _relative(scripts))
        object.__setattr__(self, "_programs", _relative(programs))
        object.__setattr__(self, "_recipes", frozenset().union(*recipes))

    @property
    def leads_on(self) -> bool:
        """Whether another file may say more."""
        node = any(program in self.text for program in _NODE)
        return node or bool(self._scripts or self._programs or self._recipes)

    def names(self, path: str) -> bool:
        """Say whether all of a file counts: it is named, or read by a program that is named."""
        pure = PurePosixPath(path)
        if pure.name in self._recipes or (pure.suffix == ".mk" and "make" in self.text):
            return True
        ends = [*_ends(path), *(_ends(str(pure.parent)) if pure.name == "__main__.py" else ())]
        named = not self._programs.isdisjoint(ends)
        return named or (pure.suffix in _SCRIPTS and not self._scripts.isdisjoint(ends))

    def leads_to(self, path: str) -> bool:
        """Say whether a file says in its turn what is run."""
        pure = PurePosixPath(path)
        if pure.name == "package.json":
            return any(program in self.text for program in _NODE)
        told = pure.suffix in _SCRIPTS or pure.suffix == ".mk" or pure.name in self._recipes
        return told and self.names(path)


def reached(path: str, text: str, asked: str) -> str:
    """Return what of a script or recipe is run by who says `asked`."""
    name = PurePosixPath(path).name
    if name == "package.json":
        blocks, rest, first = _node_scripts(text), "", ""
    elif name in _BY_TARGET or name.endswith(".mk"):
        blocks, rest, first = _targets(text)
    else:
        return text
    pending = [word for word in _WORD.findall(asked) if word in blocks] or [first]
    found: dict[str, str] = {}
    while pending:
        target = pending.pop()
        if target in blocks and target not in found:
            found[target] = blocks[target]
            pending += [f"pre{target}", f"post{target}", *_WORD.findall(blocks[target])]
    if name.endswith(".mk") and not found:
        return text
    return "\n".join((rest, *found.values()))


def _targets(text: str) -> tuple[dict[str, str], str, str]:
    """Return the lines of each target, the lines outside, and the first target."""
    blocks: dict[str, str] = {}
    rest: list[str] = []
    now: list[str] = []
    for line in text.splitlines():
        if found := _TARGET.fullmatch(line):
            now = found[1].split()
        elif line[:1].strip():
            now = []
        for target in now:
            blocks[target] = f"{blocks.get(target, '')}{found[2] if found else line}\n"
        if not now:
            rest.append(line)
    first = next((target for target in blocks if not target.startswith(".")), "")
    return blocks, "\n".join(rest), first


def _node_scripts(text: str) -> dict[str, str]:
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    scripts = package.get("scripts") if isinstance(package, dict) else None
    scripts = scripts if isinstance(scripts, dict) else {}
    return {name: line for name, line in scripts.items() if isinstance(line, str)}


def _programs(words: list[str]) -> Iterable[str]:
    """Yield the files of a simple command that are programs, by their names or as modules."""
    if words and words[0] in _INCLUDES:
        yield from words[1:]
    for word in words:
        bare = word.lstrip("@-+")
        if "/" in bare:
            yield bare
            break
        if not _BEFORE.fullmatch(word):
            break
    for number, word in enumerate(words):
        name = PurePosixPath(word).name.lstrip("@-+").lower()
        if _INTERPRETER.fullmatch(name) or _INTERPRETER.fullmatch(name.removeprefix("$")):
            yield from _run(words[number + 1 :])


def _run(words: list[str]) -> Iterable[str]:
    """Yield what an interpreter runs that was given these words."""
    rest = iter(words)
    for word in rest:
        if word in ("-m", "--module"):
            yield from _module(rest)
            return
        if word in _SKIPPING:
            next(rest, "")
        elif word in _TAKING:
            yield next(rest, "")
        elif not word.startswith("-"):
            yield word
            return


def _module(words: Iterable[str]) -> Iterable[str]:
    module, *names = [*words] or [""]
    if module == "unittest":
        yield from (file for name in names if not name.startswith("-") for file in _files(name))
    elif module not in _RUNNERS:
        yield from _files(module)


def _files(module: str) -> tuple[str, ...]:
    if "/" in module or module.endswith(".py"):
        return (module,)
    path = module.replace(".", "/")
    return (f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py")


def _ends(path: str) -> Iterable[str]:
    """Yield all that a file may be called from some folder."""
    yield path
    for number, letter in enumerate(path):
        if letter == "/":
            yield path[number + 1 :]


def _relative(words: Iterable[str]) -> frozenset[str]:
    """Return paths without what leads to them from a folder that is not known here."""
    found = set()
    for word in words:
        parts = word.removesuffix("/").split("/")
        while parts and (parts[0] in ("", ".", "..") or set(parts[0]) & set("$%~{}")):
            del parts[0]
        found.add("/".join(parts))
    return frozenset(found - {""})
