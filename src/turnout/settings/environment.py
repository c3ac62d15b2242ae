"""What users may set, and the only reader of the environment.

`turnout.toml` is read from the current directory, from `--config` or from `TURNOUT_CONFIG`, never
searched for elsewhere. Whether a file that nobody named may be trusted is for the caller to judge:
a repository must not configure the host that works on it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, get_args

from turnout.core.json import JsonValue
from turnout.core.service.options import ServiceAddress
from turnout.core.toml import TomlError, read_toml
from turnout.errors import ConfigError
from turnout.gateway.config.addresses import http_address, sendable_key
from turnout.gateway.config.catalog_file import parse_catalog
from turnout.gateway.config.connections_file import parse_connections
from turnout.gateway.config.policy_file import check_models, parse_policies
from turnout.gateway.config.tables import read_table
from turnout.gateway.dialog.conversation import Shape
from turnout.sandbox.hosted.options import HostedOptions
from turnout.settings.building import (
    agent_config,
    check_connections,
    container_options,
    default_policy,
    driver_name,
    egress_of,
    kubernetes_options,
    limits_of,
    rates_of,
    service_options,
    test_paths_of,
)
from turnout.settings.observing import observe_options
from turnout.settings.secrets import redactor_of
from turnout.settings.tables import File
from turnout.settings.values import (
    CONFIG_NAME,
    HOSTED_KEYS,
    KNOWN_KEYS,
    REACH_VARIABLES,
    ConfigFile,
    Endpoint,
    KnownKey,
    Settings,
    shape_at,
)

__all__ = [
    "endpoint_present",
    "find_config",
    "gateway_address",
    "keys_present",
    "load_settings",
    "secret_named",
    "secret_value",
    "service_address",
    "service_here",
    "state_folder",
]

_HOST_VARIABLES: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "XDG_CONFIG_HOME", *REACH_VARIABLES}
)
"""What host programs that we start on the user's behalf are told of the environment."""
_HERE: Final = "http://127.0.0.1:8700"
"""Where `turnout serve` listens by default."""


def load_settings(
    *,
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Read `turnout.toml` and the environment; `ConfigError` names the table and key.

    None for `environment` and `directory` stands for the process's own.
    """
    env = os.environ if environment is None else environment
    found = find_config(config=config, environment=env, directory=directory)
    path = None if found is None else found.path
    try:
        return _settings(path, _read(path), env)
    except ConfigError as error:
        raise ConfigError(
            f"{path}: {error.message}" if path else error.message, mend=error.mend
        ) from error


def find_config(
    *,
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> ConfigFile | None:
    """Return the file that `load_settings` would read, without looking into it; None: none.

    `ConfigError` where one was named that is not there.
    """
    env = os.environ if environment is None else environment
    folder = Path.cwd() if directory is None else directory
    named = config or (Path(env["TURNOUT_CONFIG"]) if env.get("TURNOUT_CONFIG") else None)
    path = folder / (named or CONFIG_NAME)
    if path.is_file():
        return ConfigFile(path, named is not None)
    if named is None:
        return None
    raise ConfigError(
        f"There is no configuration file {path}.",
        mend="Write one with `turnout init`, or leave --config and TURNOUT_CONFIG out.",
    )


def state_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return where record, base layers and models are kept; it may not exist yet.

    For root it is /var/lib/turnout, since sandboxes run under other users' ids and must be able
    to reach into it.
    """
    env = os.environ if environment is None else environment
    if env.get("TURNOUT_HOME"):
        return Path(env["TURNOUT_HOME"]).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/turnout")
    if env.get("XDG_STATE_HOME"):
        return Path(env["XDG_STATE_HOME"]).absolute() / "turnout"
    return Path(env.get("HOME") or Path.home()) / ".local/state/turnout"


def keys_present(environment: Mapping[str, str] | None = None) -> tuple[KnownKey, ...]:
    """Return the usual provider keys that are set; their values are not looked at."""
    env = os.environ if environment is None else environment
    return tuple(key for key in KNOWN_KEYS if env.get(key.variable))


def endpoint_present(environment: Mapping[str, str] | None = None) -> Endpoint | None:
    """Return the endpoint of LLM_BASE_URL; `ConfigError` where that is no address."""
    return _endpoint(os.environ if environment is None else environment)


def secret_named(
    variable: str, environment: Mapping[str, str] | None = None, *, what: str = "the key"
) -> str:
    """Return the value of a variable that the user named; `ConfigError` where it is not set.

    `what` says in the error what the variable is to hold.
    """
    value = _key(os.environ if environment is None else environment, variable)
    if not value:
        raise ConfigError(
            f"The environment variable {variable} is not set.", mend=f"Set {variable} to {what}."
        )
    return value


def secret_value(variable: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Return the value of a variable that a setting names; None where it is not set."""
    return _key(os.environ if environment is None else environment, variable) or None


def service_address(
    server: str | None = None, environment: Mapping[str, str] | None = None
) -> ServiceAddress | None:
    """Return the service at `server`, else at TURNOUT_SERVER; None where neither is given.

    The key is that of TURNOUT_API_KEY. `ConfigError` for what is no address.
    """
    env = os.environ if environment is None else environment
    given = server if server is not None else env.get("TURNOUT_SERVER", "").strip()
    if not given:
        return None
    try:
        address = http_address(given)
    except ValueError as error:
        what = "TURNOUT_SERVER" if server is None else "--server"
        # The example of that error is the address of a model server.
        wrong = str(error).partition(", such as")[0]
        raise ConfigError(f"{what} {wrong}.", mend=f"Write it as {_with_scheme(given)}.") from error
    return ServiceAddress(address.removesuffix("/v1"), _key(env, "TURNOUT_API_KEY"))


def gateway_address(environment: Mapping[str, str] | None = None) -> ServiceAddress | None:
    """Return the gateway that workers of this machine use: TURNOUT_GATEWAY; None: none is named.

    The key is that of TURNOUT_GATEWAY_KEY. `ConfigError` for what is no address.
    """
    env = os.environ if environment is None else environment
    given = env.get("TURNOUT_GATEWAY", "").strip()
    if not given:
        return None
    try:
        address = http_address(given)
    except ValueError as error:
        wrong = str(error).partition(", such as")[0]
        mend = f"Write it as {_with_scheme(given)}."
        raise ConfigError(f"TURNOUT_GATEWAY {wrong}.", mend=mend) from error
    return ServiceAddress(address.removesuffix("/v1"), _key(env, "TURNOUT_GATEWAY_KEY"))


def service_here(environment: Mapping[str, str] | None = None) -> ServiceAddress:
    """Return the service of this machine at its usual address, with the key of TURNOUT_API_KEY."""
    env = os.environ if environment is None else environment
    return ServiceAddress(_HERE, _key(env, "TURNOUT_API_KEY"))


def _with_scheme(given: str) -> str:
    """Return what was given as an address where a scheme is all that it lacks, else an example."""
    if "://" in given:
        return _HERE
    try:
        return http_address(f"http://{given}")
    except ValueError:
        return _HERE


def _read(path: Path | None) -> File:
    if path is None:
        return File()
    try:
        table = read_toml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The file cannot be read: {error}.") from error
    except TomlError as error:
        raise ConfigError(
            f"The file is not valid TOML: {error}.",
            mend="Text stands in quotes, a list in brackets, and a table is named once.",
        ) from error
    return read_table(File, {key: _plain(value) for key, value in table.items()}, "")


def _plain(value: object) -> JsonValue:
    """Return what TOML says in JSON, which knows no dates: those become text."""
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def _settings(path: Path | None, table: File, env: Mapping[str, str]) -> Settings:
    policies = parse_policies({"policy": table.policy, "policies": table.policies})
    policy = default_policy(policies)
    catalog = parse_catalog(
        {"providers": table.providers, "deployments": table.deployments}, env.get
    )
    if catalog.deployments:
        for one in policies:
            check_models(one, catalog)
    connections = parse_connections(table.connections, env.get)
    check_connections(table.agent, connections)
    return Settings(
        home=state_folder(env),
        config_file=path,
        policy=policy,
        policies=policies,
        catalog=catalog,
        connections=connections,
        endpoint=_endpoint(env),
        agent=agent_config(table.agent),
        redactor=redactor_of(table.model_dump(mode="json"), env),
        surface=table.agent.surface,
        driver=driver_name(table.sandbox),
        container=container_options(table.sandbox.container),
        kubernetes=kubernetes_options(table.sandbox.kubernetes),
        hosted=HostedOptions(table.sandbox.hosted.image, table.sandbox.hosted.python),
        hosted_keys={name: env[key] for name, key in HOSTED_KEYS.items() if env.get(key)},
        limits=limits_of(table.sandbox),
        rates=rates_of(table.sandbox.rates),
        egress=egress_of(policy.egress, env),
        test_command=table.tests.command,
        setup=table.tests.setup,
        requirements=_optional_tuple(table.tests.requirements),
        test_paths=test_paths_of(table.tests),
        host_environment={k: v for k, v in env.items() if k in _HOST_VARIABLES},
        service=service_options(table.service),
        colour=not env.get("NO_COLOR"),
        observe=observe_options(table.observe, env),
        database=env.get("TURNOUT_DATABASE") or None,
    )


def _endpoint(env: Mapping[str, str]) -> Endpoint | None:
    url = env.get("LLM_BASE_URL", "").strip()
    if not url:
        return None
    try:
        address = http_address(url)
    except ValueError as error:
        raise ConfigError(
            f"LLM_BASE_URL {error}.",
            mend="Give the address up to and including /v1, and the key in LLM_API_KEY.",
        ) from error
    model = env.get("LLM_MODEL", "").strip() or None
    shape = env.get("LLM_API", "").strip() or shape_at(address)
    if shape not in get_args(Shape):
        raise ConfigError(
            f"LLM_API is {shape!r}.",
            mend=f"Write one of {', '.join(get_args(Shape))}, or leave it out.",
        )
    spoken = next(known for known in get_args(Shape) if known == shape)
    return Endpoint(address, _key(env, "LLM_API_KEY"), model, spoken)


def _key(env: Mapping[str, str], variable: str) -> str:
    try:
        return sendable_key(env.get(variable, ""))
    except ValueError as error:
        raise ConfigError(
            f"The variable {variable} {error}.", mend="Set it to the key alone."
        ) from error


def _optional_tuple(items: list[str] | None) -> tuple[str, ...] | None:
    return None if items is None else tuple(items)
