"""Takes the secrets that this process knows out of whatever models, tools and people write."""

import json
import re
from collections.abc import Mapping
from typing import Final

from turnout.core.events import Event, decode_event, encode_event

__all__ = ["SHORTEST", "Redactor"]

SHORTEST: Final = 8
"""Characters of a value that is taken for a secret; shorter ones stand in ordinary text."""
_PREFIX: Final = "tk-"
_OWN: Final = _PREFIX + r"[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"
"""A key of ours, whoever's."""


class Redactor:
    """Puts `[NAME]` in the place of a secret, wherever it stands whole, also inside of JSON."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        """`secrets`: values by the name of what holds each; short ones do not count."""
        known = {value: name for name, value in (secrets or {}).items() if len(value) >= SHORTEST}
        in_json = {json.dumps(value)[1:-1]: name for value, name in known.items()}
        # Arguments of a tool call are JSON within JSON.
        deeper = {json.dumps(value)[1:-1]: name for value, name in in_json.items()}
        self._names = {**deeper, **in_json, **known}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join([*map(re.escape, longest_first), _OWN]))

    def __repr__(self) -> str:
        return f"Redactor({sorted(set(self._names.values()))})"

    def text(self, text: str) -> str:
        """Return a text without them."""
        # Almost none holds any, and to find that out is quick, however long it is.
        if _PREFIX in text or any(value in text for value in self._names):
            return self._pattern.sub(self._shown, text)
        return text

    def event(self, event: Event) -> Event:
        """Return an event without them; a diff stays as it is, or it would not apply."""
        said = encode_event(event)
        told = self.text(said)
        return event if told == said else decode_event(told)

    def _shown(self, found: "re.Match[str]") -> str:
        return f"[{self._names.get(found[0], 'a key of Turnout')}]"
