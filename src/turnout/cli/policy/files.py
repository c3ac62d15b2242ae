"""Files of policies as the commands take them."""

import pwd
from dataclasses import dataclass
from os import getuid
from pathlib import Path

from turnout.cli.options import read_settings
from turnout.core.govern.revisions import DEFAULT_POLICY
from turnout.core.json import JsonObject
from turnout.core.policies import Policy
from turnout.core.toml import TomlError, read_toml
from turnout.errors import ConfigError
from turnout.gateway.config.policy_file import parse_policies
from turnout.settings import Settings, load_settings

__all__ = ["PolicyFile", "read_file", "user_name"]


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """What a file says, and the settings in whose light it is to be seen."""

    path: Path
    policies: tuple[Policy, ...]
    settings: Settings

    def named(self, name: str | None) -> Policy:
        """Return the policy of that name; None: the default, or the only one there is."""
        if name is None and len(self.policies) == 1:
            return self.policies[0]
        wanted = name or DEFAULT_POLICY
        for policy in self.policies:
            if policy.name == wanted:
                return policy
        listed = ", ".join(policy.name for policy in self.policies)
        raise ConfigError(f"{self.path} has no policy {wanted!r}.", mend=f"It has {listed}.")


def read_file(path: Path, config: Path | None) -> PolicyFile:
    """Read a file of policies, or a whole turnout.toml, whose models then count.

    `ConfigError` where it cannot be read, holds no policy or a wrong one.
    """
    document = _document(path)
    try:
        policies = parse_policies(document)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", mend=error.mend) from error
    if not policies:
        raise ConfigError(
            f"{path} holds no policy.", mend="Write [policy], or [policies.NAME] for several."
        )
    whole = config is None and "deployments" in document
    settings = load_settings(config=path) if whole else read_settings(config)
    return PolicyFile(path, policies, settings)


def user_name() -> str:
    """Return the name of whoever runs the command."""
    try:
        return pwd.getpwuid(getuid()).pw_name
    except KeyError:
        return f"user {getuid()}"


def _document(path: Path) -> JsonObject:
    try:
        return read_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    except TomlError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error
