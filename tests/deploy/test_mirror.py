"""A mirror beside the service that it was made from: the same answers, from files."""

import gzip
import hashlib
import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from tests.support.application import import_file
from tests.support.catalogue import many, write_catalogue
from tests.support.machine import children_of, needed
from tests.support.mirror import mirror_served, reload_nginx, write_mirror
from tests.support.nginx import running_nginx
from tests.support.postgres import new_database
from tests.support.waiting import PATIENCE, eventually
from tests.support.wire import COMMAND, LOCALIDADES, ROOT, Answer, ask, await_names, environment, run, serving

pytestmark = pytest.mark.tail

CENSUS = "/api/census/"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
REDIRECTS = {307, 308}
# Of the connection, or of nginx itself.
CONNECTION = {"date", "server", "connection", "content-length", "transfer-encoding", "keep-alive"}


@dataclass(frozen=True)
class Pair:
    """A service, and nginx on a mirror of it."""

    live: str
    mirror: str
    folder: Path
    database: str
    file: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Lend two catalogues; five places, and with them a municipio, have gone in the second, one was renamed."""
    folder = tmp_path_factory.mktemp("catalogues")
    places = many(137)
    later = [replace(place, nombre="Otro") if place.nombre == "Lugar 9" else place for place in places[:-5]]
    return (
        write_catalogue(folder / "catun_localidad_2019-01.csv", places),
        write_catalogue(folder / "catun_localidad_2020-01.csv", later),
    )


@pytest.fixture(scope="module")
def pair(
    server: str, migrated: str, files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    with new_database(server, migrated) as url:
        for file in files:
            import_file(url, file)
        folder = tmp_path_factory.mktemp("mirror") / "localidades"
        written = write_mirror(folder, url)
        assert written.returncode == 0, written.stderr
        with serving(url) as live, mirror_served(folder) as (mirror, _):
            yield Pair(live.base, mirror, folder, url, files[1])


def told(answer: Answer) -> dict[str, str]:
    """Return the headers that the contract speaks of."""
    headers: dict[str, str] = {}
    for name, value in answer.headers:
        if name not in CONNECTION:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def body_of(answer: Answer) -> bytes:
    """Return a body without the framing of its chunks."""
    if "chunked" not in answer.all("transfer-encoding"):
        return answer.body
    body, rest = b"", answer.body
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return body


def compare(pair: Pair, target: str, *headers: tuple[str, str], method: str = "GET") -> Answer:
    """Ask both; the answers must be the same but for the coding that only the mirror offers."""
    ours, theirs = ask(pair.mirror, target, *headers, method=method), ask(pair.live, target, *headers, method=method)
    assert ours.status == theirs.status, (target, ours, theirs)
    expected = told(theirs)
    found = told(ours)
    if ours.status == 304 and "link" not in expected:  # the service knows some before it knows how many pages there are
        found.pop("link", None)
    if ours.status in REDIRECTS:  # nginx adds a body, whose type follows it
        found = {name: value for name, value in found.items() if name in expected}
    else:
        assert ours.body == body_of(theirs), target
    if found.get("vary") == "Accept, Accept-Encoding":
        found["vary"] = "Accept" if expected["vary"] == "Accept" else found["vary"]
    assert found == expected, target
    return ours


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ids(pair: Pair) -> list[int]:
    listed = json.loads(ask(pair.live, f"{LOCALIDADES}?page_size=1000").body)
    return [one["id"] for one in listed["results"]]


RESOURCES = (
    CENSUS,
    f"{CENSUS}?format=json",
    f"{CENSUS}?release=2020-01&lang=es",
    LOCALIDADES,
    f"{LOCALIDADES}?page=2",
    f"{LOCALIDADES}?page=003&format=json",
    f"{LOCALIDADES}?release=2020-01&page=3",
    f"{LOCALIDADES}?page=3&page_size=50",
    f"{CENSUS}estados/",
    f"{CENSUS}estados/?page_size=1000",
    f"{CENSUS}estados/1/",
    f"{CENSUS}municipios/",
    f"{CENSUS}municipios/?page=2",
    f"{CENSUS}municipios/?page_size=1000",
    f"{CENSUS}municipios/?estado_id=2&page_size=1000",
    f"{CENSUS}municipios/?page_size=1000&estado_id=2&page=1&format=json",
    f"{CENSUS}municipios/?estado_id=2",
    f"{CENSUS}municipios/1001/",
    f"{CENSUS}releases/",
    f"{CENSUS}releases/?page=1&page_size=1000",
    f"{LOCALIDADES}10010001/",
    f"{LOCALIDADES}10010001/?release=2020-01",
    "/problems",
)
REFUSED = (
    f"{LOCALIDADES}?page=4",
    f"{LOCALIDADES}?page=999999999999999",
    f"{CENSUS}estados/?page=2",
    f"{CENSUS}municipios/?page_size=1000&page=2",
    f"{CENSUS}municipios/?estado_id=2&page=2",
    f"{LOCALIDADES}?release=2000-01",
    f"{LOCALIDADES}10010001/?release=2000-01",
    f"{LOCALIDADES}download/?format=csv&release=2000-01",
    f"{LOCALIDADES}10010099/",
    f"{CENSUS}municipios/1999/",
    f"{CENSUS}nothing/",
    f"{LOCALIDADES}10010001/nothing",
    "/nothing",
)
REDIRECTED = (
    "/api/census",
    "/api/census?release=2020-01",
    f"{CENSUS}localidades?page=2",
    f"{CENSUS}municipios",
    f"{CENSUS}releases",
    f"{LOCALIDADES}download?format=csv",
    f"{LOCALIDADES}10010001",
    f"{LOCALIDADES}010010001/",
    f"{LOCALIDADES}010010001/?release=2020-01",
    f"{CENSUS}municipios/01001/",
    f"{CENSUS}estados/01/",
    "/",
)


@pytest.mark.parametrize("target", [*RESOURCES, *REFUSED, *REDIRECTED])
def test_answer_is_that_of_the_service(pair: Pair, target: str) -> None:
    answer = compare(pair, target)
    compare(pair, target, method="HEAD")
    compare(pair, target, ("Accept", "application/json"))
    compare(pair, target, ("Accept", "application/json, text/plain, */*"))
    if tags := answer.all("etag"):
        for listed in (tags[0], f"W/{tags[0]}", f'"x", {tags[0]}', "*"):
            assert compare(pair, target, ("If-None-Match", listed)).status == 304
        assert compare(pair, target, ("If-None-Match", '"x"')).status == 200


def test_every_locality_and_every_withdrawn_one_is_that_of_the_service(pair: Pair) -> None:
    every = ids(pair)
    assert len(every) == 132
    for id_ in every:
        assert compare(pair, f"{LOCALIDADES}{id_}/").status == 200
    since = ask(pair.live, f"{CENSUS}releases/2020-01/changes/?since=2019-01&change=removed&format=ndjson")
    gone = [json.loads(line)["id"] for line in body_of(since).splitlines()]
    assert len(gone) == 5
    for id_ in gone:
        assert compare(pair, f"{LOCALIDADES}{id_}/").status == 410


def test_links_lead_through_every_page_once(pair: Pair) -> None:
    verified = run("verify", str(pair.file), "--url", pair.mirror)
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("format_", ["csv", "excel", "ndjson", "geojson", "parquet", "xlsx", "gpkg"])
def test_download_is_that_of_the_service(pair: Pair, format_: str) -> None:
    target = f"{LOCALIDADES}download/?format={format_}"
    answer = compare(pair, target)
    assert compare(pair, target, ("If-None-Match", answer.one("etag"))).status == 304
    compare(pair, target, method="HEAD")


def test_download_is_chosen_by_accept(pair: Pair) -> None:
    target = f"{LOCALIDADES}download/"
    for accept in ("text/csv", "application/x-ndjson", "application/geo+json", "application/geopackage+sqlite3", "*/*"):
        compare(pair, target, ("Accept", accept))
    assert ask(pair.mirror, target, ("Accept", "image/png")).status == 406


def test_changes_since_an_earlier_release_are_those_of_the_service(pair: Pair) -> None:
    target = f"{CENSUS}releases/2020-01/changes/?since=2019-01"
    changes = compare(pair, f"{target}&format=ndjson")
    assert len(changes.body.splitlines()) == 6
    compare(pair, target, ("Accept", "application/x-ndjson"))
    compare(pair, f"{target}&format=ndjson", ("If-None-Match", changes.one("etag")))
    assert ask(pair.mirror, target).status == 501


@pytest.mark.parametrize("target", [LOCALIDADES, f"{LOCALIDADES}download/?format=ndjson", f"{CENSUS}municipios/"])
def test_content_codings_are_chosen_by_what_the_client_accepts(pair: Pair, target: str) -> None:
    plain = ask(pair.mirror, target)
    for accepted, coding in (
        ("gzip", "gzip"),
        ("gzip, deflate, br", "br"),
        ("gzip, deflate, br, zstd", "br"),
        ("zstd, gzip", "zstd"),
        ("br;q=0, gzip;q=0.5", "gzip"),
    ):
        answer = ask(pair.mirror, target, ("Accept-Encoding", accepted))
        assert answer.one("content-encoding") == coding
        assert answer.one("vary") == "Accept, Accept-Encoding"
        assert answer.one("etag") == "W/" + plain.one("etag").removeprefix("W/")
        assert len(answer.body) < len(plain.body)
        unpacked = {"gzip": gzip.decompress, "br": brotli.decompress, "zstd": _unpack_zstd}[coding](answer.body)
        assert unpacked == plain.body
    for accepted in ("identity", "br;q=0", "compress"):
        assert not ask(pair.mirror, target, ("Accept-Encoding", accepted)).all("content-encoding")
    fresh = ask(pair.mirror, target, ("Accept-Encoding", "br"), ("If-None-Match", plain.one("etag")))
    assert fresh.status == 304


def _unpack_zstd(body: bytes) -> bytes:
    answer = httpx.Response(200, headers={"Content-Encoding": "zstd"}, content=body)
    return answer.content


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE"])
def test_other_methods_are_refused_and_options_tells_what_is_allowed(pair: Pair, method: str) -> None:
    for target in (LOCALIDADES, f"{LOCALIDADES}10010001/", CENSUS, f"{CENSUS}releases/", f"{CENSUS}nothing"):
        if method != "TRACE":  # nginx answers it before its configuration is asked
            compare(pair, target, method=method)
        assert ask(pair.mirror, target, method=method).status == 405
        compare(pair, target, ("Origin", "https://example.mx"), method="OPTIONS")


@pytest.mark.parametrize(
    "target",
    [
        f"{LOCALIDADES}?search=lugar",
        f"{LOCALIDADES}?estado_id=1",
        f"{LOCALIDADES}?page_size=20&page=2",
        f"{LOCALIDADES}?sort=nombre",
        f"{LOCALIDADES}?sort=-poblacion&page=2",
        f"{LOCALIDADES}?fields=cvegeo,nombre&release=2020-01",
        f"{LOCALIDADES}?format=api",
        f"{LOCALIDADES}10010001/?format=api",
        f"{LOCALIDADES}10010001/?format=json&fields=nombre",
        f"{LOCALIDADES}download/?format=csv&estado_id=1",
        f"{LOCALIDADES}suggest/?q=a",
        f"{LOCALIDADES}nearest/?lat=20&lon=-100",
        f"{LOCALIDADES}match/",
        f"{LOCALIDADES}?bbox=-103,21,-102,22",
        f"{LOCALIDADES}download/?format=csv&bbox=-103,21,-102,22",
        f"{LOCALIDADES}tiles.json",
        f"{LOCALIDADES}tiles/0/0/0.mvt",
        f"{LOCALIDADES}backdrop.svg?release=2020-01",
        f"{CENSUS}reconcile/",
        f"{CENSUS}releases/feed.atom",
        f"{CENSUS}municipios/?page_size=7",
        f"{CENSUS}releases/2019-01/changes/?since=2020-01&format=ndjson",
        f"{LOCALIDADES}?release=2019-01",
        "/match",
        "/map",
        "/docs",
    ],
)
def test_what_files_cannot_answer_is_said_to_be_so(pair: Pair, target: str) -> None:
    answer = ask(pair.mirror, target)
    assert (answer.status, answer.one("content-type")) == (501, "application/problem+json")
    assert json.loads(answer.body)["type"] == "/problems#not-mirrored"


@pytest.mark.parametrize(
    "query",
    [
        "page=x", "page=0", "page=-1", "page=", "page=1&page=2", "page=2&format=json&page=1", "pgae=2", "format=xml",
        "lang=fr", "%70age=2", "page=1_0", "page=%31", "&&&x", "release=", "page=\u0662".encode().decode("latin-1"),
        "page_size=0", "page_size=1001", "search=a&search=b", "Page=2", "release=2020-01&release=2020-01",
    ],
)  # fmt: skip
def test_query_that_the_service_refuses_is_not_answered_with_other_data(pair: Pair, query: str) -> None:
    for path in (LOCALIDADES, f"{CENSUS}municipios/", f"{CENSUS}releases/"):
        live, answer = ask(pair.live, f"{path}?{query}"), ask(pair.mirror, f"{path}?{query}")
        if live.status != 422:  # another spelling of a request that the mirror does not have to know
            assert answer.status in {422, 501} or answer.body == live.body
        else:
            assert answer.status == 422, query
            assert json.loads(answer.body)["type"] == "/problems#invalid-parameters"


def test_browser_gets_json_and_a_client_of_html_alone_is_told_that_there_is_none(pair: Pair) -> None:
    assert ask(pair.mirror, LOCALIDADES, ("Accept", BROWSER)).one("content-type") == "application/json"
    for accept in ("text/html", "image/png", "application/json;q=0"):
        answer = ask(pair.mirror, LOCALIDADES, ("Accept", accept))
        assert (answer.status, json.loads(answer.body)["available"]) == (406, ["application/json"])


def test_files_have_addresses_that_never_change(pair: Pair) -> None:
    pointer = json.loads(ask(pair.mirror, "/mirror.json").body)
    folder = pointer["releases"][pointer["current"]]
    page = ask(pair.mirror, f"/{folder}/localidades/all/2.json")
    assert page.one("cache-control") == "public, max-age=31536000, immutable"
    assert page.body == ask(pair.live, f"{LOCALIDADES}?page=2").body
    assert ask(pair.mirror, f"/{folder}/nothing.json").status == 404
    for hidden in ("/.lock", "/nginx.conf", "/server.conf", "/mirror.conf", f"/.{folder}/index.json"):
        assert ask(pair.mirror, hidden).status == 404


def test_nginx_holds_more_files_open_than_a_shell_lets_it(pair: Pair, tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    assert write_mirror(folder, pair.database).returncode == 0
    with mirror_served(folder, descriptors=40) as (mirror, nginx):
        for id_ in ids(pair):
            assert ask(mirror, f"{LOCALIDADES}{id_}/").status == 200
        for worker in children_of(nginx.pid):
            assert re.search(r"^Max open files +16384 ", Path(f"/proc/{worker}/limits").read_text(), re.MULTILINE)


def test_manifest_lists_every_file_with_its_digest(pair: Pair) -> None:
    (folder,) = pair.folder.glob("2020-01-*")
    listed = {}
    for line in (folder / "manifest.ndjson").read_bytes().splitlines():
        entry = json.loads(line)
        listed[entry["path"]] = entry["sha256"]
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found - set(listed) == {"manifest.ndjson", "release.json"}
    for path, digest in listed.items():
        assert hashlib.sha256((folder / path).read_bytes()).hexdigest() == digest, path


def test_release_is_added_beside_the_one_before(
    server: str, migrated: str, files: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "mirror"
    with new_database(server, migrated) as url:
        import_file(url, files[0])
        with serving(url) as live:
            assert write_mirror(folder, None, "--url", live.base).returncode == 0
            with mirror_served(folder) as (mirror, nginx):
                first = ask(mirror, LOCALIDADES)
                assert first.one("catalogue-release") == "2019-01"
                import_file(url, files[1])
                assert write_mirror(folder, url).returncode == 0
                assert told(ask(mirror, LOCALIDADES)) == told(first), "it is served until nginx is reloaded"
                assert ask(mirror, LOCALIDADES).body == first.body
                reload_nginx(nginx)
                eventually(lambda: ask(mirror, LOCALIDADES).one("catalogue-release") == "2020-01")
                now = Pair(live.base, mirror, folder, url, files[1])
                eventually(lambda: ask(live.base, LOCALIDADES).one("catalogue-release") == "2020-01")
                for target in (LOCALIDADES, f"{LOCALIDADES}?release=2019-01&page=2", f"{CENSUS}releases/",
                               f"{LOCALIDADES}10010001/?release=2019-01"):  # fmt: skip
                    compare(now, target)


def test_mirror_goes_back_and_drops_a_release_whose_folder_is_deleted(
    server: str, migrated: str, files: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "mirror"
    with new_database(server, migrated) as url:
        for file in files:
            import_file(url, file)
            assert write_mirror(folder, url).returncode == 0
        with mirror_served(folder) as (mirror, nginx):
            assert ask(mirror, LOCALIDADES).one("catalogue-release") == "2020-01"
            assert run("releases", "publish", "2019-01", env=environment(url)).returncode == 0
            assert write_mirror(folder, url).returncode == 0
            reload_nginx(nginx)
            eventually(lambda: ask(mirror, LOCALIDADES).one("catalogue-release") == "2019-01")
            assert ask(mirror, f"{LOCALIDADES}?release=2020-01").status == 200
            (unwanted,) = folder.glob("2020-01-*")
            shutil.rmtree(unwanted)
            assert write_mirror(folder, url).returncode == 0
            reload_nginx(nginx)
            eventually(lambda: ask(mirror, f"{LOCALIDADES}?release=2020-01").status == 501)
            assert ask(mirror, LOCALIDADES).one("catalogue-release") == "2019-01"


def test_release_is_written_anew_once_an_earlier_one_is_retired(
    server: str, migrated: str, files: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "mirror"
    with new_database(server, migrated) as url:
        for file in files:
            import_file(url, file)
        assert write_mirror(folder, url).returncode == 0
        with serving(url) as live, mirror_served(folder) as (mirror, nginx):
            now = Pair(live.base, mirror, folder, url, files[1])
            changes = f"{CENSUS}releases/2020-01/changes/?since=2019-01&format=ndjson"
            removed = (json.loads(line) for line in compare(now, changes).body.splitlines())
            gone = [one["id"] for one in removed if one["change"] == "removed"]
            assert {compare(now, f"{LOCALIDADES}{id_}/").status for id_ in gone} == {410}
            assert run("releases", "retire", "2019-01", env=environment(url)).returncode == 0
            assert write_mirror(folder, url).returncode == 0
            reload_nginx(nginx)
            eventually(lambda: ask(live.base, f"{LOCALIDADES}{gone[0]}/").status == 404)
            assert {compare(now, f"{LOCALIDADES}{id_}/").status for id_ in gone} == {404}
            assert ask(mirror, changes).status == 501
            assert compare(now, LOCALIDADES).status == 200


def test_mirror_of_a_service_is_that_of_its_database(pair: Pair, tmp_path: Path) -> None:
    written = write_mirror(tmp_path / "mirror", None, "--url", pair.live)
    assert written.returncode == 0, written.stderr
    (theirs,) = (tmp_path / "mirror").glob("2020-01-*")
    (ours,) = pair.folder.glob("2020-01-*")
    assert theirs.name == ours.name
    assert sorted((theirs / "manifest.ndjson").read_bytes().splitlines()) == sorted(
        (ours / "manifest.ndjson").read_bytes().splitlines()
    )


def test_run_that_is_killed_goes_on_where_it_stopped(pair: Pair, tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    (whole,) = pair.folder.glob("2020-01-*")
    draft = folder / f".{whole.name}"

    def journals() -> int:
        return len(list(draft.glob("journal/*.ndjson")))

    def has_gone_on(process: subprocess.Popen[bytes], before: int) -> bool:
        return journals() > before or process.poll() is not None

    for _ in range(3):
        before = journals()
        process = subprocess.Popen([*COMMAND, "mirror", str(folder)], env=environment(pair.database), cwd=ROOT)
        eventually(partial(has_gone_on, process, before))
        process.kill()
        assert process.wait(PATIENCE) in {0, -signal.SIGKILL}
        assert not (folder / "mirror.json").exists() or (folder / whole.name).exists()
    assert write_mirror(folder, pair.database).returncode == 0
    assert (folder / whole.name / "manifest.ndjson").read_bytes() == (whole / "manifest.ndjson").read_bytes()
    assert contents(folder / whole.name) == contents(whole)
    assert not draft.exists()


def test_file_that_was_damaged_meanwhile_is_written_again(pair: Pair, tmp_path: Path) -> None:
    (whole,) = pair.folder.glob("2020-01-*")
    folder = tmp_path / "mirror"
    draft = folder / f".{whole.name}"
    folder.mkdir()
    (folder / ".lock").touch()
    shutil.copytree(whole, draft)
    (draft / "journal").mkdir()
    manifest = (draft / "manifest.ndjson").read_bytes().splitlines(keepends=True)
    (draft / "journal" / "records-0.ndjson").write_bytes(b"".join(line for line in manifest if b'"index.json"' in line))
    (draft / "index.json").write_bytes((draft / "index.json").read_bytes()[::-1])
    assert write_mirror(folder, pair.database).returncode == 0
    assert (folder / whole.name / "index.json").read_bytes() == (whole / "index.json").read_bytes()


def test_origin_answers_what_files_cannot_and_may_be_away(
    server: str, migrated: str, files: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "mirror"
    browser = ("Accept", BROWSER)
    with new_database(server, migrated) as url:
        import_file(url, files[0])
        with serving(url) as live:
            await_names(live.base)
            assert write_mirror(folder, url, "--origin", live.base).returncode == 0
            with mirror_served(folder) as (mirror, _):
                for target in (f"{LOCALIDADES}?search=lugar", f"{LOCALIDADES}?page_size=20", f"{LOCALIDADES}?pgae=2",
                               f"{LOCALIDADES}suggest/?q=lugar", f"{CENSUS}nothing", "/nothing"):  # fmt: skip
                    ours, theirs = ask(mirror, target), ask(live.base, target)
                    assert (ours.status, ours.body) == (theirs.status, theirs.body), target
                page = ask(mirror, LOCALIDADES, browser)
                assert page.one("content-type").startswith("text/html")
                rows = ask(
                    mirror, f"{LOCALIDADES}nearest/", ("Content-Type", "text/csv"), method="POST",
                    body=b"latitud,longitud\n21.88,-102.3\n",
                )  # fmt: skip
                assert rows.status == 200
                live.process.terminate()
                live.process.wait(PATIENCE)
                for target in (LOCALIDADES, f"{LOCALIDADES}?page=2", f"{LOCALIDADES}10010001/", CENSUS,
                               f"{CENSUS}estados/1/", f"{CENSUS}releases/", f"{CENSUS}?release=2019-01"):  # fmt: skip
                    held = ask(mirror, target)
                    assert held.status == 200
                    page = ask(mirror, target, browser)
                    assert (page.status, page.body) == (200, held.body), target
                    assert page.one("content-type") == "application/json"
                    assert page.one("cache-control") == "no-store", target
                    assert page.one("vary").startswith("Accept")
                    assert told(ask(mirror, target)) == told(held)
                assert ask(mirror, f"{LOCALIDADES}10010099/", browser).status == 404
                for target, accept in ((f"{LOCALIDADES}?search=lugar", browser), ("/map", browser),
                                       (f"{LOCALIDADES}?search=lugar", ("Accept", "*/*")),
                                       (LOCALIDADES, ("Accept", "text/html"))):  # fmt: skip
                    away = ask(mirror, target, accept)
                    assert (away.status, json.loads(away.body)["type"]) == (503, "/problems#unavailable")


def test_origin_is_answered_for_by_an_authority_that_is_trusted(pair: Pair, tmp_path: Path) -> None:
    openssl = needed(shutil.which("openssl"), "install openssl")
    for name in ("origin", "stranger"):
        files = ("-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.crt"))
        named = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
        subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, *named], check=True)
    listen = (
        f"listen 127.0.0.1:PORT ssl; ssl_certificate {tmp_path}/origin.crt; ssl_certificate_key {tmp_path}/origin.key;"
    )
    with running_nginx(pair.live, tmp_path, listen) as secured:
        for name, status in (("origin", 200), ("stranger", 503)):
            folder, authority = tmp_path / f"mirror-{name}", {"SSL_CERT_FILE": str(tmp_path / f"{name}.crt")}
            origin = ("--origin", f"https://localhost:{secured.port}")
            written = run("mirror", str(folder), *origin, env=environment(pair.database) | authority)
            assert written.returncode == 0, written.stderr
            with mirror_served(folder) as (mirror, _):
                assert ask(mirror, f"{LOCALIDADES}?page_size=20").status == status
                assert ask(mirror, LOCALIDADES).status == 200
        refused = run("mirror", str(folder), *origin, env=environment(pair.database) | {"SSL_CERT_FILE": "/nothing"})
        assert (refused.returncode, "Name one in SSL_CERT_FILE" in refused.stderr) == (1, True)


@pytest.mark.parametrize("option", ["--url", "--origin"])
def test_address_that_is_none_is_told_by_its_option(tmp_path: Path, option: str) -> None:
    refused = run("mirror", str(tmp_path / "mirror"), option, "nowhere", env=environment())
    assert refused.returncode == 1
    assert f"error: {option} must be the root address of a service" in refused.stderr


def test_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    refused = write_mirror(tmp_path, None)
    assert refused.returncode == 1
    assert "choose an empty folder" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_release_that_does_not_exist_is_named_with_those_that_do(pair: Pair, tmp_path: Path) -> None:
    refused = write_mirror(tmp_path / "mirror", pair.database, "--release", "2000-01")
    assert refused.returncode == 1
    assert "there are 2019-01, 2020-01" in refused.stderr
