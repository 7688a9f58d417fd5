"""Describes a release as a dataset: Data Package, schema.org and DCAT."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic_core import to_json
from starlette.responses import Response

from localidades_api.api.params import ReleaseParam, StrictQuery
from localidades_api.api.public_address import requested_base
from localidades_api.api.services import ReleasesDep
from localidades_api.catalogue.attribution import CATALOGUE, ORIGIN, TERMS
from localidades_api.catalogue.columns import COLUMNS, ColumnType, LocalityColumn
from localidades_api.catalogue.mercator import MEXICO_BOX
from localidades_api.catalogue.schemas import Release
from localidades_api.downloads.formats import FILE_TYPES
from localidades_api.html.renderer import JSON
from localidades_api.http.negotiation import CODINGS
from localidades_api.http.paths import LOCALIDADES, PREFIX
from localidades_api.http.representation import PRIVATE, Representation, digest_of

DATA_PACKAGE = f"{LOCALIDADES}datapackage.json"
TITLE = "Localidades de México"
_PUBLISHER = ("Instituto Nacional de Estadística y Geografía (INEGI)", "https://www.inegi.org.mx/")
_KEYWORDS = ["México", "localidades", "municipios", "estados", "INEGI", "claves geoestadísticas", "CVEGEO"]
_CONSTRAINTS: Mapping[ColumnType, dict[str, Any]] = {"count": {"minimum": 0}, "ambito": {"enum": ["U", "R"]}}
_LINKS = ("dct:license", "dct:source", "dcat:landingPage", "dcat:downloadURL", "dcat:accessURL", "dcat:mediaType")
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
    """Return the data package of the CSV file at an address (Data Package 1, Table Schema, CSV Dialect)."""
    return {
        "profile": "tabular-data-package",
        "name": "localidades",
        "title": TITLE,
        "description": _description(release),
        "version": release.name,
        "created": release.published_at,
        "keywords": _KEYWORDS,
        **({} if release.is_demo else {"licenses": [{"title": "Términos de libre uso del INEGI", "path": TERMS}]}),
        "sources": [{"title": release.credit("es"), "path": ORIGIN}],
        "resources": [
            {
                "profile": "tabular-data-resource",
                "name": "localidades",
                "path": address,
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "dialect": {"delimiter": ",", "lineTerminator": "\r\n", "quoteChar": '"', "doubleQuote": True},
                "schema": {
                    "fields": [_field(column) for column in COLUMNS.values()],
                    "missingValues": [""],
                    "primaryKey": "id",
                },
            }
        ],
    }


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
    return [] if release.is_demo else [_as_schema_org(release, root), _as_dcat(release, root)]


def _as_schema_org(release: Release, root: str) -> dict[str, Any]:
    west, south, east, north = MEXICO_BOX
    name, address = _PUBLISHER
    return {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": f"{TITLE} ({release.name})",
        "alternateName": CATALOGUE,
        "description": _contents(release),
        "url": f"{root}{PREFIX}/?release={release.name}",
        "sameAs": ORIGIN,
        "version": release.name,
        "license": TERMS,
        "creditText": release.credit("es"),
        "isAccessibleForFree": True,
        "inLanguage": "es",
        "keywords": _KEYWORDS,
        "creator": {"@type": "Organization", "name": name, "url": address},
        "dateModified": release.published_at.isoformat(),
        **({"temporalCoverage": release.name} if _MONTH.fullmatch(release.name) else {}),
        "spatialCoverage": {
            "@type": "Place",
            "name": "México",
            "geo": {"@type": "GeoShape", "box": f"{south} {west} {north} {east}"},
        },
        "variableMeasured": list(COLUMNS),
        "distribution": [
            {"@type": "DataDownload", "name": title, "encodingFormat": media_type, "contentUrl": path}
            for title, media_type, path in _files(release, root)
        ],
    }


def _as_dcat(release: Release, root: str) -> dict[str, Any]:
    west, south, east, north = MEXICO_BOX
    name, address = _PUBLISHER
    outline = f"POLYGON(({west} {south},{east} {south},{east} {north},{west} {north},{west} {south}))"
    return {
        "@context": {
            "dcat": "http://www.w3.org/ns/dcat#",
            "dct": "http://purl.org/dc/terms/",
            "foaf": "http://xmlns.com/foaf/0.1/",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
            "media": "https://www.iana.org/assignments/media-types/",
            **{name: {"@language": "es"} for name in ("dct:title", "dct:description", "dcat:keyword")},
            **{name: {"@type": "@id"} for name in _LINKS},
        },
        "@id": f"{root}{PREFIX}/?release={release.name}",
        "@type": "dcat:Dataset",
        "dct:title": f"{TITLE} ({release.name})",
        "dct:description": _description(release),
        "dct:identifier": f"localidades-{release.name}",
        "dct:publisher": {"@id": address, "@type": "foaf:Organization", "foaf:name": name},
        "dct:license": TERMS,
        "dct:source": ORIGIN,
        "dct:modified": {"@value": release.published_at.isoformat(), "@type": "xsd:dateTime"},
        "dct:spatial": {
            "@type": "dct:Location",
            "dcat:bbox": {"@value": outline, "@type": "http://www.opengis.net/ont/geosparql#wktLiteral"},
        },
        "dcat:version": release.name,
        "dcat:keyword": _KEYWORDS,
        "dcat:landingPage": f"{root}{PREFIX}/?release={release.name}",
        "dcat:distribution": [
            {
                "@type": "dcat:Distribution",
                "dct:title": title,
                "dcat:downloadURL": path,
                "dcat:accessURL": path,
                "dcat:mediaType": f"media:{media_type}",
                "dct:license": TERMS,
            }
            for title, media_type, path in _files(release, root)
        ],
    }


def _files(release: Release, root: str) -> list[tuple[str, str, str]]:
    """Return the title, the media type and the path of the file of each format."""
    return [
        (
            f"localidades-{release.name}{type_.ending}",
            type_.media_type.partition(";")[0],
            f"{root}{LOCALIDADES}download/?format={name}&release={release.name}",
        )
        for name, type_ in FILE_TYPES.items()
    ]


def _description(release: Release) -> str:
    return f"{_contents(release)} {release.credit('es')}"


def _contents(release: Release) -> str:
    return (
        f"Las {release.localities:,} localidades de los {release.municipalities:,} municipios y {release.states}"
        " estados de México, con su clave oficial (CVEGEO), nombre, ámbito, coordenadas y población."
    )
