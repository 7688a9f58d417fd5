"""All that the code declares: the texts, defaults and bounds of the API, the commands, the settings and the errors.

A declaration runs when its module is imported, so no test of a request need notice an argument that is missing there.
"""

from collections.abc import Iterator
from typing import Annotated, Any, get_origin, get_type_hints

import typer
from fastapi.routing import iter_route_contexts
from pydantic import TypeAdapter

from localidades_api import __version__
from localidades_api.app import create_app
from localidades_api.catalogue.columns import COLUMNS
from localidades_api.cli import app as command_line
from localidades_api.errors import (
    AlreadyPublishedError,
    ComparisonRunningError,
    ContentTooLargeError,
    DatabaseUnavailableError,
    GoneError,
    ImportRunningError,
    InsufficientMemoryError,
    InvalidOgcParametersError,
    InvalidPageError,
    InvalidParametersError,
    LocalidadesError,
    MethodNotAllowedError,
    NoReleaseError,
    NotAcceptableError,
    NotFoundError,
    OverloadedError,
    RangeNotSatisfiableError,
    SearchUnavailableError,
    StatusError,
    TransfersFullError,
    UnavailableError,
    UncertainPublicationError,
    UnsupportedMediaTypeError,
)
from localidades_api.settings import Settings
from tests.support.golden import assert_golden, assert_golden_json

_FAULTS = [("page", "Give 1 or more.")]
ERRORS = [
    LocalidadesError(),
    LocalidadesError("A sentence.", members={"member": 1}, headers={"Header": "value"}),
    AlreadyPublishedError("2020-01", "use another."),
    ImportRunningError(),
    InsufficientMemoryError(),
    UncertainPublicationError("2020-01"),
    StatusError(418, "A teapot.", {"Header": "value"}),
    StatusError(499, "Nothing known.", None),
    InvalidParametersError(_FAULTS),
    InvalidOgcParametersError(_FAULTS),
    NotFoundError(),
    InvalidPageError(3),
    GoneError("2019-01", None),
    GoneError("2019-01", 10010001),
    MethodNotAllowedError(),
    MethodNotAllowedError("POST, OPTIONS"),
    NotAcceptableError(["text/csv", "application/json"]),
    NotAcceptableError(["text/csv"], "A reason."),
    RangeNotSatisfiableError(10),
    ContentTooLargeError(1000),
    ContentTooLargeError(1000, "rows"),
    UnsupportedMediaTypeError(["text/csv", "application/json"]),
    UnavailableError("A sentence.", members={"member": 1}),
    OverloadedError(),
    TransfersFullError(),
    ComparisonRunningError(),
    SearchUnavailableError(),
    NoReleaseError(),
    DatabaseUnavailableError(),
    DatabaseUnavailableError("For operators.", detail="For clients.", is_passing=True),
    DatabaseUnavailableError("For operators.", {"release": "2020-01"}, detail="For clients.", is_unforeseen=True),
]


def test_openapi_document_equals_the_golden_file() -> None:
    document = create_app(Settings()).openapi()
    assert document["info"].pop("version") == __version__
    assert_golden_json("openapi.json", document)


def test_addresses_outside_of_the_document_equal_the_golden_file() -> None:
    contexts = iter_route_contexts(create_app(Settings()).routes)
    hidden = [one for one in contexts if not getattr(one, "include_in_schema", True) and hasattr(one, "endpoint")]
    assert_golden_json("addresses.json", {f"{sorted(one.methods or ())} {one.path}": parameters(one) for one in hidden})


def parameters(route: Any) -> dict[str, Any]:  # noqa: ANN401  # FastAPI's
    """Return the name of a route, and the schemas of the parameters that it takes from the path and the query."""
    hints = get_type_hints(route.endpoint, include_extras=True)
    read = {name: hint for name, hint in hints.items() if get_origin(hint) is Annotated and name != "services"}
    return {"name": route.name} | {name: TypeAdapter(hint).json_schema() for name, hint in read.items()}


def test_help_of_every_command_equals_the_golden_file() -> None:
    pages = helps(typer.main.get_command(command_line), "localidades-api")
    assert_golden("help.txt", "\n\n".join(pages).encode())


def helps(command: Any, name: str, parent: Any = None) -> Iterator[str]:  # noqa: ANN401  # typer's own click
    """Yield the help of a command, then that of those below it."""
    context = command.context_class(command, info_name=name, parent=parent, terminal_width=100)
    yield f"$ {context.command_path} --help\n{command.get_help(context)}"
    for below, one in getattr(command, "commands", {}).items():
        yield from helps(one, below, context)


def test_settings_equal_the_golden_file() -> None:
    assert_golden_json("settings.json", Settings.model_json_schema())


def test_columns_equal_the_golden_file() -> None:
    assert_golden_json("columns.json", [column._asdict() for column in COLUMNS.values()])


def test_errors_equal_the_golden_file() -> None:
    assert_golden_json("errors.json", {"types": list(types(LocalidadesError)), "errors": [*map(described, ERRORS)]})


def types(error: type[LocalidadesError]) -> Iterator[dict[str, Any]]:
    """Yield what responses say of an error's type, then of those below it."""
    names = ("status", "title", "slug", "meaning", "remedy", "retry_after")
    yield {"type": error.__name__} | {name: getattr(error, name) for name in names if name in vars(error)}
    for one in error.__subclasses__():
        yield from types(one) if one.__module__ == error.__module__ else ()


def described(error: LocalidadesError) -> dict[str, Any]:
    own = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {"type": type(error).__name__, "text": str(error), "detail": error.detail, **own}
