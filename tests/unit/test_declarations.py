"""The outline of the API and the help of the commands, in tests/golden."""

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from localidades_api.app import create_app
from localidades_api.cli import app as command_line
from localidades_api.settings import Settings
from tests.support.golden import assert_golden

_TOO_LONG = "a pattern that lists the names of columns is longer than this"


def test_outline_of_the_openapi_document_equals_the_golden_file() -> None:
    document = create_app(Settings()).openapi()
    lines = [*operations(document["paths"]), "", *models(document["components"]["schemas"])]
    assert_golden("openapi.txt", "".join(f"{line}\n" for line in lines).encode())


def operations(paths: Mapping[str, Any]) -> Iterator[str]:
    """Yield the method, path and operation id of each operation, its parameters, its body, and its answers."""
    for path, methods in paths.items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path} {operation['operationId']}"
            for one in operation.get("parameters", ()):
                required = " required" if one.get("required") else ""
                yield f"  {one['name']} ({one['in']}{required}): {described(one['schema'])}"
            if body := operation.get("requestBody"):
                yield f"  body: {content(body)}"
            yield f"  {'; '.join(f'{status} {content(one)}'.strip() for status, one in operation['responses'].items())}"


def models(schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of each model and its members; those that may be missing have a question mark."""
    for name, schema in schemas.items():
        required = schema.get("required", ())
        members = (f"{one}{'' if one in required else '?'}" for one in schema.get("properties", ()))
        yield f"{name}: {' '.join(members) or described(schema)}"


def content(described_by: Mapping[str, Any]) -> str:
    """Return the models of a body, and the media types other than JSON."""
    every = (
        (media_type, described(one.get("schema", {}))) for media_type, one in described_by.get("content", {}).items()
    )
    return ", ".join(
        model if media_type.endswith("json") and model[0].isupper() else media_type for media_type, model in every
    )


def described(schema: Mapping[str, Any]) -> str:
    """Return a type in a few words: its model, type, values, bounds and default."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if parts := schema.get("anyOf") or schema.get("oneOf"):
        kind = " | ".join(map(described, parts))
    elif schema.get("type") == "array":
        kind = f"[{described(schema.get('items', {}))}]"
    else:
        kind = "/".join(map(str, schema.get("enum", ()))) or str(schema.get("type", ""))
    bounds = [
        f"{sign}{schema[name]}"
        for name, sign in (("minimum", "≥"), ("maximum", "≤"), ("maxLength", "length ≤"), ("pattern", "~"))
        if len(str(schema.get(name, _TOO_LONG))) < len(_TOO_LONG)
    ]
    default = [f"= {schema['default']}"] if "default" in schema else []
    return " ".join(filter(None, (kind, *bounds, *default)))


def test_help_of_every_command_equals_the_golden_file() -> None:
    pages = helps(typer.main.get_command(command_line), "localidades-api")
    assert_golden("help.txt", "\n\n".join(pages).encode())


def helps(command: Any, name: str, parent: Any = None) -> Iterator[str]:  # noqa: ANN401  # typer's own click
    """Yield the help of a command, then that of those below it."""
    context = command.context_class(command, info_name=name, parent=parent, terminal_width=100)
    yield f"$ {context.command_path} --help\n{command.get_help(context)}"
    for below, one in getattr(command, "commands", {}).items():
        yield from helps(one, below, context)
