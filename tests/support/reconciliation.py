"""The community group's JSON schemas of the Reconciliation Service API 0.2, where they lie beside the project."""

import json
from functools import cache
from typing import Any

import jsonschema_rs

from tests.support.wire import ROOT

_SCHEMAS = ROOT.parent / "shared" / "reconciliation"
_OPENAPI = "http://swagger.io/v2/schema.json"  # the manifest's schema refers to it


HAS_SCHEMAS = _SCHEMAS.is_dir()


def hold_to(name: str, content: object) -> None:
    """Validate an answer against the schema of that name."""
    _validator(name).validate(content)


@cache
def _validator(name: str) -> jsonschema_rs.Draft7Validator:
    schema = _read(name)
    beside = schema["$id"].rpartition("/")[0]
    resources = [(f"{beside}/type.json", _read("type")), (_OPENAPI, _read("openapi"))]
    return jsonschema_rs.Draft7Validator(schema, registry=jsonschema_rs.Registry(resources))


def _read(name: str) -> dict[str, Any]:
    """Read a schema without the name of its dialect, which none of the published ones has."""
    schema: dict[str, Any] = json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return {member: value for member, value in schema.items() if member != "$schema"}
