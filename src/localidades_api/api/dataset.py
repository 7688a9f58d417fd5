"""Describes a release as a dataset: Data Package, schema.org and DCAT."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic_core import to_json, to_jsonable_python
from starlette.responses import Response

from localidades_api.api.params import ReleaseParam, StrictQuery
from localidades_api.api.public_address import requested_base
from localidades_api.api.services import ReleasesDep
from localidades_api.catalogue.attribution import CATALOGUE, ORIGIN, TERMS
from localidades_api.catalogue.columns import COLUMNS, ColumnType, LocalityColumn
from localidades_api.catalogue.mercator import MEXICO_BOX
from localidades_api.catalogue.schemas import Release
from localidades_api.downloads.formats import FILE_TYPES
from localidades_api.html.renderer import JSON, render_json
from localidades_api.http.negotiation import CODINGS
from localidades_api.http.paths import LOCALIDADES, PREFIX
from localidades_api.http.representation import PRIVATE, Representation, digest_of

DATA_PACKAGE = f"{LOCALIDADES}datapackage.json"
_COMMON: Mapping[str, object] = {
    "title": "Localidades de México",
    "catalogue": CATALOGUE,
    "origin": ORIGIN,
    "terms": TERMS,
    "publisher": "Instituto Nacional de Estadística y Geografía (INEGI)",
    "publisher_url": "https://www.inegi.org.mx/",
    "keywords": ["México", "localidades", "municipios", "estados", "INEGI", "claves geoestadísticas", "CVEGEO"],
    "box": MEXICO_BOX,
    "columns": list(COLUMNS),
}
_CONSTRAINTS: Mapping[ColumnType, dict[str, Any]] = {"count": {"minimum": 0}, "ambito": {"enum": ["U", "R"]}}
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")  # the usual name of a release

router = APIRouter(include_in_schema=False)


class DataPackageQuery(StrictQuery):
    """The parameters of the data package."""

    release: ReleaseParam = None


@router.get(DATA_PACKAGE.removeprefix(PREFIX))
async def get_data_package(
    request: Request, query: Annotated[DataPackageQuery, Query()], releases: ReleasesDep
) -> Response:
    """Describe the CSV file of a release as a Data Package, with types that keep the zeros of keys."""
    release = await releases.get(query.release)
    address = f"{requested_base(request)}{LOCALIDADES}download/?format=csv&release={release.name}"
    chosen = Representation.of_release(
        request.headers, release, f"json.{digest_of(address.encode())}", cache_control=PRIVATE, codings=CODINGS
    )
    return chosen.respond(to_json(describe_data_package(release, address)), JSON.headers)


def describe_data_package(release: Release, address: str) -> dict[str, Any]:
    """Return the data package of the CSV file at an address."""
    fields = [_field(column) for column in COLUMNS.values()]
    return _describe("datapackage.json", release, address=address, fields=fields)


def _field(column: LocalityColumn) -> dict[str, Any]:
    """Return the field of a column in Table Schema."""
    constraints = dict(_CONSTRAINTS.get(column.type, {}))
    if not column.nullable:
        constraints["required"] = True
    if column.digits:
        constraints["pattern"] = f"[0-9]{{{column.digits}}}"
    type_ = "string" if column.kind in {"key", "text"} else column.kind
    field = {"name": column.name, "type": type_, "description": column.meaning_es}
    return {**field, "constraints": constraints} if constraints else field


def describe_for_pages(release: Release, root: str) -> list[Mapping[str, Any]]:
    """Return the release as JSON-LD for schema.org and for DCAT; the demo must not be found as a dataset.

    Addresses are paths, which JSON-LD resolves relative to the page.
    """
    if release.is_demo:
        return []
    files = [
        {
            "name": f"localidades-{release.name}.{name}",
            "media_type": type_.media_type.partition(";")[0],
            "path": f"{root}{LOCALIDADES}download/?format={name}&release={release.name}",
        }
        for name, type_ in FILE_TYPES.items()
    ]
    page = f"{root}{PREFIX}/?release={release.name}"
    return [_describe(template, release, page=page, files=files) for template in ("schema_org.json", "dcat.json")]


def _describe(template: str, release: Release, **values: object) -> dict[str, Any]:
    contents = (
        f"Las {release.localities:,} localidades de los {release.municipalities:,} municipios y {release.states}"
        " estados de México, con su clave oficial (CVEGEO), nombre, ámbito, coordenadas y población."
    )
    return render_json(
        template,
        release=release,
        contents=contents,
        credit=release.credit("es"),
        published_at=to_jsonable_python(release.published_at),
        is_month=bool(_MONTH.fullmatch(release.name)),
        **_COMMON,
        **values,
    )
