"""A long session made of one small thing after another: notes, each of which names the next."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

__all__ = ["LINKS", "Notes", "make_notes"]

LINKS: Final = 42
"""Notes on the way: the first was read at least 40 steps ago when its words are asked for."""

_DECOYS: Final = 18
_METALS: Final = ("copper", "silver", "nickel", "cobalt", "bronze", "pewter", "osmium", "indium")
_THINGS: Final = ("lantern", "harbour", "walnut", "meadow", "compass", "saddle", "kettle", "anchor")


@dataclass(frozen=True, slots=True)
class Notes:
    """A repository of notes."""

    prompt: str
    files: Mapping[str, str]
    stamps: tuple[str, ...]
    """What stands in each note on the way, and nowhere else; in their order."""
    words: str
    """The pass phrase of the first note, which is asked for at the end."""


def make_notes(seed: int, links: int = LINKS) -> Notes:
    """Return notes that no other seed has.

    Their names cannot be guessed, and there are others beside them, so that one must be read before
    the next is known. Every note has a pass phrase: the first one's has to be remembered.
    """
    count = links + _DECOYS
    names = [f"notes/{_drawn(seed, 'name', at):06x}.txt" for at in range(count)]
    stamps = [f"stamp {_drawn(seed, 'stamp', at):06x}" for at in range(count)]
    phrases = [_phrase(seed, at) for at in range(count)]
    # The others lead nowhere but to one another.
    nexts = [*names[1:links], "", *names[links + 1 :], names[links]]
    files = {
        name: _note(stamp, phrase, following)
        for name, stamp, phrase, following in zip(names, stamps, phrases, nexts, strict=True)
    }
    files["README.md"] = f"# Notes\n\nThe first note is {names[0]}.\n"
    return Notes(_prompt(names[0]), files, tuple(stamps[:links]), phrases[0])


def _drawn(seed: int, what: str, at: int) -> int:
    """Return a number that looks like chance, the same for the same; no two places share one."""
    digest = sha256(f"{seed} {what}".encode()).hexdigest()
    # Odd steps through a power of two visit every number once.
    start, step = int(digest[:6], 16), int(digest[6:12], 16) | 1
    return (start + at * step) % 16**6


def _prompt(first: str) -> str:
    return (
        f"Read the note {first}. Each note names the note to read next. Read them one after the "
        "other, each once and alone, until one says that it is the last. Then answer with the pass "
        "phrase of the very first note, from memory: do not open it again. Change no file."
    )


def _phrase(seed: int, at: int) -> str:
    number = _drawn(seed, "phrase", at)
    metal, thing = _METALS[number % len(_METALS)], _THINGS[number // 8 % len(_THINGS)]
    return f"{metal}-{thing}-{number >> 6:05d}"


def _note(stamp: str, phrase: str, following: str) -> str:
    then = f"Read next: {following}" if following else "This is the last note."
    return f"{stamp}\nThe pass phrase of this note is {phrase}.\n{then}\n"
