"""What is known of instances before any patch, kept on disk: a command that comes again has it."""

import json
import os
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from turnout import __version__
from turnout.evals.grading.before import Before
from turnout.evals.instances.model import Instance
from turnout.sandbox.workspace.folders import private
from turnout.sandbox.workspace.use import touched

__all__ = ["BeforesFolder"]

_FORMAT: Final = 2
_LARGEST: Final = 64 << 20


class BeforesFolder:
    """Keeps each `Before` in a file of its own, under a hash of all that it follows from."""

    def __init__(self, state_dir: Path, *, under: str) -> None:
        """Keep them in the state folder until they are long unused.

        `under` is what tests are run under beside the instance and its base, such as their limits.
        """
        self._state_dir = state_dir
        self._under = under

    def load(self, instance: Instance, base_key: str) -> Before | None:
        """Return what is kept; None where nothing is, or it cannot be read."""
        path = self._path(instance, base_key)
        try:
            if path.stat().st_size > _LARGEST or not touched(self._state_dir, path):
                return None
            return _adapter().validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return None

    def save(self, instance: Instance, base_key: str, before: Before) -> None:
        """Keep what was found, so that it is whole or not there at all.

        What nothing can be judged by is not kept: it is looked at again the next time.
        """
        if before.fault:
            return
        path = self._path(instance, base_key)
        private(path.parent)
        made = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            made.write_bytes(_adapter().dump_json(before))
            made.replace(path)
        except OSError:
            # It is found out again the next time.
            made.unlink(missing_ok=True)

    def _path(self, instance: Instance, base_key: str) -> Path:
        facts = (
            _FORMAT,
            __version__,
            self._under,
            base_key,
            instance.instance_id,
            instance.digest,
            instance.fail_to_pass,
            instance.pass_to_pass,
            instance.test_command,
            instance.patch,
        )
        name = sha256(json.dumps(facts).encode(errors="surrogatepass")).hexdigest()
        return self._state_dir / "befores" / f"{name}.json"


@cache
def _adapter() -> TypeAdapter[Before]:
    return TypeAdapter(Before)
