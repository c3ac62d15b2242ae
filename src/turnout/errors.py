"""Every error that Turnout raises on purpose, as one tree.

    TurnoutError
    ├── UsageError                  the caller asked for something that cannot be (exit 2)
    │   └── ConfigError             turnout.toml or a setting is wrong
    ├── UnfitError                  the environment cannot do the job (exit 4)
    │   ├── SandboxUnavailableError no usable isolation on this machine
    │   ├── ModelUnavailableError   no model endpoint, wrong key, unreachable, no tool support
    │   ├── RepositoryError         not a repository, unknown base, nothing to check out
    │   └── MissingExtraError       an optional dependency is not installed
    ├── GatewayError                a request the gateway refused or could not serve (HTTP status)
    ├── SandboxError                the sandbox itself failed; never shown to a model
    │   └── SandboxDiedError        its agent is gone; the sandbox cannot be used again
    ├── ConnectionFailedError       a connection's server is gone or breaks its protocol
    ├── CommandFailedError          a command that was to succeed did not (SDK)
    ├── DeliveryError               a finished patch could not be put where it was wanted
    ├── QueueError                  the queue that orders come from is away, or does not let us
    ├── ForgeError                  a forge did not do what was asked of it
    ├── ToolError                   a tool could not do what was asked; its text goes to the model
    └── StoreError                  the record could not be read or written
        ├── NotFoundError           no such run, receipt or revision
        ├── ConflictError           somebody else changed it first
        ├── FullError               no more of it is taken for now
        └── StaleEpochError         another worker has taken the run over

An error's text says what is wrong; its `mend` says what to do about it.
"""

__all__ = [
    "CommandFailedError",
    "ConfigError",
    "ConflictError",
    "ConnectionFailedError",
    "DeliveryError",
    "ForgeError",
    "FullError",
    "GatewayError",
    "MissingExtraError",
    "ModelUnavailableError",
    "NotFoundError",
    "QueueError",
    "RepositoryError",
    "SandboxDiedError",
    "SandboxError",
    "SandboxUnavailableError",
    "StaleEpochError",
    "StoreError",
    "ToolError",
    "TurnoutError",
    "UnfitError",
    "UsageError",
]


class TurnoutError(Exception):
    """Root of every error raised on purpose."""

    def __init__(self, message: str, *, mend: str = "") -> None:
        super().__init__(message)
        self.message = message
        """What is wrong, in one sentence."""
        self.mend = mend
        """What the reader can do about it; empty where nothing can be done."""

    def __str__(self) -> str:
        return f"{self.message} {self.mend}".strip()


class UsageError(TurnoutError):
    """The caller asked for something that cannot be."""


class ConfigError(UsageError):
    """A setting or a line of `turnout.toml` is wrong."""


class UnfitError(TurnoutError):
    """The environment (sandbox, model, repository) cannot do the job."""


class SandboxUnavailableError(UnfitError):
    """No usable isolation on this machine."""


class ModelUnavailableError(UnfitError):
    """No model can be reached, or none that is able to do the job."""


class RepositoryError(UnfitError):
    """The repository or the base commit cannot be used."""


class MissingExtraError(UnfitError):
    """An optional dependency is needed and not installed."""


class GatewayError(TurnoutError):
    """A request that the gateway refused or could not serve."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str,
        mend: str = "",
        retry_after: float | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message, mend=mend)
        self.status = status
        """HTTP status of the answer."""
        self.code = code
        """Machine-readable reason, such as `tool_not_allowed` or `session_request_cap`."""
        self.retry_after = retry_after
        """Seconds after which a retry may succeed; None where a retry cannot help."""
        self.param = param
        """Path of the field of the request that is wrong; None where it is not one field."""


class SandboxError(TurnoutError):
    """The sandbox itself failed; this is never a tool result."""


class SandboxDiedError(SandboxError):
    """The sandbox is gone and cannot be used again."""


class ConnectionFailedError(TurnoutError):
    """The server of a connection cannot be reached, or does not keep to the protocol."""


class CommandFailedError(TurnoutError):
    """A command that was to succeed did not; its text ends with what the command printed last."""

    def __init__(
        self, message: str, *, exit_code: int, stdout: str, stderr: str, timed_out: bool = False
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        """As in a shell: 128 + n for signal n, 127 where it was not started, 124 for its time."""
        self.stdout = stdout
        """The end of it."""
        self.stderr = stderr
        """The end of it."""
        self.timed_out = timed_out

    def __str__(self) -> str:
        printed = [text.removesuffix("\n") for text in (self.stdout, self.stderr) if text]
        return "\n".join([self.message, *printed])


class DeliveryError(TurnoutError):
    """A finished patch could not be put where it was wanted; it stays on record."""

    def __init__(self, message: str, *, mend: str = "", passing: bool = False) -> None:
        super().__init__(message, mend=mend)
        self.passing = passing
        """Whether the same may work later."""


class QueueError(TurnoutError):
    """The queue that orders come from cannot be reached, or does not let us."""


class ForgeError(TurnoutError):
    """A forge did not do what was asked of it; its text names no secret."""

    def __init__(self, message: str, *, mend: str = "", passing: bool = False) -> None:
        super().__init__(message, mend=mend)
        self.passing = passing
        """Whether the same may work later."""


class ToolError(TurnoutError):
    """A tool could not do what was asked; the text is what the model reads."""


class StoreError(TurnoutError):
    """The record could not be read or written."""


class NotFoundError(StoreError):
    """No such run, receipt or revision."""


class ConflictError(StoreError):
    """Somebody else changed it first; nothing was written."""


class FullError(StoreError):
    """There is so much of it that no more is taken for now; nothing was written."""


class StaleEpochError(StoreError):
    """Another worker has taken the run over; this one must stop writing."""
