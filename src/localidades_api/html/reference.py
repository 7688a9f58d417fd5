"""Prepares an OpenAPI document for the page of the API reference."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_REFERENCE = "#/components/schemas/"
_COMMON = 4  # a parameter or answer that so many operations share is described once
_UNBOUNDED = 2**53 - 1  # the largest safe integer of JavaScript: a bound that readers need not see

Row = tuple[str, str, str, bool]  # name, type, description, whether it is required


def describe_reference(document: Mapping[str, Any], say: Callable[[str], str]) -> dict[str, Any]:
    """Return the operations by tag, what several of them share, and the schemas by name; `say` translates."""
    reference, untagged = _Reference(say), say("Other operations")
    operations = [
        (
            operation.get("tags", [untagged])[0],
            {"method": method.upper(), "path": path, **reference.operation(operation)},
        )
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    tags = {tag["name"]: tag.get("description", "") for tag in document["tags"]}
    schemas = sorted(document["components"]["schemas"].items())
    return {
        "common": {
            kind: sorted(row for row, count in Counter(rows).items() if count >= _COMMON)
            for kind in ("parameters", "responses")
            if (rows := [row for _, operation in operations for row in operation[kind]])
        },
        "tags": [
            {
                "name": tag,
                "description": tags.get(tag, ""),
                "operations": [operation for name, operation in operations if name == tag],
            }
            for tag in dict.fromkeys([*tags, *(name for name, _ in operations)])
        ],
        "schemas": {name: reference.schema(schema) for name, schema in schemas},
    }


class _Reference:
    """Describes operations and schemas in a language."""

    def __init__(self, say: Callable[[str], str]) -> None:
        self._say = say

    def operation(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the template's data for an operation."""
        parameters = operation.get("parameters", ())
        content = operation.get("requestBody", {}).get("content", {})
        return {
            "id": operation["operationId"],
            "summary": operation["summary"],
            "description": operation.get("description", ""),
            "parameters": [self._row(one["name"], one["schema"], required=one["required"]) for one in parameters],
            "bodies": [(name, list(self._members(media["schema"]))) for name, media in content.items()],
            "responses": [
                (status, self._content(answer.get("content", {})), answer["description"], False)
                for status, answer in operation["responses"].items()
            ],
        }

    def schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the template's data for a schema."""
        return {
            "description": schema.get("description", ""),
            "type": "" if "properties" in schema else self._type(schema),
            "members": list(self._members(schema)),
        }

    def _members(self, schema: Mapping[str, Any]) -> Iterator[Row]:
        """Yield the members of an object, or of the objects in the list that it holds."""
        for name, member in schema.get("properties", {}).items():
            yield self._row(name, member, required=name in schema.get("required", ()))
            for inner, type_, description, is_required in self._members(member.get("items", {})):
                yield f"{name}[].{inner}", type_, description, is_required

    def _row(self, name: str, schema: Mapping[str, Any], *, required: bool) -> Row:
        default = schema.get("default")
        type_ = self._type(schema)
        if default is not None:
            type_ += self._say(", by default `{default}`").format(default=default)
        return name, type_, schema.get("description", ""), required

    def _content(self, content: Mapping[str, Any]) -> str:
        """Return the media types of an answer, each with its schema if it has one."""
        return ", ".join(
            f"`{media_type}`: {self._type(media.get('schema', {}))}" for media_type, media in content.items()
        )

    def _type(self, schema: Mapping[str, Any]) -> str:
        match schema:
            case {"$ref": reference}:
                said = f"`{reference.removeprefix(_REFERENCE)}`"
            case {"anyOf": options}:
                said = self._say(" or ").join(dict.fromkeys(map(self._type, options)))
            case {"type": "array", "items": items}:
                said = self._say("list of {items}").format(items=self._type(items))
            case {"type": "object", "additionalProperties": dict(values)}:
                said = self._say("object of {values}").format(values=self._type(values))
            case _:
                said = self._plain_type(schema)
        return said

    def _plain_type(self, schema: Mapping[str, Any]) -> str:
        match schema:
            case {"enum": values}:
                said = self._say(" or ").join(f"`{value}`" for value in values)
            case {"const": value}:
                said = f"`{value}`"
            case {"type": name, "format": format_}:
                said = f"{self._say(name)} ({format_})"
            case {"type": name, "minimum": low, "maximum": high} if high < _UNBOUNDED:
                said = self._say("{type} from {low} to {high}").format(type=self._say(name), low=low, high=high)
            case _:
                said = self._say(schema.get("type", "anything"))
        return said
