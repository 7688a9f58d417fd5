"""A web server of the tests' own, for what is fetched from an address."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from localidades_api.errors import CatalogueError
from localidades_api.importer.source import open_source
from tests.support.progress import Silent


@dataclass(frozen=True)
class FileAnswer:
    """What the server says at one path."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def serving_files(answers: Mapping[str, FileAnswer]) -> Iterator[str]:
    """Serve answers by path on a free port, and yield the server's root; each connection ends with its answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0], FileAnswer(status=404))
            self.send_response(answer.status)
            for name, value in ({"Content-Length": str(len(answer.body))} | dict(answer.headers)).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *args: object) -> None:
            """Keep silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def refusal_of(source: str) -> str:
    with pytest.raises(CatalogueError) as caught, open_source(source, Silent()):
        pass
    return str(caught.value)
