import gzip
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from localidades_api.errors import CatalogueError
from localidades_api.importer import source as source_module
from localidades_api.importer.source import Source, interruptible, open_source, suggest_release_name
from localidades_api.observability.progress import ImportStep, StepProgress
from tests.importer.imports import Observer
from tests.support.catalogue import refusal_of
from tests.support.http_server import Response, at_paths, http_server
from tests.support.machine import interrupt_within_callback

CONTENT = bytes(range(256)) * 1_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    """Lend the address of a server with a catalogue, detours to it, and what goes wrong on the way."""
    answers = {
        "/app/catun_localidad.zip": Response(CONTENT),
        "/caf%C3%A9.zip": Response(CONTENT),
        "/": Response(CONTENT),
        "/moved": Response(status=302, headers={"Location": "/app/catun_localidad.zip"}),
        "/loop": Response(status=302, headers={"Location": "/loop"}),
        "/broken": Response(status=500),
        "/short": Response(CONTENT, headers={"Content-Length": str(len(CONTENT) + 1), "Connection": "close"}),
        "/packed": Response(gzip.compress(CONTENT), headers={"Content-Encoding": "gzip"}),
        "/badly-packed": Response(CONTENT, headers={"Content-Encoding": "gzip"}),
        "/empty": Response(),
    }
    with http_server(at_paths(answers)) as root:
        yield root


def test_demo_has_no_file_and_always_one_digest() -> None:
    with open_source("demo", StepProgress()) as first, open_source("demo", StepProgress()) as second:
        assert first == second
        assert (first.name, first.file, len(first.sha256)) == ("demo", None, 64)


def test_path_is_lent_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "catun localidad é.zip"
    path.write_bytes(CONTENT)
    observer = Observer()
    with open_source(str(path), observer) as source:
        assert source.file is not None
        assert (source.name, source.file.name, source.sha256) == (path.name, str(path), DIGEST)
    assert observer.amounts == {}
    assert path.exists()


def test_path_that_is_no_file_is_refused_as_what_it_is(tmp_path: Path) -> None:
    (huge := tmp_path / "huge.zip").touch()
    os.truncate(huge, source_module.MAX_FILE_BYTES + 1)
    remedy = "give the path or http(s) address of a zip, csv or txt."
    for path, sentence in {
        tmp_path / "nowhere.zip": f"There is no file {tmp_path}/nowhere.zip: {remedy}",
        tmp_path / "nul\0.zip": f"There is no file {tmp_path}/nul",
        tmp_path: f"{tmp_path} is a folder: {remedy}",
        ".": f". is a folder: {remedy}",
        "": f"The path of the file is empty: {remedy}",
        "/dev/null": f"There is no file /dev/null: {remedy}",
        tmp_path / ("x" * 5_000): "The file can't be read or stored: File name too long.",
        huge: "The file is larger than 512 MB: this is not a catalogue.",
    }.items():
        assert refusal_of(str(path)).startswith(sentence)


def test_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "catun_localidad_2018-09.csv"
    os.mkfifo(pipe)
    writing = Thread(target=pipe.write_bytes, args=(CONTENT,))
    writing.start()
    with open_source(str(pipe), StepProgress()) as source:
        assert source.file is not None
        source.file.seek(0)
        assert (source.name, source.file.read(), source.sha256) == (pipe.name, CONTENT, DIGEST)
    writing.join()


def test_address_is_fetched_and_removed_afterwards(root: str) -> None:
    observer = Observer()
    with open_source(f"{root}/app/catun_localidad.zip?x=1#top", observer) as source:
        assert source.file is not None
        source.file.seek(0)
        assert (source.name, source.file.read(), source.sha256) == ("catun_localidad.zip", CONTENT, DIGEST)
    assert source.file.closed
    assert observer.expected == {ImportStep.FETCH: len(CONTENT)}
    assert {step: sum(amounts) for step, amounts in observer.amounts.items()} == observer.expected


@pytest.mark.parametrize(
    ("path", "name"),
    [("/moved", "moved"), ("/packed", "packed"), ("/caf%C3%A9.zip", "café.zip"), ("", "catalogue"), ("/", "catalogue")],
)
def test_address_with_a_detour_gives_the_same_bytes(root: str, path: str, name: str) -> None:
    with open_source(root.replace("http", "HTTP") + path, StepProgress()) as source:
        assert (source.name, source.sha256) == (name, DIGEST)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/nowhere.zip", "The address answers 404: check where INEGI publishes the file now."),
        ("/broken", "The address answers 500:"),
        *((path, "The address can't be fetched") for path in ("/loop", "/short", "/badly-packed")),
    ],
)
def test_address_that_does_not_give_a_whole_file_is_refused(root: str, path: str, sentence: str) -> None:
    assert refusal_of(root + path).startswith(sentence)


def test_address_that_gives_too_much_is_refused_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it unpacks to counts: zeros pack a thousandfold."""
    monkeypatch.setattr(source_module, "MAX_FILE_BYTES", 2 * 1024**2)
    packed = Response(gzip.compress(bytes(2**22)), headers={"Content-Encoding": "gzip"})
    with http_server(at_paths({"/": packed})) as large:
        assert refusal_of(large) == "The file at this address is larger than 2 MB: this is not a catalogue."


@pytest.mark.parametrize(
    ("addresses", "sentence"),
    [
        (["ftp://inegi.org.mx/a.zip", "file:///etc/passwd", "FILE:///etc/passwd", "s3://b/k"],
         "The address of a catalogue must begin with http:// or https://."),
        (["http://", "http:///a.zip", "http://[", "http://[::1", "https://a:b/", "http://a b/", "http://127.0.0.1:1/"],
         "The address can't be fetched"),
    ],
)  # fmt: skip
def test_address_that_is_none_is_refused(addresses: list[str], sentence: str) -> None:
    for address in addresses:
        assert refusal_of(address).startswith(sentence)


@pytest.mark.parametrize("fault", [CatalogueError("refused"), KeyboardInterrupt()], ids=["refused", "Ctrl-C"])
def test_fetched_file_is_removed_after_a_fault_too(root: str, fault: BaseException) -> None:
    with pytest.raises(type(fault)), open_source(f"{root}/moved", StepProgress()) as source:
        raise fault
    assert source.file is not None
    assert source.file.closed


# Names of releases


@pytest.mark.parametrize(
    ("file", "member", "name"),
    [
        ("demo", "demo", "demo"),
        ("catun_localidad_2018-09.zip", "AGEEML_20126411.csv", "2018-09"),
        ("catun_localidad_2018-09-28.zip", "x.csv", "2018-09-28"),
        ("catun 2012-06 and 2018-09.zip", "x.csv", "2012-06"),
        ("catun_localidad.zip", "AGEEML_2018-09_utf.csv", "2018-09"),
        ("catun_localidad_2018-13.zip", "AGEEML_20189281012.csv", None),
        ("catun_localidad.zip", "AGEEML_20181112153015.csv", None),  # 1 November, 11 December, 1 January ...
    ],
)
def test_release_is_named_after_the_date_in_the_file_or_its_member(file: str, member: str, name: str | None) -> None:
    assert suggest_release_name(Source(file, None, ""), member) == name


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interruption_that_python_drops_is_raised_in_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        interrupt_within_callback()
