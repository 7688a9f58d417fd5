"""Prepares an OpenAPI document for the page of the API reference."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

_REFERENCE = "#/components/schemas/"
_COMMON = 4  # operations that share a parameter or an answer, from which on it is described once for all of them
_UNBOUNDED = 2**53 - 1  # the largest integer of JavaScript: a bound that says nothing to a reader

Row = tuple[str, str, str, bool]  # name, type, description, whether it is required


def describe_reference(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the operations by tag, what several of them share, and the schemas by name."""
    operations = [
        (operation["tags"][0], {"method": method.upper(), "path": path, **_operation(operation)})
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    return {
        "common": {
            kind: sorted(row for row, count in Counter(rows).items() if count >= _COMMON)
            for kind in ("parameters", "responses")
            if (rows := [row for _, operation in operations for row in operation[kind]])
        },
        "tags": [
            {**tag, "operations": [operation for name, operation in operations if name == tag["name"]]}
            for tag in document["tags"]
        ],
        "schemas": {name: _schema(schema) for name, schema in sorted(document["components"]["schemas"].items())},
    }


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    return {
        "id": operation["operationId"],
        "summary": operation["summary"],
        "description": operation["description"],
        "parameters": [
            _row(one["name"], one["schema"], required=one["required"]) for one in operation.get("parameters", ())
        ],
        "bodies": [(name, list(_members(media["schema"]))) for name, media in content.items()],
        "responses": [
            (status, _content(answer.get("content", {})), answer["description"], False)
            for status, answer in operation["responses"].items()
        ],
    }


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "description": schema.get("description", ""),
        "type": "" if "properties" in schema else _type(schema),
        "members": list(_members(schema)),
    }


def _members(schema: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the members of an object, or of the objects in the list that it holds."""
    for name, member in schema.get("properties", {}).items():
        yield _row(name, member, required=name in schema.get("required", ()))
        for inner, type_, description, is_required in _members(member.get("items", {})):
            yield f"{name}[].{inner}", type_, description, is_required


def _row(name: str, schema: Mapping[str, Any], *, required: bool) -> Row:
    default = schema.get("default")
    type_ = _type(schema) + (f", by default `{default}`" if default is not None else "")
    return name, type_, schema.get("description", ""), required


def _content(content: Mapping[str, Any]) -> str:
    """Return the media types of an answer, each with its schema if it has one of its own."""
    return ", ".join(f"`{media_type}`: {_type(media.get('schema', {}))}" for media_type, media in content.items())


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": reference}:
            said = f"`{reference.removeprefix(_REFERENCE)}`"
        case {"anyOf": options}:
            said = " or ".join(dict.fromkeys(map(_type, options)))
        case {"type": "array", "items": items}:
            said = f"list of {_type(items)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            said = f"object of {_type(values)}"
        case _:
            said = _plain_type(schema)
    return said


def _plain_type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"enum": values}:
            said = " or ".join(f"`{value}`" for value in values)
        case {"const": value}:
            said = f"`{value}`"
        case {"type": "string", "format": format_}:
            said = f"string ({format_})"
        case {"type": name, "minimum": low, "maximum": high} if high < _UNBOUNDED:
            said = f"{name} from {low} to {high}"
        case _:
            said = schema.get("type", "anything")
    return said
