"""Files and addresses that are made to harm the importer: each is refused in little time and memory."""

import multiprocessing
import resource
import socket
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
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
from tests.support.http_server import Response, at_paths, http_server
from tests.support.workbooks import add_nameless

pytestmark = pytest.mark.tail

HEADER = b'"CVE_ENT","NOM_ENT","CVE_MUN","NOM_MUN","CVE_LOC","NOM_LOC"\r\n'
MEGABYTE = 1024**2

# A process that has loaded what reads a file already, and forks for each.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


def read(path: Path, memory: int, told: Connection) -> None:
    """Read a file as the importer does, with so much memory besides what there is already."""
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        with open_table(path) as table:
            transform(table, lambda _: None)
    except CatalogueError as error:
        told.send(str(error))


def refusal(path: Path, memory: int = 200 * MEGABYTE) -> str:
    """Read a file in a process of its own with little memory, and return the sentence that refuses it."""
    hears, tells = PROCESSES.Pipe(duplex=False)
    reading = PROCESSES.Process(target=read, args=(path, memory, tells))
    reading.start()
    tells.close()
    try:
        sentence: str = hears.recv()  # raises EOFError if it ends without one
    finally:
        reading.join()
    assert reading.exitcode == 0
    return sentence


# -- Zips


def declaring(path: Path, *, file_size: int | None = None, compress_size: int | None = None) -> Path:
    """Have the directory of a zip say other sizes than there are."""
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    if compress_size is not None:
        struct.pack_into("<L", content, entry + 20, compress_size)
    if file_size is not None:
        struct.pack_into("<L", content, entry + 24, file_size)
    path.write_bytes(content)
    return path


def test_zip_bomb_is_refused_by_its_ratio(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("AGEEML.csv", HEADER + b"\n" * 100 * MEGABYTE)
    assert path.stat().st_size < MEGABYTE
    assert refusal(path) == "The zip unpacks to more than 200 times its size: this is not a catalogue."


def test_small_file_may_be_packed_at_any_ratio(tmp_path: Path) -> None:
    path = tmp_path / "dense.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("AGEEML.csv", b"x" * 63 * MEGABYTE)
    assert path.stat().st_size * 200 < 63 * MEGABYTE
    assert "times its size" not in refusal(path)  # it is no catalogue for another reason


def test_zip_bomb_that_claims_to_be_packed_less_is_refused_by_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("AGEEML.csv", b"\n" * 100 * MEGABYTE)
    declaring(path, compress_size=50 * MEGABYTE)
    assert refusal(path) == "The zip unpacks to more than 200 times its size: this is not a catalogue."


def test_zip_bomb_that_claims_to_be_small_unpacks_no_further_than_it_says(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("AGEEML.csv", HEADER + b"x" * 100 * MEGABYTE)
    assert "damaged" in refusal(declaring(path, file_size=1000))


def test_zip_that_claims_to_unpack_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("AGEEML.csv", HEADER)
    assert refusal(declaring(path, file_size=2**31 + 1)) == (
        "The zip unpacks to more than 2 GB: this is not a catalogue."
    )


def test_zip_of_too_many_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(1001):
            archive.writestr(f"{number}.csv", b"")
    assert refusal(path) == "The zip has more than 1000 files: this is not a catalogue."


def test_zip_with_a_huge_directory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Half a million entries of 46 bytes and a name are a file of 25 MB and objects of 400."""
    path = tmp_path / "directory.zip"
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    count = 500_000
    directory = entry * count
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, len(directory), 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(directory), 0, 0)  # it says one: the other counts
    path.write_bytes(directory + end64 + locator + end)
    assert "The zip's directory is too large" in refusal(path, 100 * MEGABYTE)


def test_zip_within_itself_is_no_table(tmp_path: Path) -> None:
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.write(write_catalogue(tmp_path / "AGEEML.csv", TRAPS), "AGEEML.csv")
    path = tmp_path / "outer.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(inner, "inner.zip")
    assert refusal(path) == "The zip has no csv or txt file (it has .zip): use INEGI's own zip."


def test_zip_with_a_member_without_a_name_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "catun_localidad.zip"
    with zipfile.ZipFile(path, "w") as archive:
        add_nameless(archive)
    assert refusal(path) == "The zip has no csv or txt file: use INEGI's own zip."


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


def test_zip_with_a_symbolic_link_is_read_as_the_text_that_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "link.zip"
    link = zipfile.ZipInfo("AGEEML.csv")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert "its first line does not name" in refusal(path)


# -- Texts


def test_text_of_one_endless_line_is_refused(tmp_path: Path) -> None:
    for name, beginning in (("header.csv", b""), ("row.csv", HEADER)):
        path = tmp_path / name
        with path.open("wb") as file:
            file.write(beginning)
            for _ in range(250):
                file.write(b"x" * MEGABYTE)
        assert refusal(path) == (
            f"Line {2 if beginning else 1} has more than a million characters: this is not a catalogue."
        )


def test_text_of_too_many_lines_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MAX_LINES", 5)
    path = write_catalogue(tmp_path / "AGEEML.csv", TRAPS)
    with pytest.raises(CatalogueError, match="The file has more than 5 lines"), open_table(path) as table:
        transform(table, lambda _: None)


# -- Addresses


@contextmanager
def dripping(pieces: Callable[[], Iterator[bytes]]) -> Iterator[str]:
    """Serve an answer piece by piece, whatever is asked."""
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    for piece in pieces():
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


def drip(beginning: bytes, piece: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield beginning
        for _ in range(600):
            time.sleep(0.05)
            yield piece

    return pieces


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [(b"HTTP/1.1 200 OK\r\n\r\n", b"x"), (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"), (b"HTTP", b"")],
    ids=["body", "headers", "silence"],
)
def test_address_that_gives_drop_by_drop_is_left_in_time(
    monkeypatch: pytest.MonkeyPatch, beginning: bytes, piece: bytes
) -> None:
    monkeypatch.setattr(source_module, "FETCH_TOTAL_TIMEOUT", 1.0)
    with dripping(drip(beginning, piece)) as address:
        assert refusal_of(address).startswith("The address can't be fetched (it takes more than 1 s)")


def test_address_that_falls_silent_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "FETCH_TIMEOUT", 0.5)
    left = Event()

    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"
        left.wait(15)

    with dripping(pieces) as address:
        assert refusal_of(address).startswith("The address can't be fetched (")
        left.set()


def test_address_that_gives_without_end_is_left_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "MAX_FILE_BYTES", 5 * MEGABYTE)

    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while True:
            yield bytes(MEGABYTE)

    with dripping(pieces) as address:
        assert refusal_of(address) == "The file at this address is larger than 5 MB: this is not a catalogue."


def test_address_that_unpacks_without_end_is_left_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros pack a thousandfold: no more of it is unpacked at once than a read brings."""
    monkeypatch.setattr(source_module, "MAX_FILE_BYTES", 50 * MEGABYTE)
    packer = zlib.compressobj(9, wbits=31)
    packed = b"".join(packer.compress(bytes(MEGABYTE)) for _ in range(400)) + packer.flush()
    with http_server(at_paths({"/": Response(packed, headers={"Content-Encoding": "gzip"})})) as address:
        assert refusal_of(address) == "The file at this address is larger than 50 MB: this is not a catalogue."


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "GZIP,br", "compress", "x"])
def test_address_that_packs_as_it_was_not_asked_to_is_refused(encoding: str) -> None:
    with http_server(at_paths({"/": Response(b"x", headers={"Content-Encoding": encoding})})) as address:
        assert refusal_of(address) == (
            "The server sends the file with a compression that was not requested: download it another way"
            " and give its path."
        )


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "ftp://127.0.0.1/a.zip", "gopher://127.0.0.1:70/", "data:text/csv,x", "javascript:1",
     "FILE:/etc/passwd", "unix:///run/x", "http://[", "http://"],
)  # fmt: skip
def test_address_that_leads_out_of_the_web_is_refused(location: str) -> None:
    with http_server(at_paths({"/": Response(status=302, headers={"Location": location})})) as address:
        assert refusal_of(address).startswith("The address ")


def test_address_that_leads_from_https_to_http_is_refused() -> None:
    def led(scheme: str, location: str) -> httpx.Response:
        asked = httpx.Request("GET", f"{scheme}://inegi.example/a.zip")
        return httpx.Response(302, headers={"Location": location}, request=asked)

    with pytest.raises(CatalogueError, match="redirects from https to an insecure address"):
        source_module._check_response(led("https", "http://inegi.example/b.zip"))
    for scheme, location in (("https", "/b.zip"), ("https", "https://other.example/"), ("http", "https://x.example/")):
        source_module._check_response(led(scheme, location))


def test_file_of_a_redirect_to_a_path_of_this_machine_is_never_read(tmp_path: Path) -> None:
    table = write_catalogue(tmp_path / "2020-01.csv", TRAPS)
    with http_server(at_paths({"/": Response(status=302, headers={"Location": table.as_uri()})})) as address:
        assert refusal_of(address).startswith("The address can't be fetched")
