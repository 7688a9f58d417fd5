"""The Reconciliation Service API 0.2, as OpenRefine and other clients use it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any

import httpx
import jsonschema_rs
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.catalogue.columns import COLUMNS
from localidades_api.catalogue.schemas import LocalityDetail
from localidades_api.extensions.reconcile.vocabulary import FETCHED, PROPERTIES
from tests.support.application import Below, below_a_prefix, client_of, recorded_statements
from tests.support.wire import ROOT

_SCHEMAS = ROOT.parent / "shared" / "reconciliation"
_OPENAPI = "http://swagger.io/v2/schema.json"  # referenced by the manifest's schema
HAS_SCHEMAS = _SCHEMAS.is_dir()


@cache
def validator(name: str) -> jsonschema_rs.Draft7Validator:
    """Return the validator of a schema, without its `$schema`, which names an unpublished dialect."""
    type_, openapi, schema = [
        {member: value for member, value in json.loads((_SCHEMAS / f"{part}.json").read_text()).items()
         if member != "$schema"}
        for part in ("type", "openapi", name)
    ]  # fmt: skip
    beside = schema["$id"].rpartition("/")[0]
    registry = jsonschema_rs.Registry([(f"{beside}/type.json", type_), (_OPENAPI, openapi)])
    return jsonschema_rs.Draft7Validator(schema, registry=registry)


RECONCILE = "/api/census/reconcile/"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BATCH = "reconciliation-result-batch"
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PROPERTY = st.fixed_dictionaries(
    {"pid": st.sampled_from(["municipio", "estado", "lat", "lon", "ambito", "cvegeo", "x"]), "v": ANYTHING}
)
QUERIES = st.fixed_dictionaries({}, optional={
    "query": st.sampled_from(["Ninguno", "Aguascalientes", "010010001"]) | ANYTHING,
    "type": st.sampled_from(["localidad", "municipio", "estado", "x"]) | ANYTHING,
    "limit": st.integers(-1, 200) | ANYTHING,
    "properties": st.lists(PROPERTY, max_size=4) | ANYTHING,
    "type_strict": st.sampled_from(["any", "all", "should", "x"]),
    "more": ANYTHING,
})  # fmt: skip


async def post(client: httpx.AsyncClient, **fields: object) -> httpx.Response:
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    return await client.post(RECONCILE, data=texts)


async def asked(client: httpx.AsyncClient, *queries: object) -> list[dict[str, Any]]:
    """Return the results of a batch, in the order of its queries."""
    batch = {f"q{number}": query for number, query in enumerate(queries)}
    answer = await post(client, queries=batch)
    assert answer.status_code == 200, answer.text
    results: dict[str, dict[str, Any]] = answer.json()
    assert list(results) == list(batch)
    if HAS_SCHEMAS:
        validator(BATCH).validate(results)
    return list(results.values())


def query_of(query: str, properties: Mapping[str, object], kind: str | None = None) -> dict[str, object]:
    listed = [{"pid": pid, "v": value} for pid, value in properties.items()]
    return {"query": query, "properties": listed, **({"type": kind} if kind else {})}


async def best(client: httpx.AsyncClient, query: str, properties: Mapping[str, object] | None = None) -> dict[str, Any]:
    """Return the best candidate for a name."""
    [result] = await asked(client, query_of(query, properties or {}))
    assert "error" not in result, result
    candidate: dict[str, Any] = result["result"][0]
    return candidate


@pytest.mark.skipif(
    not HAS_SCHEMAS, reason="the community group's schemas (beside the project) are not on this machine"
)
async def test_responses_match_the_published_schemas(client: httpx.AsyncClient) -> None:
    validator("manifest").validate((await client.get(RECONCILE)).json())
    queries = {"a": {"query": "Asintos"}, "b": {"query": "Ninguno", "limit": 0}, "c": {"query": "Ardi"}}
    validator("reconciliation-query-batch").validate(queries)
    validator(BATCH).validate((await post(client, queries=queries)).json())
    for what, name in (("entity", "entities"), ("type", "types"), ("property", "properties")):
        answer = await client.get(f"{RECONCILE}suggest/{what}/", params={"prefix": "a"})
        assert answer.json()["result"]
        validator(f"suggest-{name}-response").validate(answer.json())
    for kind, ids in FETCHED.items():
        proposed = (await client.get(f"{RECONCILE}properties/", params={"type": kind})).json()
        assert [column["id"] for column in proposed["properties"]] == list(ids)
        validator("data-extension-property-proposal").validate(proposed)
    query = {"ids": ["010010001", "01001", "01", "x"], "properties": [{"id": column} for column in PROPERTIES]}
    validator("data-extension-query").validate(query)
    validator("data-extension-response").validate((await post(client, extend=query)).json())


# -- The manifest


@below_a_prefix
async def test_addresses_of_the_manifest_have_the_host_and_the_prefix_and_work(app: FastAPI, below: Below) -> None:
    async with below(app, "/claves", "https://example.org:8443") as client:
        manifest = (await client.get(f"/claves{RECONCILE}")).json()
        for address in (
            manifest["view"]["url"].replace("{{id}}", "010010001"),
            manifest["preview"]["url"].replace("{{id}}", "010010001"),
            *("".join(service.values()) + "?prefix=a" for service in manifest["suggest"].values()),
            "".join(manifest["extend"]["propose_properties"].values()) + "?type=localidad",
        ):
            assert address.startswith("https://example.org:8443/claves/api/census/reconcile/")
            assert (await client.get(address, follow_redirects=True)).status_code == 200, address


# -- Methods


async def test_endpoint_allows_get_and_post_and_the_rest_get_only(client: httpx.AsyncClient) -> None:
    preflight = await client.options(RECONCILE, headers={"Origin": "http://a", "Access-Control-Request-Method": "POST"})
    assert (preflight.status_code, preflight.headers["access-control-allow-methods"]) == (204, "GET, HEAD, POST")
    elsewhere = await client.post(f"{RECONCILE}suggest/entity/", data={"prefix": "a"})
    for answer, allow in ((await client.put(RECONCILE), "GET, POST, OPTIONS"), (elsewhere, "GET")):
        assert (answer.status_code, answer.headers["allow"]) == (405, allow)


# -- Queries


async def test_queries_by_get_are_answered_as_those_by_post(client: httpx.AsyncClient) -> None:
    batch = json.dumps({"a": {"query": "asientos"}, "b": {"query": "Ninguno"}})
    by_get = await client.get(RECONCILE, params={"queries": batch})
    assert by_get.json() == (await post(client, queries=batch)).json()
    assert (await client.post(RECONCILE.rstrip("/"), data={"queries": batch})).json() == by_get.json()
    assert by_get.headers["catalogue-release"] == "2020-01"
    assert by_get.headers["cache-control"] == "no-store"


async def test_features_list_differences_that_lower_the_score(client: httpx.AsyncClient) -> None:
    rows: list[tuple[str, dict[str, object], set[str]]] = [
        ("Asintos", {"municipio": "Municipio 002"}, {"spelling"}),
        ("Asientos", {"municipio": "001"}, {"municipio"}),
        ("Asientos", {"estado": "Atlantis"}, {"estado"}),
        ("Asientos", {"ambito": "urbana"}, {"ambito"}),
        ("El Bellaco", {"lat": "25,5", "lon": -102.296111}, {"distance", "bracket"}),
    ]
    for query, properties, features in rows:
        candidate = await best(client, query, properties)
        assert {feature["id"] for feature in candidate["features"]} == features
        assert all(feature["value"] > 0 for feature in candidate["features"])
        assert candidate["score"] < (await best(client, candidate["name"]))["score"]


VALUES: list[dict[str, object]] = [
    {"municipio": "Municipio 001", "estado": "Aguascalientes"},
    {"municipio": "01001"},
    {"municipio_id": 1001},
    {"municipio_clave": "001", "estado_abreviatura": "Ags."},
    {"municipio": {"id": "01001", "name": "Municipio 001"}, "estado": {"id": "01", "name": "Aguascalientes"}},
    {"municipio": {"id": "Q1", "name": "Municipio 001"}},
    {"municipio": ["Municipio 007", "Municipio 001"]},
    {"estado": 1.0, "municipio": "Municipio 001"},
    {"estado": "Aguascalientes\nAguascalientes", "municipio": "Municipio 001"},
    {"estado": float("nan"), "municipio": "Municipio 001"},
    {"cvegeo": 10010004},
    {"municipio": "Municipio 001", "clave": "0004"},
    {"lat": 21.880833, "lon": "-102.296111", "municipio": "Municipio 001", "estado": ""},
    {"lat": "-102.296111", "lon": "21.880833", "municipio": "Municipio 001"},
]


async def test_property_value_may_be_text_number_list_or_entity(client: httpx.AsyncClient) -> None:
    results = await asked(client, *(query_of("Ardillas de Abajo", properties) for properties in VALUES))
    for properties, result in zip(VALUES, results, strict=True):
        [candidate, *_] = result["result"]
        assert (candidate["id"], candidate["match"]) == ("010010004", True), properties
        assert not [feature for feature in candidate["features"] if feature["value"] is False], properties  # unusable


async def test_unusable_property_is_reported_and_the_row_is_matched(client: httpx.AsyncClient) -> None:
    for properties, unused in (
        ({"lat": "N/D", "lon": "-102.3"}, {"latitud", "longitud"}),
        ({"lat": "21.88"}, {"latitud"}),
        ({"lat": 0, "lon": 0}, {"latitud", "longitud"}),
        ({"ambito": "?"}, {"ambito"}),
        ({"poblacion": 500, "abreviatura": "Ags."}, {"poblacion", "abreviatura"}),
    ):
        candidate = await best(client, "Asientos", {"municipio": "Municipio 002", **properties})
        assert candidate["match"] is True
        assert {feature["id"] for feature in candidate["features"] if feature["value"] is False} == unused


async def test_match_is_true_for_one_certain_candidate_only(client: httpx.AsyncClient) -> None:
    rows: list[tuple[dict[str, object], list[str], bool]] = [
        (query_of("Zacatecas", {}, "estado"), ["32"], True),
        (query_of("Zacatekas", {}, "estado"), ["32"], True),
        (query_of("32", {}, "estado"), ["32"], True),
        (query_of("Municipio 002, Aguascalientes", {}, "municipio"), ["01002"], True),
        (query_of("010020001", {}, "localidad"), ["010020001"], True),
        (query_of("Asientos, Municipio 002, Ags.", {}, "localidad"), ["010020001"], True),
        ({"query": "Zacatecas", "type": ["localidad", "estado"], "type_strict": "any"}, ["32"], True),
        # Two that are alike, one that is only similar, and contradictions.
        (query_of("Ninguno", {"municipio": "Municipio 001"}), ["010010002", "010010003"], False),
        (query_of("Ardi", {}), ["010010004"], False),
        (query_of("Zacatecas", {"cvegeo": "01"}, "estado"), ["01", "32"], False),  # the key and the name of two
        (query_of("Municipio 002", {"cvegeo": "01001"}, "municipio"), ["01001", "01002"], False),
        (query_of("Municipio 002", {"cvegeo": "01002", "estado": "Zacatecas"}, "municipio"), ["01002"], False),
        (query_of("Asientos", {"estado": "Calientes"}, "localidad"), ["010020001"], False),
        ({"query": "Aguascalientes", "type": ["localidad", "estado"], "limit": 2}, ["01", "010010001"], False),
        ({"query": "Aguascalientes", "type": ["localidad", "estado"], "type_strict": "all"}, [], False),
    ]
    for (query, keys, match), result in zip(rows, await asked(client, *(row[0] for row in rows)), strict=True):
        candidates = result["result"]
        assert [candidate["id"] for candidate in candidates][: len(keys) or 1] == keys, query
        assert [candidate["id"] for candidate in candidates if candidate["match"]] == (keys if match else []), query
        assert not match or 97 <= candidates[0]["score"] < 100
        assert not match or candidates[0]["type"][0]["id"] in str(query["type"])


BAD_QUERIES: list[tuple[object, str]] = [
    ({"query": "Asientos", "type": "ciudad"}, "type: ciudad is unknown; use localidad, municipio, estado."),
    ({"query": "Asientos", "properties": [{"pid": "<b>", "v": "x"}]}, "ASCII) is unknown; use ambito, "),
    ({"query": "Asientos", "properties": [{"pid": "lat"}]}, "properties[0].v: It is required."),
    ({"query": "Asientos", "properties": [{}] * 101}, "properties: Give 100 or fewer."),
    ({"query": "Asientos"} | dict.fromkeys(map(str, range(101))), "A query is an object, such as"),
    *(
        ({"query": "Asientos", "properties": [{"pid": "estado", "v": v}]}, "properties[0].v: Give a text, a number, an")
        for v in (["x"] * 101, True, [{"id": 5}])
    ),
    ({"query": "Asientos", "limit": 0}, "limit: Input should be greater than or equal to 1."),
    ({"query": "Asientos", "kind": "localidad"}, "kind: There is no such member."),
    ({"query": " "}, "query: Give a name or a key."),
    ({"query": "Asientos", "type": ""}, "type: an empty id is unknown; use localidad, municipio, estado."),
    ({"query": "Asientos", "type": [5]}, "type: Give the id of a type, or a list of"),
    *((query, 'A query is an object, such as {"query": "Guadalajara"}.') for query in ("Asientos", None)),
]


async def test_bad_query_is_named_and_the_others_are_answered(client: httpx.AsyncClient) -> None:
    good = {"query": "Asientos"}
    before, *wrong, after = await asked(client, good, *(query for query, _ in BAD_QUERIES), good)
    for (query, named), result in zip(BAD_QUERIES, wrong, strict=True):
        assert result["result"] == [], query
        assert named in result["error"]
    assert before["result"][0]["id"] == after["result"][0]["id"] == "010020001"


_OF_A_LIBRARY = re.compile(r"pydantic|valid|instance|unable|Field required|permitted|[A-Z][a-z]+[A-Z]")


@given(queries=st.dictionaries(st.text(max_size=4), QUERIES | ANYTHING, max_size=4))
async def test_any_batch_has_a_result_for_each_query(app: FastAPI, queries: dict[str, object]) -> None:
    async with client_of(app) as client:
        answer = await post(client, queries=queries)
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == queries.keys()
    assert not _OF_A_LIBRARY.search(" ".join(result.get("error", "") for result in answer.json().values()))
    if HAS_SCHEMAS:
        validator(BATCH).validate(answer.json())


async def test_batch_does_not_block_other_requests(client: httpx.AsyncClient, app: FastAPI) -> None:
    done: list[str] = []

    async def ask_many() -> None:
        await asked(client, *({"query": f"Lugr {number} del Rancho"} for number in range(500)))
        done.append("batch")

    async def ask_one() -> None:
        await asyncio.sleep(0)
        async with client_of(app) as other:
            await other.get("/livez")
        done.append("probe")

    await asyncio.gather(ask_many(), ask_one())
    assert done == ["probe", "batch"]


# -- Bad requests


async def test_bad_form_is_refused_naming_its_field(client: httpx.AsyncClient) -> None:
    for body, parameter in (
        (b"", "queries"),
        (b"queries=%7B%7D&extend=%7B%7D", "queries"),
        (b"queries=%7B%7D&queries=%7B%7D", "queries"),
        (b"queries=%7B%7D&callback=x", "callback"),
        (b"queries=%7B", "queries"),
        (b"queries=\xff", "body"),
        (b"queries=" + b"%5B" * 10_000, "queries"),
        (b"extend=%7B%7D", "extend"),
        (b'extend={"ids":["01"],"properties":[{"id":"P31"}]}', "extend"),
    ):
        answer = await client.post(RECONCILE, content=body, headers=FORM)
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems#invalid-parameters"), body
        assert answer.json()["errors"][0]["parameter"] == parameter, body


async def test_other_bodies_and_parameters_in_an_address_are_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post(RECONCILE, json={"queries": {}})
    assert (answer.status_code, answer.json()["supported"]) == (415, [FORM["Content-Type"]])
    answer = await client.post(f"{RECONCILE}?release=2020-01", data={"queries": "{}"})
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "release")
    assert (await client.get(f"{RECONCILE}?callback=x")).status_code == 422


async def test_batch_beyond_the_limits_of_the_manifest_is_413(client: httpx.AsyncClient) -> None:
    batch = {f"q{number}": {"query": "Asientos"} for number in range(500)}
    assert len((await post(client, queries=batch)).json()) == 500
    for fields in (
        {"queries": {**batch, "one more": {"query": "Asientos"}}},
        {"extend": {"ids": ["01"] * 501, "properties": []}},
        {"queries": json.dumps({"q0": {"query": "x" * 1_000_000}})},
    ):
        answer = await post(client, **fields)
        assert (answer.status_code, answer.json()["type"]) == (413, "/problems#content-too-large")
    assert answer.json()["detail"] == "Send at most 1,000,000 bytes at a time."


async def test_body_of_unknown_length_is_read_up_to_the_limit(client: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100_000_000:
            sent += 65_536
            yield b"x" * 65_536

    answer = await client.post(RECONCILE, content=endless(), headers=FORM)
    assert answer.status_code == 413
    assert sent < 2_000_000


# -- Suggestions


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("suggest/entity/?prefix=zacatec&type=estado", ["32"]),
        ("suggest/entity/?prefix=ninguno&cursor=1&type=localidad", ["010010003"]),
        ("suggest/property/?prefix=municipio&type=localidad", ["municipio", "municipio_id", "municipio_clave"]),
        ("suggest/property/?prefix=nombre&type=estado", ["nombre"]),
        ("properties/?type=estado", list(FETCHED["estado"])),
        ("properties/?limit=2", list(FETCHED["localidad"])[:2]),
    ],
)
async def test_entities_types_and_properties_are_suggested(
    client: httpx.AsyncClient, query: str, ids: list[str]
) -> None:
    answer = (await client.get(RECONCILE + query)).json()
    assert [entity["id"] for entity in answer["result" if "suggest" in query else "properties"]] == ids


async def test_parameters_of_openrefines_widget_are_ignored_and_others_refused(client: httpx.AsyncClient) -> None:
    added = {"prefix": "asi", "spell": "always", "exact": "false", "scoring": "schema", "prefixed": "true"}
    assert (await client.get(f"{RECONCILE}suggest/entity/", params=added)).status_code == 200
    wrong = [f"suggest/entity/?{query}" for query in ("", "prefix=a&limit=3", "prefix=a&type=x", "prefix=a&cursor=-1")]
    for query in (*wrong, "properties/?type=ciudad"):
        assert (await client.get(RECONCILE + query)).status_code == 422, query


async def test_cursor_skips_suggestions(client: httpx.AsyncClient) -> None:
    for query in ("entity/?prefix=lugar&type=localidad", "property/?prefix=", "type/?prefix="):
        first, second, between = [
            [entity["id"] for entity in (await client.get(f"{RECONCILE}suggest/{query}&cursor={at}")).json()["result"]]
            for at in (0, 10, 4)
        ]
        assert between == (first + second)[4:14]
        assert len(set(first + second)) == len(first + second) > 2
        assert len(first) == 10 or not second


# -- Data extension


async def extended(client: httpx.AsyncClient, ids: list[str], *properties: str) -> dict[str, Any]:
    answer = await post(client, extend={"ids": ids, "properties": [{"id": column} for column in properties]})
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


async def test_extension_has_every_column_of_a_locality(client: httpx.AsyncClient) -> None:
    columns = set(LocalityDetail.model_fields)
    assert columns <= set(FETCHED["localidad"]) == COLUMNS.keys() - {"cve_ent", "cve_mun", "cvegeo_mun"}  # for joins
    content = await extended(client, ["010010001"], *FETCHED["localidad"])
    cells = content["rows"]["010010001"]
    record = (await client.get("/api/census/localidades/10010001/")).json()
    for name in columns - {"municipio", "estado"}:
        [cell] = cells[name] or [{"": None}]
        assert list(cell.values()) == [record[name]], name
    assert cells["municipio"] == [{"id": "01001", "name": "Municipio 001"}]
    assert cells["estado"] == [{"id": "01", "name": "Aguascalientes"}]
    assert cells["clave"] == [{"str": "0001"}]
    assert cells["poblacion"] == [{"int": 863893}]
    assert cells["latitud"] == [{"float": 21.880833}]
    assert [(column["id"], column["name"]) for column in content["meta"]] == [
        (name, COLUMNS[name].label) for name in FETCHED["localidad"]
    ]


async def test_extension_of_all_types_takes_one_statement_for_each(app: FastAPI, client: httpx.AsyncClient) -> None:
    with recorded_statements(app) as statements:
        content = await extended(client, ["010010001", "010010002", "01002", "32"], *PROPERTIES)
    assert len(statements) == 3
    assert content["rows"]["01002"]["localidades"] == [{"int": 1}]
    assert content["rows"]["01002"]["estado"] == [{"id": "01", "name": "Aguascalientes"}]
    assert content["rows"]["01002"]["poblacion"] == []
    assert content["rows"]["32"]["abreviatura"] == [{"str": "Zac."}]
    assert content["rows"]["32"]["cvegeo"] == [{"str": "32"}]


async def test_unknown_key_has_empty_cells(client: httpx.AsyncClient) -> None:
    unknown = ["019999999", "99", "1", "", "x\0", "010010001 ", "٠١", "9" * 5000]
    content = await extended(client, [*unknown, "010010001"], "nombre")
    assert {key: content["rows"][key]["nombre"] for key in unknown} == {key: [] for key in unknown}
    assert content["rows"]["010010001"]["nombre"] == [{"str": "Aguascalientes"}]


async def test_bad_extension_is_explained_with_its_location(client: httpx.AsyncClient) -> None:
    bad: list[tuple[dict[str, object], str]] = [
        ({}, "ids: It is required."),
        ({"ids": [1], "properties": []}, "ids[0]: Give a text."),
        ({"ids": [], "properties": [{"id": 5}]}, "properties[0].id: Give a text."),
    ]
    for query, message in bad:
        answer = await post(client, extend=query)
        assert answer.json()["errors"] == [{"parameter": "extend", "message": message}]


# -- Pages


@pytest.mark.parametrize(
    ("key", "location", "shown"),
    [
        ("010010001", "localidades/10010001/", "863,893"),
        ("01001", "municipios/1001/", "<dd>12</dd>"),
        ("32", "estados/32/", "Zac."),
    ],
)
async def test_view_redirects_to_the_record_and_preview_may_be_framed(
    client: httpx.AsyncClient, key: str, location: str, shown: str
) -> None:
    answer = await client.get(f"{RECONCILE}view/", params={"id": key})
    assert (answer.status_code, answer.headers["location"]) == (307, f"../../{location}")
    assert (await client.get(f"/api/census/{location}")).json()["nombre"]
    page = await client.get(f"{RECONCILE}preview/", params={"id": key})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "frame-ancestors *" in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert key in page.text
    assert shown in page.text
    spanish = await client.get(f"{RECONCILE}preview/", params={"id": key, "lang": "es"})
    assert '<html lang="es">' in spanish.text
