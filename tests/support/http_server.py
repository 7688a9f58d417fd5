"""A scripted HTTP server, for tests of commands, proxies and clients."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

import httpx

from tests.support.waiting import PATIENCE


class Request(NamedTuple):
    """A request as the server received it."""

    target: str
    headers: Message
    body: bytes
    port: int  # the client's, which identifies its connection


@dataclass(frozen=True)
class Response:
    """A response to send; `drip` is the delay in seconds before each byte of the body."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: float = 0


Respond = Callable[[Request], Response]


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a client may keep its connection open

    def handle_error(self, *args: object) -> None: ...  # clients may disconnect at any time


@contextmanager
def http_server(respond: Respond) -> Iterator[str]:
    """Serve `respond` on a free port with keep-alive; yield the server's root URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            response = respond(Request(self.path, self.headers, body, self.client_address[1]))
            self.send_response(response.status)
            for name, value in ({"Content-Length": str(len(response.body))} | dict(response.headers)).items():
                self.send_header(name, value)
            self.end_headers()
            for piece in [bytes([byte]) for byte in response.body] if response.drip else [response.body]:
                time.sleep(response.drip)
                self.wfile.write(piece)

        do_POST = do_GET  # noqa: N815  # the base's name

        def log_message(self, *args: object) -> None: ...

    with _Server(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(*responses: Response, then: str = "") -> Iterator[tuple[str, list[Request]]]:
    """Serve these responses in turn, and then those of the service at `then`; yield the root URL and the requests."""
    asked: list[Request] = []

    def respond(request: Request) -> Response:
        asked.append(request)
        if len(asked) <= len(responses):
            return responses[len(asked) - 1]
        headers = {name: request.headers[name] for name in ("Accept", "Content-Type")}
        answer = httpx.post(f"{then}{request.target}", content=request.body, headers=headers, timeout=PATIENCE)
        kept = answer.headers.keys() & {"catalogue-release", "answer-columns"}
        return Response(answer.content, answer.status_code, {name: answer.headers[name] for name in kept})

    with http_server(respond) as base:
        yield base, asked


def at_paths(responses: Mapping[str, Response]) -> Respond:
    """Respond at these paths, ignoring the query; any other path is 404."""
    return lambda request: responses.get(request.target.partition("?")[0], Response(status=404))
