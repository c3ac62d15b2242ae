"""Answers of which a part is unfit, without that part: the SDK would refuse them whole."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Self

from mcp import types
from mcp.shared.message import SessionMessage
from pydantic import TypeAdapter, ValidationError

__all__ = ["screened"]

_LONGEST_KIND: Final = 100
_BLOCK: Final[TypeAdapter[types.ContentBlock]] = TypeAdapter(types.ContentBlock)


@asynccontextmanager
async def screened(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
    """Open a transport; of what is heard, unfit tools are left out and unknown content named."""
    async with transport as (heard, said):
        yield _Screened(heard), said


class _Screened:
    """The stream of messages as the SDK reads it."""

    def __init__(self, heard: Any) -> None:
        self._heard = heard

    async def receive(self) -> SessionMessage | Exception:
        return _fit(await self._heard.receive())

    async def aclose(self) -> None:
        await self._heard.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _fit(await self._heard.__anext__())

    async def __aenter__(self) -> Self:
        await self._heard.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._heard.__aexit__(*raised)


def _fit(heard: SessionMessage | Exception) -> SessionMessage | Exception:
    if isinstance(heard, SessionMessage) and isinstance(heard.message, types.JSONRPCResponse):
        result = heard.message.result
        if isinstance(tools := result.get("tools"), list):
            result["tools"] = [tool for tool in tools if _is_tool(tool)]
        if isinstance(content := result.get("content"), list):
            result["content"] = [_block(block) for block in content]
    return heard


def _is_tool(tool: Any) -> bool:
    try:
        schema = types.Tool.model_validate(tool, by_name=False).input_schema
    except ValidationError:
        return False
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return (
        schema.get("type") == "object"
        and isinstance(properties, dict)
        and all(isinstance(inside, dict | bool) for inside in properties.values())
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
    )


def _block(block: Any) -> Any:
    try:
        _BLOCK.validate_python(block, by_name=False)
    except ValidationError:
        kind = block.get("type") if isinstance(block, dict) else None
        named = kind[:_LONGEST_KIND] if isinstance(kind, str) else "content"
        return {"type": "text", "text": f"[{named}, not shown]"}
    return block
