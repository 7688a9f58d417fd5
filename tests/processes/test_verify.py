"""`verify` against the real service and against faulty ones."""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from localidades_api.cli import verify as verify_module
from localidades_api.cli.verify import ListedLocality, Verification, describe, verify_service
from localidades_api.errors import ServiceError
from localidades_api.http.paths import LOCALIDADES, MANIFEST
from tests.support.catalogue import Silent, many
from tests.support.commands import invoke
from tests.support.http_server import Request, Respond, Response, http_server

Records = list[ListedLocality]
RECORDS: Records = sorted(
    (ListedLocality(int(place.cvegeo), int(place.cvegeo[:5]), place.cvegeo[5:], place.nombre) for place in many(132)),
    key=lambda record: (record.clave, record.id),
)
UNKNOWN = ListedLocality(330019999, 33001, "9999", "Nowhere")


def page_of(
    records: Sequence[ListedLocality], number: int, *, release: str = "", link: str = "", **totals: int
) -> Response:
    """Return a page that follows the contract; `totals` replace those of the records."""
    envelope = {
        "quantity": len(records),
        "total_pages": -(-len(records) // 50),
        "results": [record._asdict() for record in records[50 * number - 50 : 50 * number]],
        **totals,
    }
    following = f'<{link}>; rel="next"' if link else ""
    headers = {"Content-Type": "application/json", "Catalogue-Release": release, "Link": following}
    return Response(json.dumps(envelope).encode(), headers={name: value for name, value in headers.items() if value})


def number_of(request: Request) -> int:
    """Return the requested page; 0 for the manifest of an export."""
    return int(parse_qs(urlsplit(request.target).query).get("page", ["0"])[0])


def listing(records: Sequence[ListedLocality] = RECORDS, **totals: Any) -> Respond:  # noqa: ANN401  # of a page
    """Return a service without links or releases."""

    def respond(request: Request) -> Response:
        number = number_of(request)
        return Response(status=404) if number > max(1, -(-len(records) // 50)) else page_of(records, number, **totals)

    return respond


def linked(link: Callable[[int], str]) -> Respond:
    """Return a service whose pages link to the next one."""
    return lambda request: page_of(RECORDS, number_of(request), link=link(number_of(request)))


def recorded(respond: Respond, asked: list[Request]) -> Respond:
    """Return a service that keeps its requests."""

    def record(request: Request) -> Response:
        asked.append(request)
        return respond(request)

    return record


def check(source: Path, respond: Respond, release: str | None = None) -> Verification:
    with http_server(respond) as url:
        return verify_service(str(source), url, Silent(), release=release)


def counts_of(verification: Verification) -> dict[str, int]:
    return {kind.name.lower(): count for kind, count in verification.counts.items()}


def refusal_by(source: Path, respond: Respond) -> str:
    with pytest.raises(ServiceError) as caught:
        check(source, respond, "2020-01")
    return str(caught.value)


# -- The command


def test_agreeing_service_ends_with_0(live_server: str, small_catalogue: Path) -> None:
    ended = invoke("verify", str(small_catalogue), "--url", live_server)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == f"{live_server} (release '2020-01') against catun_localidad_2020-01.csv"
    assert "  service  132 records on 3 pages, following links" in lines
    assert "totals       quantity 132 and total_pages 3 match the pages" in lines
    assert lines[-1] == "the service agrees with the file"
    assert "reading the service's pages\n" in ended.stderr
    ended = invoke("verify", str(small_catalogue), "--url", f"{live_server}/", "--json", "--release", "2020-01")
    report = json.loads(ended.stdout)
    assert (ended.returncode, bool(report.pop("sha256"))) == (0, True)
    assert report == {
        "agrees": True,
        "service": live_server,
        "release": "2020-01",
        "source": "catun_localidad_2020-01.csv",
        "file": {"localidades": 132, "rejected": 0},
        "walk": {"records": 132, "pages": 3, "by": "links"},
        "totals": {"quantity": 132, "total_pages": 3, "faults": []},
        "counts": dict.fromkeys(("missing", "doubled", "different", "unknown", "out_of_order"), 0),
        "municipios": [],
    }


NO_ROOT = "--url must be the root address of a service"


@pytest.mark.parametrize(
    ("source", "arguments", "said"),
    [
        ("{file}", "--url {live} --release 1999-01", "Page 1 answers 404, so there is no such list or release: check"),
        ("{file}", "--url http://127.0.0.1:1", "Page 1 can't be read ("),
        ("{file}", "--url ftp://127.0.0.1", NO_ROOT),
        ("{file}", "--url 127.0.0.1:8000", NO_ROOT),
        ("{file}", "--url http://127.0.0.1:8000/?page=1", NO_ROOT),
        ("{file}", "--url http://[::1", NO_ROOT),
        ("/nowhere.zip", "", "There is no file /nowhere.zip: give the path or http(s) address of a zip, csv, txt or "),
        ("{file}", "--release a/b", "--release must be the name of a release, such as 2018-09."),
    ],
)
def test_check_that_cannot_be_made_ends_with_2(
    live_server: str, small_catalogue: Path, source: str, arguments: str, said: str
) -> None:
    ended = invoke("verify", source.format(file=small_catalogue), *arguments.format(live=live_server).split())
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1].startswith(f"error: {said}")


def test_differences_end_with_1_and_a_limited_report_or_with_complete_json(small_catalogue: Path) -> None:
    with http_server(listing([record._replace(nombre="Otro") for record in RECORDS])) as url:
        ended = invoke("verify", str(small_catalogue), "--url", url)
        report = json.loads(invoke("verify", str(small_catalogue), "--url", url, "--json").stdout)
    municipios = len({record.municipio_id for record in RECORDS})
    assert (ended.returncode, "error" in ended.stderr) == (1, False)
    for said in (
        "different          132  (nombre 132)",
        "01001 'Municipio 001': 12 different\n",
        "  and 9 more\n",
        f"and {municipios - 20} more municipios\nthe service differs from the file\n",
    ):
        assert said in ended.stdout
    assert len(ended.stdout.splitlines()) < 20 * 5 + 15
    assert len(report["municipios"]) == municipios
    differences = [difference for municipio in report["municipios"] for difference in municipio["differences"]]
    assert len(differences) == report["counts"]["different"] == 132
    found = RECORDS[0]._replace(nombre="Otro")._asdict()
    assert differences[0] == {
        "kind": "different", "fields": ["nombre"], "page": 1, "expected": RECORDS[0]._asdict(), "found": found
    }  # fmt: skip


def test_control_characters_and_passwords_are_not_shown(small_catalogue: Path) -> None:
    hostile = "\x1b[2J\u202e:smile: [red]x[/] \N{NO-BREAK SPACE}Ñ"
    asked: list[Request] = []
    with http_server(recorded(listing([RECORDS[0]._replace(nombre=hostile), *RECORDS[1:]]), asked)) as url:
        ended = invoke("verify", str(small_catalogue), "--url", url.replace("http://", "http://user:s3cr3t@"))
    assert "nombre '\\x1b[2J\\u202e:smile: [red]x[/] \\xa0Ñ', in the file 'Aguascalientes'" in ended.stdout
    assert "\x1b" not in ended.stdout
    assert {request.headers["Authorization"] for request in asked} == {f"Basic {b64encode(b'user:s3cr3t').decode()}"}
    assert ended.stdout.startswith(f"{url} against ")
    assert "s3cr3t" not in ended.stdout + ended.stderr


# -- Faulty services


def changed(position: int, **fields: Any) -> Callable[[Records], Records]:  # noqa: ANN401  # of a record
    return lambda rows: [*rows[:position], rows[position]._replace(**fields), *rows[position + 1 :]]


@pytest.mark.parametrize(
    ("damage", "expected", "line"),
    [
        (lambda rows: [*rows[:70], *rows[71:]], {"missing": 1}, f"  missing {RECORDS[70].id} "),
        (lambda rows: [*rows, rows[0]], {"doubled": 1}, "  doubled 10010001 '0001' 'Aguascalientes', page 3"),
        (changed(49, nombre="Otro"), {"different": 1}, f"  different {RECORDS[49].id}, page 1: nombre 'Otro', in the"),
        (changed(50, nombre="Otro"), {"different": 1}, f"  different {RECORDS[50].id}, page 2: nombre 'Otro', in the"),
        (changed(60, municipio_id=9002), {"different": 1}, f"_id 9002, in the file {RECORDS[60].municipio_id}"),
        (changed(131, clave="9"), {"different": 1}, ", page 3: clave '9', in the file '0"),
        (lambda rows: [*rows, UNKNOWN], {"unknown": 1}, "33001 (not in the file): 1 unknown\n  unknown 330019999 "),
        (lambda rows: [*rows, UNKNOWN, UNKNOWN], {"doubled": 1, "unknown": 1}, "330019999"),
        (lambda rows: [*rows[1:120], rows[0], *rows[120:]], {"out_of_order": 1}, "  out of order 10010001 '0001' "),
        (lambda rows: [rows[1], rows[0], *rows[2:]], {"out_of_order": 1}, "page 1"),  # of one clave
    ],
)
def test_wrong_record_is_the_only_difference(
    small_catalogue: Path, damage: Callable[[Records], Records], expected: dict[str, int], line: str
) -> None:
    verification = check(small_catalogue, listing(damage(RECORDS)))
    assert (counts_of(verification), verification.agrees, verification.walk.faults) == (expected, False, [])
    assert line in "\n".join(describe(verification))


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
def test_wrong_totals_are_reported(small_catalogue: Path, totals: dict[str, Any], fault: str) -> None:
    verification = check(small_catalogue, listing(**totals))
    assert fault in verification.walk.faults
    assert f"totals       {fault}" in describe(verification)
    assert not verification.agrees


@pytest.mark.parametrize("change", [{"quantity": 131}, {"total_pages": 4}, {"release": "2021-01"}])
def test_list_changing_during_the_check_is_reported_once(small_catalogue: Path, change: dict[str, Any]) -> None:
    def respond(request: Request) -> Response:
        return page_of(RECORDS, number_of(request), **(change if number_of(request) >= 2 else {}))

    verification = check(small_catalogue, respond)
    fault = "Page 2 has a different quantity, total_pages or release than the first page."
    assert (verification.walk.faults, counts_of(verification), verification.agrees) == ([fault], {}, False)


def test_empty_list_misses_everything_and_has_at_most_one_page(small_catalogue: Path) -> None:
    two = ["Page 2 answers 404, but the first page reports 2 pages.", "total_pages is 2, but there are 1 pages."]
    for total_pages, faults in ((0, []), (1, []), (2, two)):
        verification = check(small_catalogue, listing([], total_pages=total_pages))
        assert (counts_of(verification), verification.walk.faults) == ({"missing": 132}, faults)


# -- Services that can't be checked


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(b"<!doctype html>"), "Page 1 is not JSON: set --url to the root address of a service."),
        (Response(b'{"quantity":1', headers={"Content-Length": "20", "Connection": "close"}), "Page 1 can't be read ("),
        (Response(b"[]"), "Page 1 does not match the API's schema: "),
        (Response(b'{"quantity":1,"total_pages":1}'), "results: It is required."),
        (Response(b'{"quantity":"1","total_pages":1,"results":[]}'), "quantity: Give a whole number."),
        (
            Response(b'{"quantity":1,"total_pages":1,"results":[{"id":1,"municipio_id":1,"clave":1,"nombre":"x"}]}'),
            "results[0].clave: Give a text.",
        ),
        (Response(b'{"quantity":1,"total_pages":100001,"results":[]}'), "pages; verify reads at most 100000."),
        (Response(status=500), "Page 1 answers 500: check the service's log."),
        (Response(status=301, headers={"Location": "/"}), "Page 1 answers 301: set --url to where it redirects."),
        (Response(b" " * (1024**2 + 1)), "Page 1 is larger than 1 MB."),
        (
            page_of([record._replace(id=number) for number, record in enumerate(RECORDS, 1)], 1, total_pages=1),
            "None of the service's ids is a key in the file: verify compares only services whose ids are INEGI's keys.",
        ),
        (
            page_of(RECORDS, 1, release="2018-09"),
            "The service ignores --release and answers with another release.",
        ),
    ],
)
def test_incomparable_answer_is_refused(small_catalogue: Path, answer: Response, said: str) -> None:
    assert said in refusal_by(small_catalogue, lambda _: answer)


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
    monkeypatch.setattr(verify_module, "PAGE_TIMEOUT", 0.5)
    assert refusal_by(small_catalogue, lambda _: answer).startswith(said)


def test_endless_list_is_given_up(small_catalogue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "MAX_RECORDS", 132)
    assert check(small_catalogue, listing()).agrees
    said = "The service lists more than 132 records, the most that verify reads."
    assert refusal_by(small_catalogue, listing([*RECORDS, RECORDS[0]])) == said


# -- The walk


def test_links_are_followed_over_one_connection_and_pages_counted_without(small_catalogue: Path) -> None:
    links = linked(lambda number: f"?page={number + 1}&mark=x" if number < 3 else "")
    for respond, pages, is_linked in (
        (links, ("1&release=2020-01", "2&mark=x", "3&mark=x"), True),
        (listing(), [f"{number}&release=2020-01" for number in (1, 2, 3)], False),
    ):
        asked: list[Request] = []
        verification = check(small_catalogue, recorded(respond, asked), "2020-01")
        assert (verification.agrees, verification.walk.followed) == (True, is_linked)
        assert [one.target for one in asked] == [MANIFEST, *(f"{LOCALIDADES}?page={page}" for page in pages)]
        assert len({request.port for request in asked}) == 1


@pytest.mark.parametrize("origin", ["http://localhost", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_link_to_another_origin_is_not_followed(small_catalogue: Path, origin: str) -> None:
    def respond(request: Request) -> Response:
        number, port = number_of(request), request.headers["Host"].rpartition(":")[2]
        other = origin if origin.endswith(":1") else f"{origin}:{port}"
        return page_of(RECORDS, number, link=f"{other}{LOCALIDADES}?page={number + 1}")

    verification = check(small_catalogue, respond)
    assert (verification.agrees, verification.walk.followed) == (True, False)


@pytest.mark.parametrize(
    ("link", "pages"),
    [("?page={following}", 6), ("?page={circular}", 3), ("?page={circular}#again", 3)],
)
def test_endless_links_are_given_up(small_catalogue: Path, link: str, pages: int) -> None:
    respond = linked(lambda number: link.format(following=number + 1, circular=number % 3 + 1))
    verification = check(small_catalogue, respond)
    assert (verification.walk.pages, verification.agrees) == (pages, False)
    assert f"The links to the next page never end: verify stopped after page {pages}." in verification.walk.faults
