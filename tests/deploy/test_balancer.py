"""HAProxy with the configuration of deploy/, in front of real processes of the service."""

import asyncio
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

import asyncpg
import pytest

from tests.support.http_server import Request, Response, http_server
from tests.support.machine import needed
from tests.support.waiting import eventually, in_thread
from tests.support.wire import LOCALIDADES, ROOT, Live, ask, serving

pytestmark = pytest.mark.tail

CONFIGURATION = ROOT / "deploy" / "haproxy.cfg"


@dataclass(frozen=True)
class Balancer:
    """A running HAProxy."""

    base: str
    operations: str

    def figure(self, name: str, proxy: str, server: str = "", code: str = "") -> float:
        """Return a value of HAProxy's statistics."""
        labels = {"proxy": proxy} | ({"server": server} if server else {}) | ({"code": code} if code else {})
        sample = name + "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"
        lines = ask(self.operations, "/metrics").body.decode().splitlines()
        return next(float(line.removeprefix(sample)) for line in lines if line.startswith(sample))

    def answered(self, proxy: str, server: str) -> float:
        """Return how many successful responses a server has sent."""
        return self.figure("haproxy_server_http_responses_total", proxy, server, "2xx")

    def await_servers(self, proxy: str, count: int) -> None:
        """Wait until this number of a backend's servers pass their checks."""
        eventually(
            lambda: self.figure("haproxy_backend_active_servers", proxy) == count,
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
            [haproxy, "-db", "-f", str(CONFIGURATION)],
            env=os.environ | variables,
            pass_fds=[public.fileno(), operations.fileno()],
            stdout=subprocess.DEVNULL,
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        ports = (one.getsockname()[1] for one in (public, operations))
        balancer = Balancer(*(f"http://127.0.0.1:{port}" for port in ports))
        balancer.await_servers("held", 2)
        yield balancer


@pytest.fixture
def services(seeded_database: str) -> Iterator[tuple[Live, Live]]:
    """Yield two processes of the service with the first page cached."""
    with serving(seeded_database) as one, serving(seeded_database) as other:
        for live in (one, other):
            assert ask(live.base, LOCALIDADES).status == 200
        yield one, other


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_no_request_fails_when_a_process_ends(services: tuple[Live, Live], ending: signal.Signals) -> None:
    with balancing(*(live.base for live in services)) as balancer:
        statuses: list[int] = []
        over = threading.Event()

        def read() -> None:
            while not over.wait(0.005) and len(statuses) < 20_000:
                statuses.append(ask(balancer.base, LOCALIDADES).status)

        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        try:
            await_more(statuses, 100)
            services[0].process.send_signal(ending)
            balancer.await_servers("ready", 1)
            await_more(statuses, 100)
        finally:
            over.set()
            for reader in readers:
                reader.join()
        assert len(statuses) >= 200
        assert set(statuses) == {200}


def await_more(statuses: list[int], count: int) -> None:
    goal = len(statuses) + count
    eventually(lambda: len(statuses) >= goal, otherwise=lambda: "requests hang")


def test_cached_pages_are_served_without_the_database(
    server: str, seeded_database: str, services: tuple[Live, Live]
) -> None:
    with balancing(*(live.base for live in services)) as balancer:
        page = ask(balancer.base, LOCALIDADES).body
        close(server, seeded_database)
        balancer.await_servers("ready", 0)
        answers = [ask(balancer.base, LOCALIDADES) for _ in range(20)]
        assert {(answer.status, answer.body) for answer in answers} == {(200, page)}
        assert sum(balancer.answered("held", server) for server in ("api-1", "api-2")) == 20
        refused = ask(balancer.base, f"{LOCALIDADES}?municipio_id=14093")
        assert refused.status == 503
        assert refused.one("retry-after") == "5"
        assert refused.one("content-type") == "application/problem+json"
        assert ask(balancer.operations, "/livez").status == 200
        open_again(server, seeded_database)
        balancer.await_servers("ready", 2)
        assert ask(balancer.base, f"{LOCALIDADES}?municipio_id=14093").status == 200


def close(server: str, url: str) -> None:
    """Terminate the connections to the database and refuse new ones."""
    _administer(
        server,
        url,
        "ALTER DATABASE {} ALLOW_CONNECTIONS false",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
    )


def open_again(server: str, url: str) -> None:
    """Let clients connect to the database again."""
    _administer(server, url, "ALTER DATABASE {} ALLOW_CONNECTIONS true")


def _administer(server: str, url: str, *statements: str) -> None:
    name = url.partition("@/")[2].partition("?")[0]

    async def run() -> None:
        connection = await asyncpg.connect(server)
        try:
            for statement in statements:
                await connection.execute(statement.format(name))
        finally:
            await connection.close()

    in_thread(lambda: asyncio.run(run()))


def test_balancer_answers_with_a_problem_without_processes(services: tuple[Live, Live]) -> None:
    with balancing(*(live.base for live in services)) as balancer:
        for live in services:
            live.process.kill()
        balancer.await_servers("held", 0)
        answer = ask(balancer.base, LOCALIDADES)
        assert answer.status == 503
        assert answer.one("content-type") == "application/problem+json"
        assert answer.one("retry-after") == "5"
        assert (answer.one("allow"), answer.one("vary")) == ("GET", "Accept")
        assert json.loads(answer.body)["status"] == 503
        assert ask(balancer.operations, "/livez").status == 503


def test_unanswered_request_goes_to_the_other_process_unless_it_has_a_body() -> None:
    def answer_probes_only(request: Request) -> Response:
        if request.target not in {"/livez", "/readyz"}:
            raise ConnectionAbortedError
        return Response()

    with http_server(answer_probes_only) as one, http_server(echo) as other, balancing(one, other) as balancer:
        balancer.await_servers("ready", 2)
        assert [ask(balancer.base, "/").status for _ in range(8)] == [200] * 8
        assert {ask(balancer.base, "/", method="POST", body=b"x").status for _ in range(8)} == {200, 502}


def echo(request: Request) -> Response:
    return Response(json.dumps(request.headers.items()).encode())


def test_balancer_trusts_the_proxy_in_front_of_it() -> None:
    said = [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-proto", "https")]
    with http_server(echo) as base, balancing(base, base, FRONT="127.0.0.1") as balancer:
        arrived = [(name.lower(), value) for name, value in json.loads(ask(balancer.base, "/", *said).body)]
        assert sorted(item for item in arrived if "forwarded" in item[0]) == said


def test_forged_forwarding_headers_are_replaced() -> None:
    with http_server(echo) as base, balancing(base, base) as balancer:
        made_up = ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded")
        answer = ask(balancer.base, "/", *((name, "for=192.0.2.1") for name in made_up))
        assert not answer.all("server")
        arrived = [(name.lower(), value) for name, value in json.loads(answer.body)]
        assert sorted(item for item in arrived if "forwarded" in item[0]) == [
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "http"),
        ]
