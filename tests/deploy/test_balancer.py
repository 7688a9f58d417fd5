"""HAProxy with the configuration of deploy/, in front of real processes of the service."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.support.http_server import Request, Response, http_server
from tests.support.machine import needed
from tests.support.postgres import out_of_reach
from tests.support.waiting import eventually
from tests.support.wire import LOCALIDADES, ROOT, Live, ask, serving

pytestmark = pytest.mark.tail


@dataclass(frozen=True)
class Balancer:
    """A running HAProxy."""

    base: str
    operations: str

    def figure(self, name: str, **labels: str) -> float:
        sample = name + "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"
        lines = ask(self.operations, "/metrics").body.decode().splitlines()
        return next(float(line.removeprefix(sample)) for line in lines if line.startswith(sample))

    def await_servers(self, proxy: str, count: int) -> None:
        eventually(
            lambda: self.figure("haproxy_backend_active_servers", proxy=proxy) == count,
            otherwise=lambda: f"{proxy} has not come to {count} servers",
        )


@contextmanager
def balancing(*bases: str, **variables: str) -> Iterator[Balancer]:
    """Run HAProxy with the configuration of deploy/ in front of two servers; `variables` override its presets."""
    haproxy = needed(shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin"), "install haproxy")
    with ExitStack() as stack:
        # It inherits listening sockets, so that no other process can take the port.
        public, operations = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2))
        variables |= {"LISTEN": f"fd@{public.fileno()}", "LISTEN_OPERATIONS": f"fd@{operations.fileno()}"}
        for number, base in enumerate(bases, start=1):
            address = urlsplit(base)
            variables |= {f"API_{number}": address.netloc, f"API_{number}_PROBES": str(address.port)}
        process = subprocess.Popen(
            [haproxy, "-db", "-f", str(ROOT / "deploy" / "haproxy.cfg")],
            env=os.environ | variables,
            pass_fds=[public.fileno(), operations.fileno()],
            stdout=subprocess.DEVNULL,
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        balancer = Balancer(*(f"http://127.0.0.1:{one.getsockname()[1]}" for one in (public, operations)))
        balancer.await_servers("held", 2)
        yield balancer


Balanced = tuple[Balancer, Live, Live]


@pytest.fixture
def balanced(seeded_database: str) -> Iterator[Balanced]:
    """Yield HAProxy in front of two processes of the service with the first page cached."""
    with serving(seeded_database) as one, serving(seeded_database) as other:
        assert ask(one.base, LOCALIDADES).status == ask(other.base, LOCALIDADES).status == 200
        with balancing(one.base, other.base) as balancer:
            yield balancer, one, other


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_no_request_fails_when_a_process_ends(balanced: Balanced, ending: signal.Signals) -> None:
    balancer, live, _ = balanced
    statuses: list[int] = []
    over = threading.Event()

    def read() -> None:
        while not over.wait(0.005) and len(statuses) < 20_000:
            statuses.append(ask(balancer.base, LOCALIDADES).status)

    def await_more() -> None:
        goal = len(statuses) + 100
        eventually(lambda: len(statuses) >= goal, otherwise=lambda: "requests hang")

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        await_more()
        live.process.send_signal(ending)
        balancer.await_servers("ready", 1)
        await_more()
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert set(statuses) == {200}


def test_cached_pages_are_served_without_the_database(server: str, seeded_database: str, balanced: Balanced) -> None:
    balancer = balanced[0]
    page = ask(balancer.base, LOCALIDADES).body
    with out_of_reach(server, seeded_database):
        balancer.await_servers("ready", 0)
        answers = [ask(balancer.base, LOCALIDADES) for _ in range(20)]
        assert {(answer.status, answer.body) for answer in answers} == {(200, page)}
        name = "haproxy_server_http_responses_total"
        assert sum(balancer.figure(name, proxy="held", server=one, code="2xx") for one in ("api-1", "api-2")) == 20
        refused = ask(balancer.base, f"{LOCALIDADES}?municipio_id=14093")
        assert (refused.status, refused.one("retry-after")) == (503, "5")
        assert refused.one("content-type") == "application/problem+json"
        assert ask(balancer.operations, "/livez").status == 200
    balancer.await_servers("ready", 2)
    assert ask(balancer.base, f"{LOCALIDADES}?municipio_id=14093").status == 200


def test_balancer_answers_with_a_problem_without_processes(balanced: Balanced) -> None:
    balancer, *processes = balanced
    for live in processes:
        live.process.kill()
    balancer.await_servers("held", 0)
    answer = ask(balancer.base, LOCALIDADES)
    assert (answer.status, json.loads(answer.body)["status"], answer.one("retry-after")) == (503, 503, "5")
    assert answer.one("content-type") == "application/problem+json"
    assert (answer.one("allow"), answer.one("vary")) == ("GET", "Accept")
    assert ask(balancer.operations, "/livez").status == 503


def echo(request: Request) -> Response:
    return Response(json.dumps(request.headers.items()).encode())


def test_unanswered_request_goes_to_the_other_process_unless_it_has_a_body() -> None:
    def answer_probes_only(request: Request) -> Response:
        if request.target not in {"/livez", "/readyz"}:
            raise ConnectionAbortedError
        return Response()

    with http_server(answer_probes_only) as one, http_server(echo) as other, balancing(one, other) as balancer:
        balancer.await_servers("ready", 2)
        assert [ask(balancer.base, "/").status for _ in range(8)] == [200] * 8
        assert {ask(balancer.base, "/", method="POST", body=b"x").status for _ in range(8)} == {200, 502}


@pytest.mark.parametrize(
    ("front", "expected"),
    [({}, ("127.0.0.1", "http")), ({"FRONT": "127.0.0.1"}, ("192.0.2.1", "https"))],
    ids=["anybody", "trusted"],
)
def test_forwarding_headers_are_replaced_unless_a_trusted_proxy_sent_them(
    front: dict[str, str], expected: tuple[str, str]
) -> None:
    given = {"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https"}
    given |= {} if front else dict.fromkeys(("X-Forwarded-Host", "X-Forwarded-Prefix", "Forwarded"), "for=192.0.2.1")
    with http_server(echo) as base, balancing(base, base, **front) as balancer:
        answer = ask(balancer.base, "/", *given.items())
    assert not answer.all("server")
    arrived = {name.lower(): value for name, value in json.loads(answer.body) if "forwarded" in name.lower()}
    assert arrived == dict(zip(("x-forwarded-for", "x-forwarded-proto"), expected, strict=True))
