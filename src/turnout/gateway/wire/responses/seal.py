"""Whose a thought is, written where clients give it back: in its encrypted content.

Every reasoning item that leaves the gateway says so, whichever shape its model speaks. So a
client that keeps the conversation itself can move to another model, and the thoughts of the
first stay behind.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.gateway.catalog import Deployment
from turnout.gateway.dialog.conversation import Reasoning

__all__ = [
    "Seal",
    "read_reasoning",
    "read_seal",
    "read_thought",
    "sealed_item",
    "unsealed_item",
]

_PREFIX = "turnout1."


@dataclass(frozen=True, slots=True)
class Seal:
    """What the encrypted content of a reasoning item says."""

    maker: str
    """Id of the model; empty where somebody else wrote it."""
    deployment: str = ""
    """Whose servers made the item as it is; empty where the gateway wrote it."""
    signature: str = ""
    encrypted: str = ""
    """What only the maker can read."""

    def write(self) -> str:
        """Return the content; what is encrypted stays as it came."""
        head = {"m": self.maker, "d": self.deployment, "s": self.signature}
        coded = base64.urlsafe_b64encode(orjson.dumps(head)).decode()
        return f"{_PREFIX}{coded}.{self.encrypted}"


def read_seal(content: str) -> Seal:
    """Return what a content says, whoever wrote it."""
    if not content.startswith(_PREFIX):
        return Seal("", encrypted=content)
    coded, _, encrypted = content.removeprefix(_PREFIX).partition(".")
    try:
        head: JsonObject = as_object(orjson.loads(base64.urlsafe_b64decode(coded)))
    except (binascii.Error, ValueError):
        return Seal("", encrypted=content)
    maker, deployment = as_text(head.get("m")), as_text(head.get("d"))
    return Seal(maker, deployment, as_text(head.get("s")), encrypted)


def sealed_item(item: JsonObject, by: Deployment) -> dict[str, JsonValue]:
    """Return a reasoning item of an upstream as clients get it."""
    seal = Seal(by.model, by.id, encrypted=as_text(item.get("encrypted_content")))
    return {**item, "encrypted_content": seal.write()}


def unsealed_item(item: JsonObject, to: Deployment) -> JsonObject | None:
    """Return a reasoning item as the upstream wrote it; None where it is not for that one."""
    content = item.get("encrypted_content")
    if not isinstance(content, str):
        return item
    seal = read_seal(content)
    if not seal.maker:
        return item
    if seal.deployment != to.id:
        return None
    bare: Mapping[str, JsonValue] = {k: v for k, v in item.items() if k != "encrypted_content"}
    return {**bare, "encrypted_content": seal.encrypted} if seal.encrypted else bare


def read_reasoning(item: JsonObject) -> Reasoning:
    """Return what a reasoning item of a request says in any shape.

    What an upstream of this shape encrypted is left out: no other shape has a place for it.
    """
    seal = read_seal(as_text(item.get("encrypted_content")))
    kept = seal.encrypted if seal.maker and not seal.deployment else ""
    return Reasoning(_words(item), seal.signature, kept, seal.maker)


def read_thought(item: JsonObject) -> Reasoning:
    """Return what a reasoning item of an answer says, whole."""
    seal = read_seal(as_text(item.get("encrypted_content")))
    return Reasoning(_words(item), seal.signature, seal.encrypted, seal.maker)


def _words(item: JsonObject) -> str:
    said = [as_text(p.get("text")) for p in as_objects(item.get("content"))]
    return "\n\n".join(said or [as_text(p.get("text")) for p in as_objects(item.get("summary"))])
