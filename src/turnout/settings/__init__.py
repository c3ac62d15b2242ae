"""What users may set."""

from turnout.settings.environment import (
    endpoint_present,
    find_config,
    gateway_address,
    keys_present,
    load_settings,
    secret_named,
    secret_value,
    service_address,
    service_here,
    state_folder,
)
from turnout.settings.values import (
    CONFIG_NAME,
    HOSTED_KEYS,
    KNOWN_KEYS,
    REACH_VARIABLES,
    ConfigFile,
    DriverName,
    Endpoint,
    KnownKey,
    Settings,
)

__all__ = [
    "CONFIG_NAME",
    "HOSTED_KEYS",
    "KNOWN_KEYS",
    "REACH_VARIABLES",
    "ConfigFile",
    "DriverName",
    "Endpoint",
    "KnownKey",
    "Settings",
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
