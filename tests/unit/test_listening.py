"""Addresses that can't be listened on, and what to do."""

import socket

import pytest

from localidades_api.errors import ConfigurationError
from localidades_api.server.run import listen


def refusal(host: str, port: int, **setting: str) -> str:
    with pytest.raises(ConfigurationError) as caught, listen(host, port, **setting):
        pass
    return str(caught.value)


def test_port_in_use_is_explained_by_its_setting() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        other = port + 1 if port < 65_535 else port - 1
        assert refusal("127.0.0.1", port) == (
            f"Port {port} is in use. Choose another: `localidades-api serve --port {other}`"
            f" (in a clone, `make run PORT={other}`)."
        )
        assert refusal("127.0.0.1", port, setting="LOCALIDADES_MANAGEMENT_PORT") == (
            f"Can't listen on 127.0.0.1 port {port} (Address already in use): another server uses it, so choose another"
            " LOCALIDADES_MANAGEMENT_PORT."
        )


def test_host_that_is_not_of_this_machine_is_explained() -> None:
    assert refusal("192.0.2.1", 0) == (
        "Can't listen on 192.0.2.1 port 0 (Cannot assign requested address): choose a --host that is an address of this"
        " machine."
    )
    assert refusal(f"{'a' * 64}.mx", 0) == "Can't listen: --host is not a valid host name."


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[127.0.0.1]"])
def test_address_may_be_in_brackets(host: str) -> None:
    with listen(host, 0) as listening, socket.create_connection((host.strip("[]"), listening.getsockname()[1])):
        pass
