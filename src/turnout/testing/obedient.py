"""The turn of a model that does exactly what a request asks of it."""

from turnout.core.json import JsonObject, JsonValue, as_object, as_objects, as_text
from turnout.testing.recorded import RecordedRequest
from turnout.testing.turns import Call, Turn, dump

__all__ = ["obedient"]


def obedient(request: RecordedRequest) -> Turn:
    """Return JSON where a schema is asked for, a call where tools are declared, else text.

    Strings that the model is free to choose repeat the last message.
    """
    said = as_text(request.messages[-1].get("content")) if request.messages else ""
    wanted = as_object(request.body.get("response_format"))
    if wanted.get("type") == "json_schema":
        schema = as_object(as_object(wanted.get("json_schema")).get("schema"))
        return Turn(text=dump(_sample(schema, said)))
    tool = _chosen(request)
    if tool is None:
        return Turn(text=said)
    arguments = as_object(_sample(as_object(tool.get("parameters")), said))
    return Turn(calls=(Call(as_text(tool.get("name")), arguments),))


def _chosen(request: RecordedRequest) -> JsonObject | None:
    functions = [as_object(tool.get("function")) for tool in as_objects(request.body.get("tools"))]
    choice = request.body.get("tool_choice")
    if choice == "none" or not functions:
        return None
    named = as_object(as_object(choice).get("function")).get("name")
    return next((f for f in functions if f.get("name") == named), functions[0])


def _sample(schema: JsonObject, said: str) -> JsonValue:
    if "const" in schema:
        return schema["const"]
    options = as_objects(schema.get("anyOf")) or as_objects(schema.get("oneOf"))
    if options:
        return _sample(options[0], said)
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        first: JsonValue = choices[0]
        return first
    match schema.get("type"):
        case "string":
            return said
        case "integer" | "number":
            return 0
        case "boolean":
            return True
        case "array":
            return []
        case _:
            fields = as_object(schema.get("properties"))
            return {name: _sample(as_object(part), said) for name, part in fields.items()}
