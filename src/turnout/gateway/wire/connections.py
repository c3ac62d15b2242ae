"""How a request names a connection of the gateway whose tools the model may use.

Chat and responses list it among the tools (`{"type": "mcp", …}`), messages also as one of
`mcp_servers`. A client names a connection that is registered; it cannot bring a server or a
credential of its own.
"""

from turnout.core.json import JsonObject, as_object
from turnout.gateway.exchange import ConnectionAsk, DeclaredTool
from turnout.gateway.wire.fields import LONGEST_NAME, flag, invalid, objects, text

__all__ = ["connection_ask", "declared_tools", "server_ask"]

_FOREIGN = ("connector_id", "authorization", "authorization_token", "headers")
_MOST_NAMED = 256


def connection_ask(tool: JsonObject, path: str) -> ConnectionAsk | None:
    """Return which connection an entry of `tools` names; None where it is another tool.

    `GatewayError` (400) where it asks for what the gateway does not do.
    """
    kind = tool.get("type")
    if kind == "mcp_toolset":
        name = _name(tool, ("mcp_server_name",), path)
        return ConnectionAsk(name, _enabled(tool, path))
    if kind != "mcp":
        return None
    nested = objects(tool, "mcp", f"{path}.mcp")
    entry, at = (tool, path) if nested is None else (nested, f"{path}.mcp")
    _refuse_foreign(entry, at)
    _refuse_approval(entry, at)
    fields = ("server_label", "server") if nested is None else ("server", "server_label")
    name = _name(entry, fields, at)
    return ConnectionAsk(name, _allowed(entry, at), text(entry, "server_url", f"{at}.server_url"))


def server_ask(entry: JsonObject, path: str) -> ConnectionAsk:
    """Return which connection an entry of `mcp_servers` names; `GatewayError` (400) as above."""
    _refuse_foreign(entry, path)
    name = _name(entry, ("name",), path)
    at = f"{path}.tool_configuration"
    options = objects(entry, "tool_configuration", at) or {}
    tools = () if flag(options, "enabled", f"{at}.enabled") is False else _allowed(options, at)
    return ConnectionAsk(name, tools, text(entry, "url", f"{path}.url"))


def declared_tools(ask: ConnectionAsk) -> tuple[DeclaredTool, ...]:
    """Return what a policy judges of a named connection."""
    if ask.tools is None:
        return (DeclaredTool(f"mcp:{ask.name}/*"),)
    return tuple(DeclaredTool(f"mcp:{ask.name}/{tool}") for tool in ask.tools)


def _name(entry: JsonObject, fields: tuple[str, ...], path: str) -> str:
    for field in fields:
        if (name := text(entry, field, f"{path}.{field}")) is not None:
            if "/" in name:
                break
            return name
    raise invalid(
        f"`{path}.{fields[0]}` must name a connection of this gateway.", f"{path}.{fields[0]}"
    )


def _allowed(entry: JsonObject, path: str) -> tuple[str, ...] | None:
    """Return the tools that the request restricts itself to: a list, or one inside an object."""
    named = entry.get("allowed_tools")
    if isinstance(named, dict):
        path, entry, field = f"{path}.allowed_tools", named, "tool_names"
    else:
        field = "allowed_tools"
    names = entry.get(field)
    if names is None:
        return None
    if not isinstance(names, list) or len(names) > _MOST_NAMED:
        raise invalid(
            f"`{path}.{field}` must be a list of at most {_MOST_NAMED} names.", f"{path}.{field}"
        )
    for place, name in enumerate(names):
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or "/" in name:
            raise invalid(
                f"`{path}.{field}[{place}]` must be the name of a tool.", f"{path}.{field}[{place}]"
            )
    return tuple(dict.fromkeys(names))


def _enabled(tool: JsonObject, path: str) -> tuple[str, ...] | None:
    """Return the tools of a toolset that are switched on; None: all."""
    default = objects(tool, "default_config", f"{path}.default_config") or {}
    configs = objects(tool, "configs", f"{path}.configs") or {}
    if default.get("enabled") is not False:
        off = [name for name in configs if as_object(configs[name]).get("enabled") is False]
        if off:
            raise invalid(
                f"`{path}.configs` switches single tools off.",
                f"{path}.configs",
                mend="Switch all off in `default_config`, and on what you want.",
            )
        return None
    return tuple(n for n in configs if as_object(configs[n]).get("enabled") is not False)


def _refuse_foreign(entry: JsonObject, path: str) -> None:
    for field in _FOREIGN:
        if entry.get(field):
            raise invalid(
                f"`{path}.{field}` is not taken: the credential of a connection is the gateway's.",
                f"{path}.{field}",
                mend="Leave it out, and name a connection that is registered here.",
            )


def _refuse_approval(entry: JsonObject, path: str) -> None:
    wanted = entry.get("require_approval")
    if wanted is None or wanted == "never":
        return
    if isinstance(wanted, dict) and set(wanted) <= {"never"}:
        return
    raise invalid(
        f"`{path}.require_approval` is not taken: the gateway asks nobody before a call.",
        f"{path}.require_approval",
        mend="Send `never`, and `allowed_tools` with those that need no approval.",
    )
