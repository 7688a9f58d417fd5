"""Files and addresses that are made to harm the importer: each is refused in little time and memory."""

import socket
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from localidades_api.errors import CatalogueError
from localidades_api.importer import extract
from localidades_api.importer import source as source_module
from localidades_api.importer.extract import open_table
from localidades_api.importer.transform import transform
from tests.support.catalogue import TRAPS, refusal_of, write_catalogue
from tests.support.http_server import Response, http_server
from tests.support.refusals import MEGABYTE, refusal
from tests.support.workbooks import add_nameless

pytestmark = pytest.mark.tail

HEADER = b'"CVE_ENT","NOM_ENT","CVE_MUN","NOM_MUN","CVE_LOC","NOM_LOC"\r\n'


def read(path: Path) -> None:
    with open_table(path) as table:
        transform(table, lambda _: None)


# -- Zips


def zip_of(path: Path, content: bytes | str, member: str | zipfile.ZipInfo = "AGEEML.csv") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return path


def declaring(path: Path, *, file_size: int | None = None, compress_size: int | None = None) -> Path:
    """Have the directory of a zip say other sizes than there are."""
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    for at, size in ((20, compress_size), (24, file_size)):
        if size is not None:
            struct.pack_into("<L", content, entry + at, size)
    path.write_bytes(content)
    return path


def with_many_files(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(1001):
            archive.writestr(f"{number}.csv", b"")
    return path


def with_huge_directory(path: Path) -> Path:
    """Write half a million entries of 46 bytes and a name: a file of 25 MB, and objects of 400."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    count = 500_000
    directory = entry * count
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(directory), 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(directory), 0, 0)  # it says one: the other counts
    path.write_bytes(directory + end64 + locator + end)
    return path


def nameless(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        add_nameless(archive)
    return path


def linked(path: Path) -> Path:
    link = zipfile.ZipInfo("AGEEML.csv")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    return zip_of(path, "/etc/passwd", link)


RATIO = "The zip unpacks to more than 200 times its size: this is not a catalogue."
BOMB = HEADER + b"\n" * 100 * MEGABYTE


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda path: zip_of(path, BOMB), RATIO),
        (lambda path: declaring(zip_of(path, BOMB), compress_size=50 * MEGABYTE), RATIO),  # the file's size counts
        (lambda path: declaring(zip_of(path, BOMB), file_size=1000), "damaged"),  # no further than it says
        (lambda path: zip_of(path, b"x" * 63 * MEGABYTE), "Line 1 has more than a million characters"),  # small enough
        (lambda path: declaring(zip_of(path, HEADER), file_size=2**31 + 1),
         "The zip unpacks to more than 2 GB: this is not a catalogue."),
        (with_many_files, "The zip has more than 1000 files: this is not a catalogue."),
        (with_huge_directory, "The zip's directory is too large"),
        (lambda path: zip_of(path, b"PK", "inner.zip"),
         "The zip has no csv or txt file (it has .zip): use INEGI's own zip."),
        (nameless, "The zip has no csv or txt file: use INEGI's own zip."),
        (linked, "its first line does not name"),  # the text that it holds
    ],
    ids=["ratio", "claims to be packed less", "claims to be small", "dense", "claims gigabytes", "files", "directory",
         "zip within", "no name", "link"],
)  # fmt: skip
def test_zip_that_could_do_harm_is_refused(tmp_path: Path, make: Callable[[Path], Path], sentence: str) -> None:
    assert sentence in refusal(read, make(tmp_path / "catun_localidad.zip"), 150 * MEGABYTE)


@pytest.mark.parametrize("name", ["../../escaped.csv", "{outside}/escaped.csv", "..\\..\\escaped.csv", "C:\\x.csv"])
def test_zip_with_a_path_outside_is_read_where_it_lies_and_written_nowhere(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path = folder / "catun_localidad.zip"
    table = write_catalogue(folder / "AGEEML.csv", TRAPS)
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(table, name.format(outside=tmp_path))
    before = sorted(tmp_path.rglob("*"))
    with open_table(path) as opened:
        assert len(transform(opened, lambda _: None).localities) == len(TRAPS)
    assert sorted(tmp_path.rglob("*")) == before


# -- Texts


def test_text_of_one_endless_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "AGEEML.csv"
    for number, beginning in ((1, b""), (2, HEADER)):
        path.write_bytes(beginning + b"x" * 250 * MEGABYTE)
        assert refusal(read, path) == f"Line {number} has more than a million characters: this is not a catalogue."


def test_text_of_too_many_lines_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MAX_LINES", 5)
    path = write_catalogue(tmp_path / "AGEEML.csv", TRAPS)
    with pytest.raises(CatalogueError, match="The file has more than 5 lines"), open_table(path) as table:
        transform(table, lambda _: None)


# -- Addresses


@contextmanager
def dripping(beginning: bytes, pieces: Iterator[bytes]) -> Iterator[str]:
    """Serve an answer piece by piece, whatever is asked."""
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    for piece in chain([beginning], pieces):
                        if over.is_set():
                            break
                        connection.sendall(piece)

        thread = Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/catun.zip"
        finally:
            over.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def drip(piece: bytes) -> Iterator[bytes]:
    for _ in range(600):
        time.sleep(0.05)
        yield piece


OK = b"HTTP/1.1 200 OK\r\n"
LATE = "The address can't be fetched (it takes more than 1 s)"


@pytest.mark.parametrize(
    ("limit", "value", "beginning", "pieces", "sentence"),
    [
        ("FETCH_TOTAL_TIMEOUT", 1.0, OK + b"\r\n", drip(b"x"), LATE),
        ("FETCH_TOTAL_TIMEOUT", 1.0, OK, drip(b"X-A: b\r\n"), LATE),
        ("FETCH_TOTAL_TIMEOUT", 1.0, b"HTTP", drip(b""), LATE),
        ("FETCH_TIMEOUT", 0.5, OK + b"Content-Length: 9\r\n\r\nx", drip(b""), "The address can't be fetched ("),
    ],
    ids=["body", "headers", "beginning", "silence"],
)
def test_address_that_gives_without_end_is_left(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: float, beginning: bytes, pieces: Iterator[bytes], sentence: str
) -> None:
    monkeypatch.setattr(source_module, limit, value)
    with dripping(beginning, pieces) as address:
        assert refusal_of(address).startswith(sentence)


def test_address_that_packs_as_it_was_not_asked_to_or_leads_out_of_the_web_is_refused() -> None:
    packed = "The server sends the file with a compression that was not requested: download it another way"
    encodings = ("br", "zstd", "deflate", "gzip, gzip", "GZIP,br", "compress", "x")
    locations = (
        "file:///etc/passwd", "ftp://127.0.0.1/a.zip", "gopher://127.0.0.1:70/", "data:text/csv,x", "javascript:1",
        "FILE:/etc/passwd", "unix:///run/x", "http://[", "http://",
    )  # fmt: skip
    answers = {sent: Response(b"x", headers={"Content-Encoding": sent}) for sent in encodings}
    answers |= {sent: Response(status=302, headers={"Location": sent}) for sent in locations}
    numbered = [*answers.values()]
    with http_server(lambda request: numbered[int(request.target[1:])]) as address:
        for number, sent in enumerate(answers):
            assert refusal_of(f"{address}/{number}").startswith(packed if sent in encodings else "The address "), sent


def test_address_that_leads_from_https_to_http_is_refused() -> None:
    def led(scheme: str, location: str) -> httpx.Response:
        asked = httpx.Request("GET", f"{scheme}://inegi.example/a.zip")
        return httpx.Response(302, headers={"Location": location}, request=asked)

    with pytest.raises(CatalogueError, match="redirects from https to an insecure address"):
        source_module._check_response(led("https", "http://inegi.example/b.zip"))
    for scheme, location in (("https", "/b.zip"), ("https", "https://other.example/"), ("http", "https://x.example/")):
        source_module._check_response(led(scheme, location))
