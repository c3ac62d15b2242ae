"""The model routes in the OpenAPI document, written by hand: FastAPI does not serve them."""

from typing import Any, Final

from turnout.gateway.admin.errors import ErrorBody
from turnout.gateway.config.policy_tables import PolicyTable

__all__ = ["ROUTE_BODY", "whole_document"]

Part = dict[str, Any]

_SCHEMAS: Final = "#/components/schemas/"

_ROUTING: Final[Part] = {
    "type": "object",
    "additionalProperties": False,
    "description": "What the request is routed for; it may narrow what the policy allows.",
    "properties": {
        "optimize": {"enum": ["quality", "latency", "cost", "balanced"]},
        "task": {"enum": ["coding", "summarisation", "reasoning", "extraction", "chat", "general"]},
        "session": {"type": "string", "minLength": 1, "maxLength": 512},
        "policy": {"type": "string", "minLength": 1, "maxLength": 256},
        "tools": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": 256},
            "description": "The only tools that this request may declare.",
        },
        "read_only": {
            "type": "boolean",
            "description": "Only tools that the policy lists as changing nothing.",
        },
    },
}
_COMMON: Final[Part] = {
    "model": {
        "type": "string",
        "minLength": 1,
        "maxLength": 256,
        "description": "`auto`, the id of a model or a deployment, or an alias of the policy.",
    },
    "stream": {"type": "boolean"},
    "routing": {"$ref": "#/components/schemas/Routing"},
    "extended_thinking": {"type": "boolean"},
}
_KIND: Final[Part] = {
    "name": "x-turnout-call-kind",
    "in": "header",
    "schema": {"enum": ["plan", "act", "summary", "answer", "review"]},
    "description": "The kind of step that the call is for.",
}
_IDEMPOTENCY: Final[Part] = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "maxLength": 255},
    "description": "The same request under the same key is answered once, and then replayed.",
}
_OBJECTS: Final[Part] = {"type": "array", "items": {"type": "object"}, "minItems": 1}


def _messages(*roles: str) -> Part:
    content = {"anyOf": [{"type": "string"}, _OBJECTS, {"type": "null"}]}
    properties = {"role": {"enum": list(roles)}, "content": content}
    message = {"type": "object", "required": ["role", "content"], "properties": properties}
    return {"type": "array", "items": message, "minItems": 1}


_CHAT: Final[Part] = {
    "messages": _messages("system", "developer", "user", "assistant", "tool"),
    "tools": {"type": "array", "items": {"type": "object"}},
}
_ANTHROPIC: Final[Part] = {
    "messages": _messages("user", "assistant"),
    "tools": {"type": "array", "items": {"type": "object"}},
}


def _body(required: list[str], properties: Part) -> Part:
    schema = {"type": "object", "required": required, "properties": {**_COMMON, **properties}}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _answers(said: str, *, streamed: bool = True) -> Part:
    content: Part = {"application/json": {"schema": {"type": "object"}}}
    if streamed:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    error = {"application/json": {"schema": {"type": "object"}}}
    refusals = {
        "400": "A field is wrong.",
        "401": "No key, or a wrong one.",
        "402": "A cap on spend is reached.",
        "403": "A tool or a policy that is not allowed.",
        "404": "No such model, policy or response.",
        "405": "Another method is served here.",
        "408": "The body did not come in time.",
        "409": "The idempotency key was used for another request.",
        "413": "The body is too large.",
        "429": "A limit on requests is reached.",
        "502": "The provider failed.",
        "503": "No deployment may serve the request.",
        "504": "The provider was silent for too long.",
    }
    listed = {status: {"description": text, "content": error} for status, text in refusals.items()}
    return {"200": {"description": said, "content": content}, **listed}


def _post(said: str, body: Part, answer: str, *, streamed: bool = True) -> Part:
    return {
        "post": {
            "tags": ["models"],
            "summary": said,
            "parameters": [_KIND, _IDEMPOTENCY],
            "requestBody": body,
            "responses": _answers(answer, streamed=streamed),
        }
    }


def _act(method: str, said: str, parameters: list[Part], answer: str) -> Part:
    return {
        method: {
            "tags": ["models"],
            "summary": said,
            "parameters": parameters,
            "responses": _answers(answer, streamed=False),
        }
    }


def _query(name: str, schema: Part) -> Part:
    return {"name": name, "in": "query", "schema": schema}


def _id(name: str) -> Part:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


_MODEL_PATHS: Final[Part] = {
    "/chat/completions": _post(
        "Make a chat completion.",
        _body(["model", "messages"], {**_CHAT, "max_tokens": {"type": "integer", "minimum": 1}}),
        "The completion, with `routing`.",
    ),
    "/messages": _post(
        "Make a message.",
        _body(
            ["model", "messages", "max_tokens"],
            {**_ANTHROPIC, "max_tokens": {"type": "integer", "minimum": 1}},
        ),
        "The message, with `routing`.",
    ),
    "/messages/count_tokens": _post(
        "Count the tokens of a message.",
        _body(["model", "messages"], _ANTHROPIC),
        "`input_tokens`.",
        streamed=False,
    ),
    "/responses": _post(
        "Make a response.",
        _body(
            ["model", "input"],
            {
                "input": {"anyOf": [{"type": "string"}, _OBJECTS]},
                "previous_response_id": {"type": "string"},
                "store": {"type": "boolean"},
                "tools": {"type": "array", "items": {"type": "object"}},
            },
        ),
        "The response, with `routing`.",
    ),
    "/responses/{response_id}": {
        **_act("get", "Read a stored response.", [_id("response_id")], "The response."),
        **_act("delete", "Forget a stored response.", [_id("response_id")], "`deleted`."),
    },
    "/responses/{response_id}/input_items": _act(
        "get",
        "List what a stored response answered.",
        [
            _id("response_id"),
            _query("limit", {"type": "integer", "minimum": 1, "maximum": 100}),
            _query("order", {"enum": ["asc", "desc"]}),
            _query("after", {"type": "string"}),
        ],
        "The items.",
    ),
    "/responses/{response_id}/cancel": _act(
        "post", "Refuse: no response is made in the background.", [_id("response_id")], "Never."
    ),
    "/models": _act(
        "get",
        "List the models that a request may name.",
        [_query("limit", {"type": "integer", "minimum": 1})],
        "The models, `auto` first.",
    ),
    "/models/{model}": _act("get", "Show one model.", [_id("model")], "The model."),
    "/requests/{request_id}": _act(
        "get", "Read what became of a request.", [_id("request_id")], "Its receipt."
    ),
}
"""The routes that are served without FastAPI, by their paths below `/v1`."""


ROUTE_BODY: Final[Part] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "description": (
                        "The body of a chat completion, a message or a response, with `routing`; "
                        "or `request`, such a body, and `policy`, a draft to decide under."
                    ),
                    "anyOf": [
                        {
                            "type": "object",
                            "required": ["model", "messages"],
                            "properties": {**_COMMON, **_CHAT},
                        },
                        {
                            "type": "object",
                            "required": ["request"],
                            "additionalProperties": False,
                            "properties": {
                                "request": {"type": "object"},
                                "policy": {"$ref": f"{_SCHEMAS}PolicyTable"},
                            },
                        },
                    ],
                }
            }
        },
    }
}
"""What `POST /route` takes, which is parsed as the model routes parse it."""


def whole_document(made: Part) -> Part:
    """Return the document of the admin routes with the model routes and the key added."""
    components = dict(made.get("components", {}))
    schemas = {**components.get("schemas", {}), "Routing": _ROUTING}
    schemas.setdefault("ErrorBody", ErrorBody.model_json_schema())
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    _describe_policies(schemas)
    scheme = {"type": "http", "scheme": "bearer", "description": "Also as `x-api-key`."}
    return {
        **made,
        "servers": [{"url": "/v1"}],
        "paths": {**_MODEL_PATHS, **_as_answered(made.get("paths", {}))},
        "components": {**components, "schemas": schemas, "securitySchemes": {"key": scheme}},
        "security": [{"key": []}],
    }


def _describe_policies(schemas: Part) -> None:
    """Say what a policy's table holds: bodies take it as it comes, to refuse it in our words."""
    table = PolicyTable.model_json_schema(ref_template=f"{_SCHEMAS}{{model}}")
    schemas.update(table.pop("$defs", {}))
    schemas["PolicyTable"] = table
    one = {"$ref": f"{_SCHEMAS}PolicyTable"}
    for name in ("DraftIn", "PolicyIn", "RevisionOut"):
        schemas[name]["properties"]["policy"] = one
    several = {"type": "object", "additionalProperties": one}
    schemas["PoliciesIn"]["properties"]["policies"] = {"anyOf": [several, {"type": "null"}]}


def _as_answered(paths: Part) -> Part:
    """Return the paths without the status that FastAPI has for wrong bodies: ours is 400."""
    return {
        path: {
            method: {
                **operation,
                "responses": {k: v for k, v in operation["responses"].items() if k != "422"},
            }
            for method, operation in methods.items()
        }
        for path, methods in paths.items()
    }
