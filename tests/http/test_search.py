"""Search and suggestions: the same assertions on a database of each locale."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localidades_api.catalogue.folding import fold
from tests.support.application import client_of, import_into, running_app
from tests.support.catalogue import Place, write_catalogue
from tests.support.postgres import LOCALE_C, database_of_locale, new_database
from tests.support.wire import LOCALIDADES

SUGGEST = f"{LOCALIDADES}suggest/"
GUADALAJARA, TONALA, MIXTEPEC_8, MIXTEPEC_26, DURANGO = "14039", "14101", "20208", "20209", "10020"
_MUNICIPIOS = {
    GUADALAJARA: ("Jalisco", "Jal.", "Guadalajara"),
    TONALA: ("Jalisco", "Jal.", "Tonalá"),
    MIXTEPEC_8: ("Oaxaca", "Oax.", "San Juan Mixtepec"),
    MIXTEPEC_26: ("Oaxaca", "Oax.", "San Juan Mixtepec"),
    DURANGO: ("Durango", "Dgo.", "Pánuco de Coronado"),
}
_NAMES: dict[str, dict[str, int | None]] = {  # population
    GUADALAJARA: {
        "0001 Guadalajara": 1_385_629,
        "0002 San José": 5,
        "0003 San José": 10,
        "0004 San José del Castillo": 2_000,
        "0005 Rancho San José": 3_000,
        "0006 Cartagena [Fraccionamiento]": 700,
        "0007 Guadalajara Oriente (Cartagena)": None,
        "0008 SAN JOSE": None,
        "0009 José San": 1,
        "0010 El Sol": 40,
        "0011 La Luz": 30,
        "0012 Río": 20,
        "0013 Concepci½n": 15,
        "0014 Colonia N° 5": 14,
        "0015 Colonia Nº 6": 13,
        "0016 Campo de Tony (Tony`s Camp)": 12,
        "0017 O´Donnell Aeropuerto": 11,
        "0018 Peñón  Ñandú": 9,
        "0019 2 de Abril": 8,
        "0020 Heroica Villa Tezoatlán de Segura y Luna, Cuna de la Independencia de Oaxaca": 7,
        "0021 La\N{NO-BREAK SPACE}Güera": 6,
        "0022 Tamazunchale": 100,
    },
    TONALA: {"0001 Tonalá": 400_000, "0002 San José": 100, "0003 Tamazulapan": 50, "0004 San Joselito": 999},
    MIXTEPEC_8: {"0001 San Juan Mixtepec": 3_000, "0002 Centro": None},
    MIXTEPEC_26: {"0001 San Juan Mixtepec": 1_000, "0002 Centro": None, "0003 Centro": None},
    DURANGO: {"0035 Guadalajara": None, "0036 Guadalupe": 300},
}
PLACES = [
    Place(
        municipio + name[:4],
        name[5:],
        nom_ent=_MUNICIPIOS[municipio][0],
        nom_abr=_MUNICIPIOS[municipio][1],
        nom_mun=_MUNICIPIOS[municipio][2],
        poblacion="-" if population is None else str(population),
    )
    for municipio, names in _NAMES.items()
    for name, population in names.items()
]
ID_OF = {f"{_MUNICIPIOS[place.cvegeo[:5]][2]}/{place.cvegeo[5:]}": int(place.cvegeo) for place in PLACES}


@pytest.fixture(scope="module")
def places_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_catalogue(tmp_path_factory.mktemp("places") / "catun_localidad_2020-01.csv", PLACES)


@pytest.fixture(scope="module", params=["", LOCALE_C], ids=["usual-locale", "C"])
async def places_client(
    request: pytest.FixtureRequest, server: str, places_file: Path
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of an application on these places, in a database of each locale."""
    with database_of_locale(server, request.param) as url:
        await import_into(url, places_file)
        async with running_app(url) as app, client_of(app) as client:
            yield client


async def search(client: httpx.AsyncClient, words: str, **filters: str) -> list[int]:
    answer = await client.get(LOCALIDADES, params={"search": words, "page_size": "1000", **filters})
    assert answer.status_code == 200
    return [row["id"] for row in answer.json()["results"]]


async def suggest(client: httpx.AsyncClient, q: str, **parameters: str) -> list[dict[str, Any]]:
    answer = await client.get(SUGGEST, params={"q": q, "limit": "20", **parameters})
    assert answer.status_code == 200
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def ids(*places: str) -> list[int]:
    """Return the keys of places given as `Tonalá/0001`, or `0001` for Guadalajara."""
    return [ID_OF[place if "/" in place else f"Guadalajara/{place}"] for place in places]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        *((words, ["0018"]) for words in ("peñón ñandú", "PEÑÓN ÑANDÚ", "penon nandu", "Nandu  penón", "nan peñ")),
        *((words, ["0018"]) for words in ("pen\u0303o\u0301n", "pe nand", "peñón, ñandú!", "[peñón]/(ñandú)")),
        *((words, ["0006"]) for words in ("cartagena [fraccionamiento]", "fraccionamiento cartagena", "cart frac")),
        *((words, ["0006", "0007"]) for words in ("guadalajara cartagena", "Cartagena, Guadalajara", "jal carta")),
        ("cartagena", ["0006", "0007"]),
        ("(CARTAGENA) ori gua", ["0007"]),
        ("artagena", ["0006", "0007"]),  # a letter is missing
        ("rtagena", []),  # a word's beginning, not its middle
        *((words, ["0014", "0015"]) for words in ("colonia n°", "colonia nº", "COLONIA No.", "n° col")),
        *((words, ["0014"]) for words in ("nº 5", "n° 5", "no 5", "No. 5", "5")),
        *((words, ["0013"]) for words in ("concepción", "concepcion", "CONCEPCI½N", "concepci½n", "concepcio")),
        *((words, ["0016"]) for words in ("tony`s camp", "tony's camp", "tony´s", "tonys", "TONY’S")),
        *((words, ["0017"]) for words in ("o'donnell", "o´donnell", "odonnell", "O’Donnell aero")),
        *((words, ["0021"]) for words in ("la güera", "la\N{NO-BREAK SPACE}guera", "guera la")),
        ("la la la la la guera", ["0021"]),
        ("tezoatlan de segura y luna cuna de la independencia de oaxaca heroica villa", ["0020"]),
        ("2 abril", ["0019"]),
        ("guadalajara tonala", []),
        ("san jose", ["0002", "Tonalá/0002", "0003", "0004", "Tonalá/0004", "0005", "0008", "0009"]),
        ("-- !!", []),
        ("東京", []),
    ],
)
async def test_search_matches_word_prefixes(places_client: httpx.AsyncClient, words: str, expected: list[str]) -> None:
    assert await search(places_client, words) == ids(*expected)


async def test_search_by_key_equals_the_page_from_postgres(places_client: httpx.AsyncClient) -> None:
    for place in PLACES:
        written, found = [
            (await places_client.get(f"{LOCALIDADES}?{name}={place.cvegeo}")).content for name in ("cvegeo", "search")
        ]
        assert found == written
        assert place.nombre in written.decode()


@pytest.mark.parametrize(("key", "area"), [("14", "estado_id"), ("14101", "municipio_id"), ("20208", "municipio_id")])
async def test_search_by_key_of_an_area_finds_its_places(places_client: httpx.AsyncClient, key: str, area: str) -> None:
    of_area = (await places_client.get(LOCALIDADES, params={area: key})).content
    assert (await places_client.get(LOCALIDADES, params={"search": key})).content == of_area


async def test_search_combines_with_filters(places_client: httpx.AsyncClient) -> None:
    assert await search(places_client, "san jose", municipio_id=TONALA) == ids("Tonalá/0002", "Tonalá/0004")
    assert await search(places_client, "guadalajara", estado_id="10") == [100200035]


def matches(results: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(place["id"], place["match"]) for place in results]


async def test_equal_matches_are_ordered_by_population(places_client: httpx.AsyncClient) -> None:
    for typed, first in (("gua", "0001"), ("tama", "0022"), ("guadalajara", "0001"), ("tonala", "Tonalá/0001")):
        assert (await suggest(places_client, typed))[0]["id"] == ids(first)[0]
    found = [place["id"] for place in await suggest(places_client, "san juan mixtepec")]
    assert found[:2] == [202080001, 202090001]


async def test_municipios_and_estados_are_suggested_on_request(places_client: httpx.AsyncClient) -> None:
    found = await suggest(places_client, "oax", kind="estado,municipio")
    assert [(one["kind"], one["cvegeo"], one["clave"], one["municipio_id"]) for one in found][:1] == [
        ("estado", "20", "20", None)
    ]
    [municipio] = await suggest(places_client, "tonala", kind="municipio")
    assert (municipio["cvegeo"], municipio["clave"], municipio["municipio_id"]) == ("14101", "101", 14101)
    assert {one["kind"] for one in await suggest(places_client, "tonala")} == {"localidad"}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("Guadaljara", "0001"),
        ("gaudalajara", "0001"),
        ("huadalajara", "0001"),
        ("el zol", "0010"),
        ("le sol", "0010"),
        ("roi", "0012"),
        ("san jos", "0003"),
        ("tamasunchale", "0022"),
        ("concepzion", "0013"),
        ("cartagna frac", "0006"),
        ("tezoatlan segurs luna", "0020"),
        ("colonia n° 5", "0014"),
    ],
)
async def test_mistyped_name_is_suggested(places_client: httpx.AsyncClient, typed: str, expected: str) -> None:
    [id_] = ids(expected)
    assert id_ in [place["id"] for place in await suggest(places_client, typed, municipio_id=GUADALAJARA)][:5]
    assert id_ in [place["id"] for place in await suggest(places_client, typed)]


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 20])
async def test_limit_does_not_change_the_order(places_client: httpx.AsyncClient, limit: int) -> None:
    for typed in ("san jose", "gua", "s", "sam joze"):
        every = await suggest(places_client, typed)
        cut = await suggest(places_client, typed, limit=str(limit))
        assert matches(cut) == matches(every)[:limit]


async def test_suggestions_can_be_limited_to_an_estado_or_municipio(places_client: httpx.AsyncClient) -> None:
    for scope, prefix in (
        ({"estado_id": "14"}, "14"),
        ({"estado_id": "20"}, "20"),
        ({"municipio_id": TONALA}, TONALA),
        ({"municipio_id": TONALA, "estado_id": "14"}, TONALA),
    ):
        for typed in ("san", "san jose", "centr", "tonala", "tomala", "guadaljara", "c", "m"):
            found = await suggest(places_client, typed, **scope)
            assert {f"{place['id']:09d}"[: len(prefix)] for place in found} <= {prefix}
    assert matches(await suggest(places_client, "guadalajara", estado_id="10"))[0] == (100200035, "exact")
    assert matches(await suggest(places_client, "tonalla", municipio_id=TONALA))[0] == (141010001, "near")
    assert await suggest(places_client, "guadalajara", estado_id="32") == []


async def test_labels_distinguish_homonyms(places_client: httpx.AsyncClient) -> None:
    labels = {place["id"]: place["label"] for place in await suggest(places_client, "san jose")}
    assert [labels[id_] for id_ in ids("Tonalá/0002", "0002", "0003", "0008", "0004", "0009")] == [
        "San José, Tonalá, Jalisco",
        "San José (0002), Guadalajara, Jalisco",
        "San José (0003), Guadalajara, Jalisco",
        "SAN JOSE (0008), Guadalajara, Jalisco",
        "San José del Castillo, Guadalajara, Jalisco",
        "José San, Guadalajara, Jalisco",
    ]
    centres = {place["id"]: place["label"] for place in await suggest(places_client, "centro")}
    assert centres == {
        202080002: "Centro, San Juan Mixtepec (208), Oaxaca",
        202090002: "Centro (0002), San Juan Mixtepec (209), Oaxaca",
        202090003: "Centro (0003), San Juan Mixtepec (209), Oaxaca",
    }


async def test_suggestion_matches_the_catalogue(places_client: httpx.AsyncClient) -> None:
    assert (await suggest(places_client, "concepción"))[0] == {
        "kind": "localidad",
        "id": 140390013,
        "cvegeo": "140390013",
        "municipio_id": 14039,
        "clave": "0013",
        "nombre": "Concepci½n",
        "label": "Concepci½n, Guadalajara, Jalisco",
        "match": "exact",
        "otro_nombre": None,
        "poblacion": 15,
        "latitud": 21.880833,
        "longitud": -102.296111,
    }


HOSTILE = [
    "'", "''", "'; DROP TABLE localities; --", '"', "\\", "\\'", "a\\", "san' | 'jose", "san & jose", "san | jose",
    "!san", "san:*", ":*", "san:A", "<->", "san <-> jose", "(san", "san)", "()", "&&", "| !", "%", "_", "san%", "s_n",
    "*", "?", "$1", ":q", ":limit", "{scope}", "%(q)s", "{", "}", "~", "\t\n\r", "\u2028", "\ufeff", "\U0001f600",
    "<script>alert(1)</script>", "a" * 100, "é" * 100, "ﷺ" * 100, "½" * 100, "a " * 50, "san jose " * 11,
    "abcd " * 20, "0" * 100, "a'b" * 33, "\u0301" * 100, "e" + "\u0301" * 99, "or 1=1", "NULL", "null", "true", "AND",
]  # fmt: skip


async def test_query_syntax_is_not_interpreted(places_client: httpx.AsyncClient) -> None:
    """Only their letters count, whatever surrounds them."""
    for typed in HOSTILE:
        assert len(await suggest(places_client, typed)) <= 20, typed
        if typed.strip():
            assert await search(places_client, typed) == await search(places_client, fold(typed) or "-"), typed


async def test_long_name_is_found_by_all_its_words(places_client: httpx.AsyncClient) -> None:
    """Only the longest words are looked up; the others are compared with the names found."""
    words = "heroica villa tezoatlan de segura y luna cuna de la independencia de oaxaca"
    for typed in (words, " ".join(word[:1] for word in words.split()) + " tezoatlan", "y l c d s h v t i o"):
        assert await search(places_client, typed) == ids("0020")
    assert (await suggest(places_client, words))[0]["id"] == ids("0020")[0]
    for typed in (f"{words} rancho", "y l c d s h v t i o x", "tezoatlan independencia segura x"):
        assert await search(places_client, typed) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    typed=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=100)
    | st.text(st.sampled_from("asnjoe '\"\\&|!():*%_<>-½º°`´"), min_size=1, max_size=100)
)
async def test_arbitrary_text_is_answered(places_client: httpx.AsyncClient, typed: str) -> None:
    assert (await places_client.get(f"{SUGGEST}?q={quote(typed)}")).status_code == 200
    found = await places_client.get(f"{LOCALIDADES}?search={quote(typed)}")
    assert found.status_code == 200 or not typed.strip()  # blank


BLANKS = ["%20", "+%09", "%C2%A0", "%E3%80%80"]


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize(
    "target",
    [
        f"{LOCALIDADES}?search=", f"{LOCALIDADES}filter/?search=", f"{LOCALIDADES}download/?format=csv&search=",
        "/api/census/municipios/?search=", "/api/census/estados/?search=", f"{SUGGEST}?q=", "/wscatgeo/?search=",
        "/api/census/reconcile/?queries=", "/api/census/reconcile/suggest/entity/?prefix=",
        "/api/census/reconcile/suggest/type/?prefix=", "/api/census/reconcile/suggest/property/?prefix=",
        "/ogc/collections/localidades/items?limit=1&clave=", "/ogc/collections/localidades/items?limit=1&nombre=",
    ],
)  # fmt: skip
async def test_blank_text_is_answered_as_an_empty_one(
    places_client: httpx.AsyncClient, target: str, blank: str
) -> None:
    empty, answer = [await places_client.get(f"{target}{text}") for text in ("", blank)]
    assert (answer.status_code, answer.content) == (empty.status_code, empty.content)
    assert answer.headers.get("location") == empty.headers.get("location")


@pytest.mark.parametrize(
    "clauses",
    [
        LOCALE_C,
        "LOCALE_PROVIDER libc LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'",
        "LOCALE_PROVIDER libc LC_COLLATE 'es_MX.UTF-8' LC_CTYPE 'es_MX.UTF-8'",
        "LOCALE_PROVIDER icu ICU_LOCALE 'es-MX' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'",
    ],
    ids=["C", "C.UTF-8", "es_MX.UTF-8", "icu-es-MX"],
)
async def test_search_does_not_depend_on_the_locale_of_the_database(
    server: str, migrated: str, places_file: Path, clauses: str
) -> None:
    words = {word for place in PLACES for word in (place.nombre, place.nombre.upper(), place.nombre[:4])}
    words |= {"Guadaljara", "san joze", "rip", "el xol", "ñandu", "n° 5", "jose san", *"abcñ1"}
    targets = [f"{path}{quote(word)}" for word in sorted(words) for path in (f"{SUGGEST}?q=", f"{LOCALIDADES}?search=")]

    async def ask_all(url: str) -> dict[str, bytes]:
        await import_into(url, places_file)
        async with running_app(url) as app, client_of(app) as client:
            return {target: (await client.get(target)).content for target in targets}

    with new_database(server, migrated) as usual:
        expected = await ask_all(usual)
    with database_of_locale(server, clauses) as url:
        assert await ask_all(url) == expected
