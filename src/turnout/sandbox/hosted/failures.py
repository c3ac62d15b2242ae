"""What a host's own errors mean to us."""

from collections.abc import Iterator
from contextlib import contextmanager

from turnout.errors import SandboxDiedError, SandboxUnavailableError

__all__ = ["lost", "refused"]


@contextmanager
def lost(*errors: type[Exception]) -> Iterator[None]:
    """Tell of an error while a machine was used: it cannot be used again."""
    known: tuple[type[Exception], ...] = (*errors, OSError)
    try:
        yield
    except known as error:
        raise SandboxDiedError(f"The host of the machine failed: {_said(error)}.") from error


@contextmanager
def refused(*errors: type[Exception]) -> Iterator[None]:
    """Tell of an error where a machine was asked for: there is none."""
    known: tuple[type[Exception], ...] = (*errors, OSError)
    try:
        yield
    except known as error:
        raise SandboxUnavailableError(
            f"The host rents no machine: {_said(error)}.",
            mend="Check the key, the image and the account.",
        ) from error


def _said(error: Exception) -> str:
    text = (str(error) or type(error).__name__).splitlines()[0]
    return text[:300].removesuffix(".")
