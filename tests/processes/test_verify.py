"""`verify` against the real service and against faulty ones, and the comparison itself."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localidades_api.cli import verify as verify_module
from localidades_api.cli.verify import (
    Kind,
    ListedLocality,
    Verification,
    as_object,
    compare,
    describe,
    verify_service,
)
from localidades_api.errors import ServiceError
from localidades_api.http.paths import LOCALIDADES, MANIFEST
from localidades_api.importer.demo.generate import DEMO_LOCALITIES
from tests.support.catalogue import Silent, many, write_catalogue
from tests.support.commands import invoke
from tests.support.http_server import Request, Respond, Response, http_server

RECORDS = sorted(
    (ListedLocality(int(place.cvegeo), int(place.cvegeo[:5]), place.cvegeo[5:], place.nombre) for place in many(132)),
    key=lambda record: (record.clave, record.id),
)


NO_DIFFERENCE = dict.fromkeys(("missing", "doubled", "different", "unknown", "out_of_order"), 0)


def answer_page(
    records: Sequence[ListedLocality],
    number: int,
    *,
    quantity: int | None = None,
    total_pages: int | None = None,
    release: str = "2020-01",
    link: str = "",
) -> Response:
    """Return a page that follows the contract, with the totals of the records by default."""
    envelope = {
        "quantity": len(records) if quantity is None else quantity,
        "total_pages": -(-len(records) // 50) if total_pages is None else total_pages,
        "results": [record._asdict() for record in records[50 * number - 50 : 50 * number]],
    }
    headers = {"Content-Type": "application/json", "Catalogue-Release": release, "Link": link}
    return Response(json.dumps(envelope).encode(), headers={name: value for name, value in headers.items() if value})


def number_of(target: str) -> int:
    """Return the requested page; 0 for the manifest of an export."""
    return int(parse_qs(urlsplit(target).query).get("page", ["0"])[0])


def counted(records: Sequence[ListedLocality], quantity: int | None = None, total_pages: int | None = None) -> Respond:
    """Return a service without links or releases."""

    def respond(request: Request) -> Response:
        number = number_of(request.target)
        if number > -(-len(records) // 50):
            return Response(status=404)
        return answer_page(records, number, quantity=quantity, total_pages=total_pages, release="")

    return respond


def always(answer: Response) -> Respond:
    return lambda request: answer  # noqa: ARG005  # for any request


def keeping(asked: list[Request], respond: Respond) -> Respond:
    """Return the same service, which records its requests."""

    def respond_and_keep(request: Request) -> Response:
        asked.append(request)
        return respond(request)

    return respond_and_keep


def check(source: Path, respond: Respond, release: str | None = None) -> Verification:
    with http_server(respond) as url:
        return verify_service(str(source), url, Silent(), release=release)


def counts_of(verification: Verification) -> dict[str, int]:
    return {kind: count for kind, count in as_report(verification)["counts"].items() if count}


def as_report(verification: Verification) -> dict[str, Any]:
    return as_object(verification)


def shown_lines(verification: Verification) -> str:
    return "\n".join(describe(verification))


def refusal_by(source: Path, respond: Respond, **options: str) -> str:
    with pytest.raises(ServiceError) as caught:
        check(source, respond, **options)
    return str(caught.value)


def run_verify(*arguments: str) -> tuple[int, str, str]:
    """Run the command; return its exit code, stdout and stderr."""
    ended = invoke("verify", *arguments)
    return ended.returncode, ended.stdout, ended.stderr


# -- The real service


def test_agreeing_service_ends_with_0(live_server: str, small_catalogue: Path) -> None:
    status, stdout, stderr = run_verify(str(small_catalogue), "--url", live_server)
    assert status == 0, stderr
    lines = stdout.splitlines()
    assert lines[0] == f"{live_server} (release '2020-01') against catun_localidad_2020-01.csv"
    assert "  service  132 records on 3 pages, following links" in lines
    assert "totals       quantity 132 and total_pages 3 match the pages" in lines
    assert lines[-1] == "the service agrees with the file"
    assert "reading the service's pages" in stderr
    assert "  3 pages (" in stderr


def test_json_report_of_an_agreeing_service(live_server: str, small_catalogue: Path) -> None:
    status, stdout, _ = run_verify(str(small_catalogue), "--url", f"{live_server}/", "--json", "--release", "2020-01")
    report = json.loads(stdout)
    assert status == 0
    assert report["sha256"]
    assert report | {"sha256": ""} == {
        "agrees": True,
        "service": live_server,
        "release": "2020-01",
        "source": "catun_localidad_2020-01.csv",
        "sha256": "",
        "file": {"localidades": 132, "rejected": 0},
        "walk": {"records": 132, "pages": 3, "by": "links"},
        "totals": {"quantity": 132, "total_pages": 3, "faults": []},
        "counts": NO_DIFFERENCE,
        "municipios": [],
    }


def test_unknown_release_ends_with_2(live_server: str, small_catalogue: Path) -> None:
    status, stdout, stderr = run_verify(str(small_catalogue), "--url", live_server, "--release", "1999-01")
    assert (status, stdout) == (2, "")
    assert stderr.splitlines()[-1] == (
        "error: Page 1 answers 404, so there is no such list or release: check --url and --release."
    )


# -- Exit codes


def test_differences_end_with_1_and_are_shown(small_catalogue: Path) -> None:
    with http_server(counted(RECORDS[1:])) as url:
        status, stdout, stderr = run_verify(str(small_catalogue), "--url", url)
    assert status == 1
    assert "error" not in stderr
    assert "missing              1" in stdout
    assert "01001 'Municipio 001': 1 missing\n  missing 10010001 '0001' 'Aguascalientes'\n" in stdout
    assert stdout.endswith("the service differs from the file\n")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:1", "Page 1 can't be read ("),
        ("ftp://127.0.0.1", "--url must be the root address of a service"),
        ("127.0.0.1:8000", "--url must be the root address of a service"),
        ("http://127.0.0.1:8000/?page=1", "--url must be the root address of a service"),
        ("http://[::1", "--url must be the root address of a service"),
    ],
)
def test_unreachable_service_ends_with_2(small_catalogue: Path, url: str, said: str) -> None:
    status, stdout, stderr = run_verify(str(small_catalogue), "--url", url)
    assert (status, stdout) == (2, "")
    assert stderr.splitlines()[-1].startswith(f"error: {said}")


def test_missing_file_ends_with_2() -> None:
    status, stdout, stderr = run_verify("/nowhere.zip")
    assert (status, stdout, stderr) == (
        2,
        "",
        "error: There is no file /nowhere.zip: give the path or http(s) address of a zip, csv, txt or xlsx.\n",
    )


def test_impossible_release_name_ends_with_2(small_catalogue: Path) -> None:
    assert run_verify(str(small_catalogue), "--release", "a b")[::2] == (
        2,
        "error: --release must be the name of a release, such as 2018-09.\n",
    )


# -- Faulty services


def renamed(records: list[ListedLocality]) -> list[ListedLocality]:
    return [*records[:60], records[60]._replace(nombre="Otro"), *records[61:]]


def moved(records: list[ListedLocality]) -> list[ListedLocality]:
    return [*records[:60], records[60]._replace(municipio_id=9002), *records[61:]]


def with_a_short_clave(records: list[ListedLocality]) -> list[ListedLocality]:
    return [*records[:131], records[131]._replace(clave=records[131].clave.lstrip("0"))]


def renamed_at(*positions: int) -> Callable[[list[ListedLocality]], list[ListedLocality]]:
    return lambda rows: [row._replace(nombre="Otro") if at in positions else row for at, row in enumerate(rows)]


def with_an_unknown(records: list[ListedLocality]) -> list[ListedLocality]:
    return [*records, ListedLocality(330019999, 33001, "9999", "Nowhere")]


@pytest.mark.parametrize(
    ("damage", "expected", "line"),
    [
        (lambda rows: [*rows[:70], *rows[71:]], {"missing": 1}, f"  missing {RECORDS[70].id} "),
        (lambda rows: [*rows[:101], *rows[100:]], {"doubled": 1}, f"  doubled {RECORDS[100].id} "),
        (lambda rows: [*rows, rows[0]], {"doubled": 1}, "  doubled 10010001 '0001' 'Aguascalientes', page 3"),
        (renamed, {"different": 1}, f"{RECORDS[60].id}, page 2: nombre 'Otro', in the file {RECORDS[60].nombre!r}"),
        (renamed_at(49), {"different": 1}, f"  different {RECORDS[49].id}, page 1: nombre 'Otro'"),
        (renamed_at(50), {"different": 1}, f"  different {RECORDS[50].id}, page 2: nombre 'Otro'"),
        (lambda rows: [*with_an_unknown(rows), with_an_unknown(rows)[-1]], {"doubled": 1, "unknown": 1}, "330019999"),
        (moved, {"different": 1}, f", page 2: municipio_id 9002, in the file {RECORDS[60].municipio_id}"),
        (with_a_short_clave, {"different": 1}, f"page 3: clave '{RECORDS[131].clave.lstrip('0')}', in the file '0"),
        (with_an_unknown, {"unknown": 1}, "33001 (not in the file): 1 unknown\n  unknown 330019999 '9999' 'Nowhere'"),
        (lambda rows: [*rows[1:120], rows[0], *rows[120:]], {"out_of_order": 1}, "  out of order 10010001 '0001' "),
        (lambda rows: [rows[1], rows[0], *rows[2:]], {"out_of_order": 1}, "page 1"),
    ],
)
def test_wrong_record_is_the_only_difference(
    small_catalogue: Path,
    damage: Callable[[list[ListedLocality]], list[ListedLocality]],
    expected: dict[str, int],
    line: str,
) -> None:
    verification = check(small_catalogue, counted(damage(RECORDS)))
    assert counts_of(verification) == expected
    assert not verification.agrees
    assert verification.walk.faults == []
    assert line in shown_lines(verification)


@pytest.mark.parametrize(
    ("totals", "fault"),
    [
        ({"quantity": 131}, "quantity is 131, but the pages have 132 records."),
        ({"quantity": -1}, "quantity is -1, but the pages have 132 records."),
        ({"total_pages": 4}, "Page 4 answers 404, but the first page reports 4 pages."),
        ({"total_pages": 4}, "total_pages is 4, but there are 3 pages."),
        ({"total_pages": 2}, "quantity is 132, but the pages have 100 records."),
    ],
)
def test_wrong_totals_are_reported(small_catalogue: Path, totals: dict[str, int], fault: str) -> None:
    verification = check(small_catalogue, counted(RECORDS, **totals))
    assert fault in verification.walk.faults
    assert f"totals       {fault}" in shown_lines(verification)
    assert not verification.agrees


@pytest.mark.parametrize("page", [2, 3])
@pytest.mark.parametrize("change", [{"quantity": 131}, {"total_pages": 4}, {"release": "2021-01"}])
def test_list_changing_during_the_check_is_reported_once(
    small_catalogue: Path, change: dict[str, Any], page: int
) -> None:
    verification = check(
        small_catalogue,
        lambda request: answer_page(
            RECORDS, number_of(request.target), **(change if number_of(request.target) >= page else {})
        ),
    )
    assert verification.walk.faults == [
        f"Page {page} has a different quantity, total_pages or release than the first page."
    ]
    assert counts_of(verification) == {}
    assert not verification.agrees


@pytest.mark.parametrize("total_pages", [0, 1])
def test_empty_list_misses_everything(small_catalogue: Path, total_pages: int) -> None:
    verification = check(small_catalogue, always(answer_page([], 1, total_pages=total_pages)))
    assert counts_of(verification) == {"missing": 132}
    assert verification.walk.faults == []


def test_ties_must_be_in_the_order_of_their_ids(small_catalogue: Path) -> None:
    listed = sorted(RECORDS, key=lambda record: (record.clave, -record.id))
    descents = sum(one.clave == other.clave for one, other in pairwise(listed))
    verification = check(small_catalogue, counted(listed))
    assert counts_of(verification) == {"out_of_order": descents}
    assert not verification.agrees


def test_report_is_limited_but_json_is_complete(small_catalogue: Path) -> None:
    with http_server(counted([record._replace(nombre="Otro") for record in RECORDS])) as url:
        status, stdout, _ = run_verify(str(small_catalogue), "--url", url)
        report = json.loads(run_verify(str(small_catalogue), "--url", url, "--json")[1])
    municipios = len({record.municipio_id for record in RECORDS})
    assert status == 1
    assert "different          132  (nombre 132)" in stdout
    assert f"and {municipios - 20} more municipios\n" in stdout
    assert "01001 'Municipio 001': 12 different\n" in stdout
    assert "  and 9 more\n" in stdout
    assert len(stdout.splitlines()) < 20 * 5 + 15
    assert len(report["municipios"]) == municipios
    differences = [difference for municipio in report["municipios"] for difference in municipio["differences"]]
    assert len(differences) == report["counts"]["different"] == 132
    assert differences[0]["fields"] == ["nombre"]
    assert differences[0]["expected"] == RECORDS[0]._asdict()
    assert differences[0]["found"]["nombre"] == "Otro"
    assert differences[0]["page"] == 1


def test_control_characters_in_names_are_escaped(small_catalogue: Path) -> None:
    hostile = "\x1b[2J\u202e:smile: [red]x[/] \N{NO-BREAK SPACE}Ñ"
    with http_server(counted([RECORDS[0]._replace(nombre=hostile), *RECORDS[1:]])) as url:
        stdout = run_verify(str(small_catalogue), "--url", url)[1]
    assert "nombre '\\x1b[2J\\u202e:smile: [red]x[/] \\xa0Ñ', in the file 'Aguascalientes'" in stdout
    assert "\x1b" not in stdout


def test_empty_list_has_at_most_one_page(small_catalogue: Path) -> None:
    def respond(request: Request) -> Response:
        return answer_page([], 1, total_pages=2) if number_of(request.target) == 1 else Response(status=404)

    assert check(small_catalogue, respond).walk.faults == [
        "Page 2 answers 404, but the first page reports 2 pages.",
        "total_pages is 2, but there are 1 pages.",
    ]


def test_json_groups_differences_by_municipio(small_catalogue: Path) -> None:
    first, second, third, fourth, *rest = RECORDS
    moved = first._replace(municipio_id=2001)
    unknown = ListedLocality(330019999, 33001, "9999", "Nowhere")
    verification = check(small_catalogue, counted([second, third, moved, *rest, unknown]))
    found = {
        (municipio["id"], municipio["nombre"], difference["kind"]): difference
        for municipio in as_report(verification)["municipios"]
        for difference in municipio["differences"]
    }
    assert found == {
        (1001, "Municipio 001", "different"): {
            "kind": "different", "fields": ["municipio_id"], "page": 1, "expected": first._asdict(),
            "found": moved._asdict(),
        },
        (1001, "Municipio 001", "out_of_order"): {
            "kind": "out_of_order", "fields": [], "page": 1, "expected": first._asdict(), "found": moved._asdict(),
        },
        (9002, "San Juan, Mixtepec -Dto. 08 -", "missing"): {
            "kind": "missing", "fields": [], "page": None, "expected": fourth._asdict(), "found": None,
        },
        (33001, None, "unknown"): {
            "kind": "unknown", "fields": [], "page": 3, "expected": None, "found": unknown._asdict(),
        },
    }  # fmt: skip


def test_rejected_rows_are_counted(tmp_path: Path) -> None:
    source = write_catalogue(tmp_path / "x.csv", [*many(132), replace(many(132)[0], cvegeo="019990001", nombre="")])
    verification = check(source, counted(RECORDS))
    assert verification.agrees
    assert as_report(verification)["file"] == {"localidades": 132, "rejected": 1}
    assert "  file     132 localities, 1 rows rejected" in shown_lines(verification)


@pytest.mark.tail
def test_demo_can_be_verified() -> None:
    verification = check(Path("demo"), always(answer_page([], 1, total_pages=0)))
    assert counts_of(verification) == {"missing": DEMO_LOCALITIES}


# -- Services that can't be checked


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            Response(b"<!doctype html><title>Hello</title>"),
            "Page 1 is not JSON: set --url to the root address of a service.",
        ),
        (Response(b""), "Page 1 is not JSON: set --url to the root address of a service."),
        (
            Response(b'{"quantity":1', headers={"Content-Length": "20", "Connection": "close"}),
            "Page 1 can't be read (",
        ),
        (Response(b"[]"), "Page 1 does not match the API's schema: "),
        (Response(b'{"quantity":1,"total_pages":1}'), "results: It is required."),
        (Response(b'{"quantity":"1","total_pages":1,"results":[]}'), "quantity: Give a whole number."),
        (
            Response(b'{"quantity":1,"total_pages":1,"results":[{"id":1,"municipio_id":1,"clave":1,"nombre":"x"}]}'),
            "results[0].clave: Give a text.",
        ),
        (Response(b'{"quantity":1,"total_pages":1000000000,"results":[]}'), "The service reports 1000000000 pages"),
        (Response(b'{"quantity":1,"total_pages":100001,"results":[]}'), "pages; verify reads at most 100000."),
        (Response(status=500), "Page 1 answers 500: check the service's log."),
        (Response(status=404), "Page 1 answers 404, so there is no such list or release: check --url and --release."),
        (Response(status=301, headers={"Location": "/"}), "Page 1 answers 301: set --url to where it redirects."),
        (Response(b" " * (1024**2 + 1)), "Page 1 is larger than 1 MB."),
    ],
)
def test_incomparable_answer_is_refused(small_catalogue: Path, answer: Response, said: str) -> None:
    assert said in refusal_by(small_catalogue, always(answer))


def test_service_with_other_ids_is_refused(small_catalogue: Path) -> None:
    numbered = [record._replace(id=number) for number, record in enumerate(RECORDS, 1)]
    assert refusal_by(small_catalogue, counted(numbered)) == (
        "None of the service's ids is a key in the file: verify compares only services whose ids are INEGI's keys."
    )
    verification = check(small_catalogue, counted([*numbered[:-1], RECORDS[-1]]))
    assert counts_of(verification) == {"missing": 131, "unknown": 131}


def test_answer_of_another_release_is_refused(small_catalogue: Path) -> None:
    respond = always(answer_page(RECORDS, 1, release="2018-09"))
    said = refusal_by(small_catalogue, respond, release="2020-01")
    assert said == "The service ignores --release and answers with another release."


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(b"{", headers={"Content-Length": "9"}), "Page 1 can't be read "),
        (Response(b" " * 600, drip=0.01), "Page 1 took more than "),
    ],
)
def test_stalled_or_dripping_answer_is_given_up(
    small_catalogue: Path, monkeypatch: pytest.MonkeyPatch, answer: Response, said: str
) -> None:
    monkeypatch.setattr(verify_module, "PAGE_TIMEOUT", 0.3)
    with http_server(always(answer)) as url, pytest.raises(ServiceError, match=said):
        verify_service(str(small_catalogue), url, Silent())


def test_endless_list_is_given_up(small_catalogue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "MAX_RECORDS", 132)
    assert check(small_catalogue, counted(RECORDS)).agrees
    assert refusal_by(small_catalogue, counted([*RECORDS, RECORDS[0]])) == (
        "The service lists more than 132 records, the most that verify reads."
    )


# -- The walk


def linked(link: Callable[[int], str]) -> Respond:
    """Return a service whose pages link to the next one."""

    def respond(request: Request) -> Response:
        number = number_of(request.target)
        if link(number):
            return answer_page(RECORDS, number, link=f'<{link(number)}>; rel="next"')
        return answer_page(RECORDS, number)

    return respond


def test_links_are_followed_over_one_connection(small_catalogue: Path) -> None:
    asked: list[Request] = []
    respond = linked(lambda number: f"?page={number + 1}&mark=x" if number < 3 else "")
    with http_server(keeping(asked, respond)) as url:
        verification = verify_service(str(small_catalogue), url, Silent(), release="2020-01")
    assert verification.agrees
    assert verification.walk.followed
    assert [request.target for request in asked] == [
        MANIFEST,
        f"{LOCALIDADES}?page=1&release=2020-01",
        f"{LOCALIDADES}?page=2&mark=x",
        f"{LOCALIDADES}?page=3&mark=x",
    ]
    assert len({request.port for request in asked}) == 1


def test_pages_are_counted_without_links(small_catalogue: Path) -> None:
    asked: list[Request] = []
    with http_server(keeping(asked, counted(RECORDS))) as url:
        verification = verify_service(str(small_catalogue), f"{url}/", Silent(), release="2020-01")
    assert verification.agrees
    assert not verification.walk.followed
    assert [request.target for request in asked] == [
        MANIFEST,
        *(f"{LOCALIDADES}?page={number}&release=2020-01" for number in (1, 2, 3)),
    ]


def test_link_to_another_server_is_not_followed(small_catalogue: Path) -> None:
    asked: list[Request] = []
    with http_server(keeping(asked, counted(RECORDS))) as other:
        verification = check(small_catalogue, linked(lambda number: f"{other}{LOCALIDADES}?page={number + 1}"))
    assert verification.agrees
    assert not verification.walk.followed
    assert asked == []


@pytest.mark.parametrize("origin", ["http://localhost", "https://127.0.0.1"])
def test_link_to_another_origin_is_not_followed(small_catalogue: Path, origin: str) -> None:
    def respond(request: Request) -> Response:
        number, port = number_of(request.target), request.headers["Host"].rpartition(":")[2]
        return answer_page(RECORDS, number, link=f'<{origin}:{port}{LOCALIDADES}?page={number + 1}>; rel="next"')

    verification = check(small_catalogue, respond)
    assert verification.agrees
    assert not verification.walk.followed


def test_endless_links_are_given_up(small_catalogue: Path) -> None:
    verification = check(small_catalogue, linked(lambda number: f"?page={number + 1}"))
    assert verification.walk.pages == 6
    assert "The links to the next page never end: verify stopped after page 6." in verification.walk.faults
    assert not verification.agrees


@pytest.mark.parametrize("fragment", ["", "#again"])
def test_circular_links_are_given_up(small_catalogue: Path, fragment: str) -> None:
    verification = check(small_catalogue, linked(lambda number: f"?page={number % 3 + 1}{fragment}"))
    assert verification.walk.pages == 3
    assert verification.walk.faults == ["The links to the next page never end: verify stopped after page 3."]
    assert counts_of(verification) == {}


def test_password_in_the_url_is_sent_but_not_shown(small_catalogue: Path) -> None:
    asked: list[Request] = []
    with http_server(keeping(asked, counted(RECORDS))) as url:
        address = url.replace("http://", "http://user:s3cr3t@")
        status, stdout, stderr = run_verify(str(small_catalogue), "--url", address)
    assert status == 0
    assert {request.headers["Authorization"] for request in asked} == {f"Basic {b64encode(b'user:s3cr3t').decode()}"}
    assert stdout.startswith(f"{url} against ")
    assert "s3cr3t" not in stdout + stderr


# -- The comparison

damages = st.sampled_from([Kind.MISSING, Kind.DOUBLED, Kind.UNKNOWN, "nombre", "municipio_id", "clave"])


@given(st.dictionaries(st.integers(0, len(RECORDS) - 1), damages, max_size=30), st.randoms(use_true_random=False))
def test_random_damage_is_found_exactly(damaged: dict[int, str], chance: Random) -> None:
    rows = dict(enumerate(RECORDS))
    further: list[ListedLocality] = []
    copies: list[ListedLocality] = []
    expected: Counter[tuple[Kind, int]] = Counter()
    for index, damage in damaged.items():
        record = RECORDS[index]
        match damage:
            case Kind.MISSING:
                del rows[index]
            case Kind.DOUBLED:
                copies.append(record)
            case Kind.UNKNOWN:
                record = record._replace(id=record.id + 10**9)
                further.append(record)
            case "municipio_id":
                rows[index] = record._replace(municipio_id=7)
            case "clave":
                rows[index] = record._replace(clave="0000x")
            case _:
                rows[index] = record._replace(nombre="Otro")
        expected[damage if isinstance(damage, Kind) else Kind.DIFFERENT, record.id] += 1
    listed = sorted([*rows.values(), *further], key=lambda row: (row.clave, row.id))
    for copy in copies:
        listed.insert(chance.randint(0, len(listed)), copy)
    found = compare(RECORDS, [(1, record) for record in listed])
    assert Counter((difference.kind, difference.record.id) for difference in found) == expected
