"""Long and repetitive texts in every field: none holds the server, and none stays in its memory."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlencode

import pytest

from localidades_api.bulk.roles import ROLES
from localidades_api.extensions.ogc.router import OGC
from localidades_api.extensions.reconcile.entities import RECONCILE
from localidades_api.extensions.reconcile.vocabulary import COMPARED
from localidades_api.extensions.wscatgeo.router import WSCATGEO
from localidades_api.http.paths import LOCALIDADES, MATCH, NEAREST
from tests.support.application import database_with
from tests.support.catalogue import Place
from tests.support.long_texts import long_texts
from tests.support.machine import MAX_HELD, ask_watched, memory_of
from tests.support.wire import Live, ask, await_names, serving

_MAX_KEPT = 16 * 1024**2  # bytes
_IN_CELL, _IN_QUERY = 20_000, 3000  # characters
_SHORT = 80  # characters, which every parameter takes
_JSON, _CSV = ("Content-Type", "application/json"), ("Content-Type", "text/csv")
_FORM = ("Content-Type", "application/x-www-form-urlencoded")


class Sent(NamedTuple):
    """A request, and the field that has the texts."""

    field: str
    target: str
    header: tuple[str, str] = _JSON
    body: bytes = b""


@pytest.fixture(scope="module")
def live(server: str, migrated: str) -> Iterator[Live]:
    """Yield a server of as many municipios as the country has."""
    words = ("San José", "Villa de Santa María", "Nuevo Zapata", "Paso del Macho", "Hidalgo")
    places = [
        Place(f"{ent:02d}{mun:03d}0001", f"Lugar {mun}", f"Estado {ent}", nom_mun=f"{words[mun % 5]} {ent} {mun}")
        for ent in range(1, 33)
        for mun in range(1, 78)
    ]
    with database_with(server, migrated, {"2020-01": places}) as url, serving(url) as live:
        await_names(live.base)
        yield live


def rows(members: Iterable[Mapping[str, str]]) -> bytes:
    return json.dumps({"rows": list(members)}).encode()


def in_rows(texts: Sequence[str]) -> Iterator[Sent]:
    for role in ROLES.by_name:
        for target in (MATCH, f"{MATCH}preview/"):
            yield Sent(role, target, body=rows({"nombre": "San José", role: text} for text in texts))
    for kind in ("municipio", "estado"):
        yield Sent(kind, f"{MATCH}?kind={kind}", body=rows({"nombre": text} for text in texts))
    yield Sent("everything", MATCH, body=rows(dict.fromkeys(("nombre", "municipio", "estado"), text) for text in texts))
    yield Sent("latitud", NEAREST, body=rows({"latitud": text, "longitud": "-100"} for text in texts))
    yield Sent("members", MATCH, body=rows({"nombre": "San José", text: ""} for text in texts))
    for text in texts:
        cell = '"{}"'.format(text.replace('"', '""'))
        for csv in (f"nombre,estado\n{cell},Jalisco\n", f"nombre,{cell}\nSan José,x\n", f"{text}\n{text}\n"):
            yield Sent("CSV", MATCH, _CSV, csv.encode())


def in_batches(texts: Sequence[str]) -> Iterator[Sent]:
    def sent(field: str, member: str, value: object) -> Sent:
        return Sent(field, RECONCILE, _FORM, urlencode({member: json.dumps(value)}).encode())

    def batch(field: str, queries: Iterable[Mapping[str, object]]) -> Sent:
        return sent(field, "queries", {f"q{number}": query for number, query in enumerate(queries)})

    for kind, properties in COMPARED.items():
        yield batch(f"query of {kind}", ({"query": text, "type": kind} for text in texts))
        for name in properties:
            for given in (texts, [{"id": "x", "name": text} for text in texts]):
                queries = ({"query": "San José", "type": kind, "properties": [{"pid": name, "v": v}]} for v in given)
                yield batch(f"{name} of {kind}", queries)
    yield batch("type", ({"query": "x", "type": text} for text in texts))
    yield batch("pid", ({"query": "x", "properties": [{"pid": text, "v": "x"}]} for text in texts))
    yield batch("a member", ({"query": "x", text: "x"} for text in texts))
    yield sent("ids", "extend", {"ids": texts, "properties": [{"id": "nombre"}]})
    yield sent("properties", "extend", {"ids": ["010010001"], "properties": [{"id": text} for text in texts]})


_TARGETS = [
    f"{LOCALIDADES}suggest/?q={{}}", f"{LOCALIDADES}suggest/?kind=localidad,municipio,estado&q={{}}",
    f"{LOCALIDADES}?search={{}}", f"{LOCALIDADES}?sort=relevance&search={{}}", "/api/census/municipios/?search={}",
    "/api/census/estados/?search={}", f"{LOCALIDADES}nearest/?lat={{}}&lon=-100",
    f"{RECONCILE}suggest/entity/?prefix={{}}", f"{RECONCILE}suggest/type/?prefix={{}}",
    f"{RECONCILE}suggest/property/?prefix={{}}", f"{WSCATGEO}v2/mgem/buscar/{{}}", f"{WSCATGEO}localidades/{{}}",
    f"{OGC}/collections/localidades/items?bbox={{}}", f"{OGC}/collections/localidades/items?search={{}}",
    f"{OGC}/collections/localidades/items?datetime={{}}", f"{OGC}/collections/localidades/items/{{}}", "/{}",
]  # fmt: skip


def in_addresses(texts: Sequence[str]) -> Iterator[Sent]:
    for target in _TARGETS:
        for text in texts:
            yield Sent(target, target.format(quote(text, safe="")))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("text", "request_"), [(7, 113), pytest.param(1, 1, marks=pytest.mark.tail)])
def test_long_text_in_any_field_leaves_the_server_responsive(live: Live, text: int, request_: int) -> None:
    """One in so many texts is sent, and one in so many requests with them."""
    long, typed, short = (list(long_texts(length))[::text] for length in (_IN_CELL, _IN_QUERY, _SHORT))
    requests = (*in_rows(long), *in_batches(typed), *in_addresses(typed), *in_addresses(short))
    worst = sorted((ask_watched(live, *sent[1:]), sent.field) for sent in requests[::request_])
    assert worst[-1][0] <= MAX_HELD, worst[-5:]


@pytest.mark.tail
def test_long_texts_leave_nothing_in_memory(live: Live) -> None:
    def post(part: str) -> int:
        texts = (f"{part} {number} " * 10_000 for number in range(60))
        body = rows(dict.fromkeys(("nombre", "municipio", "estado"), text) for text in texts)
        assert ask(live.base, MATCH, _JSON, method="POST", body=body).status == 200
        return memory_of(live, "VmRSS")

    before = post("a")
    assert max(post(part) for part in ("b", "c")) < before + _MAX_KEPT
