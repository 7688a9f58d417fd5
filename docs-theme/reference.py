"""Writes the tables of the reference pages, which include them, from what the code declares: `reference.py FOLDER`."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from localidades_api.api.site import answerable
from localidades_api.app import create_app
from localidades_api.catalogue.columns import COLUMNS
from localidades_api.cli import app as command_line
from localidades_api.html.languages.translators import LANGUAGES, Language, translator
from localidades_api.observability.metrics import METRICS
from localidades_api.settings import PREFIX, Settings, default_data_dir

COMMON = 5  # operations: a parameter of so many, which means the same in all of them, is described once

_SPANISH = {
    "Common parameters": "Parámetros comunes",
    "No parameters.": "Sin parámetros.",
    "column": "columna",
    "default": "por omisión",
    "example": "ejemplo",
    "in the path": "en la ruta",
    "meaning": "significado",
    "parameter": "parámetro",
    "required": "obligatorio",
    "status": "estado HTTP",
    "takes": "acepta",
    "to": "a",
    "type": "tipo",
    "up to": "hasta",
    "what to do": "qué hacer",
}


class Words:
    """The words of the tables in a language."""

    def __init__(self, language: Language) -> None:
        self._known: Mapping[str, str] = {} if language == LANGUAGES[0] else _SPANISH

    def __call__(self, text: str) -> str:
        """Return a text of this program in the language."""
        return self._known[text] if self._known else text

    def table(self, header: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
        """Return a table in Markdown; a row's text may have bars and line breaks."""
        cells = [[*map(self, header)], ["---"] * len(header)]
        cells += [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
        return "".join(f"| {' | '.join(row)} |\n" for row in cells)

    def bounds(self, least: object, most: object) -> str:
        """Return what a number may be, such as `1 to 1000`."""
        if least is None:
            return f"{self('up to')} {most}"
        return f"{least} {self('to')} {most}"


def code(text: object) -> str:
    """Return a text in the font of code; nothing for nothing."""
    return f"`{text}`" if str(text) else ""


# -- Of the API: in both languages


def parameters(language: Language) -> str:
    """Return a section for each operation of the OpenAPI document, after the parameters that many of them take."""
    words = Words(language)
    # FastAPI's `openapi` has no language; ours has (`api/openapi.py`).
    document = create_app(Settings()).openapi(language)  # type: ignore[call-arg]
    operations = {
        f"{method.upper()} {path}".removeprefix("GET "): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    counted = Counter(_key(one) for operation in operations.values() for one in operation.get("parameters", ()))
    common = {key for key, count in counted.items() if count >= COMMON}
    described = {_key(one): one for operation in operations.values() for one in operation.get("parameters", ())}
    rows = (_parameter(described[key], document, words) for key in described if key in common)
    title = words("Common parameters")
    sections = [f"## {title}\n", words.table(("parameter", "meaning", "takes", "default"), rows)]
    for name, operation in operations.items():
        taken = operation.get("parameters", ())
        shared = ", ".join(code(one["name"]) for one in taken if _key(one) in common)
        own = [_parameter(one, document, words) for one in taken if _key(one) not in common]
        sections += [f"## {code(name)}\n", f"{operation['description']}\n"]
        sections += [f"[{title}](#{title.lower().replace(' ', '-')}): {shared}.\n"] if shared else []
        sections += [words.table(("parameter", "meaning", "takes", "default"), iter(own))] if own else []
        sections += [] if taken else [words("No parameters.") + "\n"]
    return "\n".join(sections)


def _key(parameter: Mapping[str, Any]) -> tuple[str, str, str]:
    schema = parameter["schema"]
    limits = {name: schema.get(name) for name in ("enum", "minimum", "maximum", "default", "$ref")}
    return parameter["name"], parameter.get("description", ""), repr(limits)


def _parameter(parameter: Mapping[str, Any], document: Mapping[str, Any], words: Words) -> Sequence[str]:
    schema = dict(parameter["schema"])
    if reference := schema.get("$ref"):
        schema |= document["components"]["schemas"][reference.rpartition("/")[2]]
    if parameter["in"] == "path":
        default = words("in the path")
    else:
        default = words("required") if parameter["required"] else code(schema.get("default", ""))
    return code(parameter["name"]), parameter.get("description", ""), _values(schema, words), default


def _values(schema: Mapping[str, Any], words: Words) -> str:
    """Return the values that a schema allows, or an example."""
    if "enum" in schema:
        return ", ".join(map(code, schema["enum"]))
    if "maximum" in schema and schema["maximum"] < 2**31:
        return words.bounds(schema.get("minimum"), schema["maximum"])
    return code(next(iter(schema.get("examples", ())), ""))


def errors(language: Language) -> str:
    """Return the table of problem types."""
    words, say = Words(language), translator(language)
    rows = ([code(one.slug), str(int(one.status)), say(one.meaning), say(one.remedy)] for one in answerable())
    return words.table(("type", "status", "meaning", "what to do"), rows)


def columns(language: Language) -> str:
    """Return the table of the columns of a download."""
    rows = (
        [code(name), one.meaning if language == LANGUAGES[0] else f"{one.meaning_es}.", code(one.example or "")]
        for name, one in COLUMNS.items()
    )
    return Words(language).table(("column", "meaning", "example"), rows)


# -- Of the operator: in English


def settings() -> str:
    """Return the table of environment variables."""
    words = Words(LANGUAGES[0])
    rows = (
        [code("DATABASE_URL" if name == "database_url" else PREFIX + name.upper()), *_setting(field, words)]
        for name, field in Settings.model_fields.items()
    )
    return words.table(("variable", "meaning", "takes", "default"), rows)


def _setting(field: FieldInfo, words: Words) -> Sequence[str]:
    least = next((one.ge for one in field.metadata if isinstance(one, Ge)), None)
    most = next((one.le for one in field.metadata if isinstance(one, Le)), None)
    bounds = "" if most is None else words.bounds(least, most)
    default = "" if field.default is None or field.default_factory is default_data_dir else str(field.default)
    return field.description or "", bounds, code(default)


def commands() -> str:
    """Return a section for each command, with its arguments and options."""
    return "\n".join(_commands(typer.main.get_command(command_line)))


def _commands(group: Any, above: str = "") -> Iterator[str]:  # noqa: ANN401  # a group of typer's own click
    words = Words(LANGUAGES[0])
    for name, command in group.commands.items():
        yield f"## {code(above + name)}\n"
        yield (command.help or "").replace("\b\n", "") + "\n"
        rows = [_option(one) for one in command.params if one.name != "help"]
        if rows:
            yield words.table(("option", "meaning", "default"), iter(rows))
        if isinstance(command, typer.core.TyperGroup):
            yield from _commands(command, f"{above}{name} ")


def _option(option: Any) -> Sequence[str]:  # noqa: ANN401  # an option or an argument of typer's own click
    names = [one for one in (*option.opts, *option.secondary_opts) if one.startswith("-")] or [option.name.upper()]
    default = "" if option.default in (None, False) or callable(option.default) else option.default
    return ", ".join(map(code, names)), option.help or "", code(default)


def metrics() -> str:
    """Return the table of metrics."""
    rows = (
        [code(f"localidades_{name}"), one.type, ", ".join(map(code, one.labels)), one.text]
        for name, one in METRICS.items()
    )
    return Words(LANGUAGES[0]).table(("metric", "type", "labels", "meaning"), rows)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for written in (parameters, errors, columns):
        for language in LANGUAGES:
            (folder / f"{written.__name__}.{language}.md").write_text(written(language), encoding="utf-8")
    for one in (settings, commands, metrics):
        (folder / f"{one.__name__}.md").write_text(one(), encoding="utf-8")
