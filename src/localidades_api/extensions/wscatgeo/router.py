"""INEGI's web service wscatgeo, answered from a release, for the programs written for it.

Its two versions differ in the names of their members. docs/guides/wscatgeo.md records what is known, inferred and
guessed about that service. It ignores parameters that it does not know, so this module does, too.
"""

import re
from collections.abc import Mapping

from fastapi import APIRouter, Request
from pydantic_core import to_json
from starlette.responses import Response

from localidades_api.api.services import DatabaseDep, ReleasesDep
from localidades_api.catalogue.keys import KEYS_OF_A_MUNICIPIO, KEYS_OF_A_STATE, STATE_KEYS, municipalities_of
from localidades_api.catalogue.schemas import Release
from localidades_api.database.pool import Database
from localidades_api.errors import NotFoundError
from localidades_api.extensions.wscatgeo.queries import MAX_FOUND, Level, Rows, Version, find_areas, list_areas
from localidades_api.http.representation import Representation
from localidades_api.releases.tracker import ReleaseTracker

router = APIRouter(include_in_schema=False)

WSCATGEO = "/wscatgeo/"
_MEDIA = {"Content-Type": "application/json"}  # without a charset, as that service says
# A path below the address of the service, with or without a trailing slash. A key may lack its zeros after a slash.
_MUN = r"/?(?P<mun>(?<=/)\d{1,3}|\d{3})"
_LOC = r"/?(?P<loc>(?<=/)\d{1,4}|(?<=\d{3})\d{4})"
_PATHS: Mapping[Level, re.Pattern[str]] = {
    "mgee": re.compile(r"mgee(/(?P<ent>\d\d?))?/?", re.ASCII),
    "mgem": re.compile(rf"mgem(/agem|/(?P<ent>\d\d?)({_MUN})?)?/?", re.ASCII),
    "localidades": re.compile(
        rf"localidades/(?P<ent>\d\d?){_MUN}({_LOC}|/(?P<ambito>[UR]))?/?", re.ASCII | re.IGNORECASE
    ),
}
_MAX_WORDS = 100  # characters
_NAMES: Mapping[Level, str] = {"mgee": "las entidades", "mgem": "los municipios", "localidades": "las localidades"}
_NO_PATH = (
    "La dirección no existe: este servicio tiene mgee, mgem y localidades, por clave o con buscar. Calles,"
    " asentamientos y contornos los tiene el del INEGI."
)


class _Refusal(Exception):  # noqa: N818  # an answer, with a sentence for whoever reads the answer
    """Raised with the sentence of an answer without results."""


@router.get(f"{WSCATGEO}{{path:path}}")
async def answer_as_wscatgeo(
    request: Request, path: str, releases: ReleasesDep, database: DatabaseDep, release: str | None = None
) -> Response:
    """Answer with `datos`, or with a sentence; the status is 200 either way, as clients of INEGI's service expect."""
    version: Version = "v2" if path.startswith("v2/") else "v1"
    path = path.removeprefix("v2/")
    try:
        chosen = await _release(release, releases)
        body = _envelope(chosen, await _read(version, path, chosen, database), is_one=_is_one(path))
    except _Refusal as refusal:
        body = to_json({"result": "404", "mensaje": str(refusal)})
        return Response(body, headers={"Cache-Control": "no-cache", **_MEDIA})
    return Representation.of(request.headers, chosen, "wscatgeo", is_pinned=release is not None).respond(body, _MEDIA)


async def _release(name: str | None, releases: ReleaseTracker) -> Release:
    try:
        return await releases.get(name)
    except NotFoundError:
        raise _Refusal("La versión que pide `release` no existe: /api/census/releases/ las enumera.") from None


async def _read(version: Version, path: str, release: Release, database: Database) -> Rows:
    for level, pattern in _PATHS.items():
        if path.startswith(search := f"{level}/buscar/"):
            words = path.removeprefix(search).rstrip("/").replace("+", " ")  # as forms write a blank
            return await _find(version, level, words, release, database)
        if keys := pattern.fullmatch(path):
            first, last = _range(level, keys.groupdict())
            ambito = (keys.groupdict().get("ambito") or "").upper() or None
            rows = await list_areas(database, release, version, level, first, last, ambito=ambito)
            if not rows.quantity:
                raise _Refusal(f"La clave no existe entre {_NAMES[level]}.")
            return rows
    raise _Refusal(_NO_PATH)


async def _find(version: Version, level: Level, words: str, release: Release, database: Database) -> Rows:
    if not 0 < len(words) <= _MAX_WORDS or not words.isprintable():
        raise _Refusal(f"El texto debe tener de 1 a {_MAX_WORDS} letras.")
    rows = await find_areas(database, release, version, level, words)
    if not rows.quantity:
        raise _Refusal(f"El texto no existe en los nombres de {_NAMES[level]}.")
    if rows.quantity > MAX_FOUND:
        raise _Refusal(f"El texto está en más de {MAX_FOUND:,} nombres: escriba más letras.")
    return rows


def _range(level: Level, keys: Mapping[str, str | None]) -> tuple[int, int]:
    """Return the lowest and the highest key of the areas that a path names."""
    ent, mun, loc = (int(keys.get(name) or 0) for name in ("ent", "mun", "loc"))
    if level == "mgee":
        return (ent, ent) if keys["ent"] else (STATE_KEYS[0], STATE_KEYS[-1])
    municipio = ent * KEYS_OF_A_STATE + mun
    if level == "mgem":
        if keys["mun"]:
            return municipio, municipio
        return municipalities_of(ent) if keys["ent"] else (0, municipalities_of(STATE_KEYS[-1])[1])
    lowest = municipio * KEYS_OF_A_MUNICIPIO
    return (lowest + loc, lowest + loc) if keys["loc"] else (lowest, lowest + KEYS_OF_A_MUNICIPIO - 1)


def _is_one(path: str) -> bool:
    """Return whether the answer is an object instead of an array: that of a single estado."""
    named = _PATHS["mgee"].fullmatch(path)
    return bool(named and named["ent"])


def _envelope(release: Release, rows: Rows, *, is_one: bool) -> bytes:
    data = rows.members if is_one else f"[{rows.members}]"
    source = to_json({"Fuente_informacion_estadistica": release.credit("es")}).decode()
    return f'{{"datos":{data},"metadatos":{source},"numReg":{rows.quantity}}}'.encode()
