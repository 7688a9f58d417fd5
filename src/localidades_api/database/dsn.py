"""Parses DATABASE_URL."""

import getpass
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from localidades_api.errors import ConfigurationError

# Options of other drivers and hosting services; asyncpg would send them to the server as settings.
_FOREIGN_OPTIONS = frozenset(
    {
        "channel_binding",
        "client_encoding",
        "connection_limit",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "pool_timeout",
        "prepared_statement_cache_size",
        "schema",
    }
)
_ADDRESS = re.compile(  # RFC 3986, appendix B
    r"(?P<scheme>postgres(ql)?(\+[^:/?#]*)?)://(?P<netloc>[^/?#]*)(?P<path>[^?#]*)(\?(?P<query>[^#]*))?(#(?P<fragment>.*))?",
    re.IGNORECASE,
)
_MAX_PORT = 65535
_EXAMPLE = "postgresql://user:password@host:5432/database"
NO_ADDRESS = f"DATABASE_URL is not a Postgres address: write it like {_EXAMPLE}"
_TIMEOUT_OPTIONS = frozenset({"connect_timeout", "timeout"})
_CHOICES = {
    "pgbouncer": ("false", "true"),
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": ("any", "primary", "standby", "prefer-standby", "read-write", "read-only"),
}
SYSTEM = "system"  # instead of a file, the certificates that the system trusts
_FILES = ("sslrootcert", "sslcrl", "sslcert", "sslkey")
# libpq fills these in from variables such as PGSSLMODE. asyncpg does too, but without naming them in errors.
_FROM_VARIABLES = ("sslmode", "target_session_attrs", *_FILES)


@dataclass(frozen=True, slots=True)
class Dsn:
    """A database address as asyncpg reads it; `addresses` has one for each host."""

    address: str
    addresses: tuple[str, ...]
    connect_timeout: float | None
    prefers_standby: bool
    trusts_system: bool  # whether certificates are checked against those that the system trusts
    is_pooled: bool  # the connection goes through a pooler: `pgbouncer=true`, as Prisma and its hosts write it

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read any common spelling of a Postgres URL.

        Takes the schemes `postgres`, `postgresql` and `postgresql+driver`; `ssl` for `sslmode`; several hosts in
        libpq's spelling or SQLAlchemy's (`?host=a:5432&host=b:5432`); options of other drivers are dropped.
        Raises ConfigurationError for a value, a port or a certificate file that no server could accept. The message
        names the parameter or the variable, and not the address, which may hold a password.
        """
        parts = _split(url)
        options: dict[str, str] = {"application_name": "localidades-api"}
        hosts: list[str] = []
        connect_timeout = None
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name == "host":
                hosts.append(value)
            elif name in _TIMEOUT_OPTIONS:
                connect_timeout = _seconds(name, value)
            elif name not in _FOREIGN_OPTIONS:
                options["sslmode" if name == "ssl" else name] = value
        if hosts:
            options["host"] = ",".join(hosts)
        _check_values(options)
        is_pooled = options.pop("pgbouncer", "") == "true"
        _check_ports(parts.netloc, options)
        _check_user(parts.netloc, options)

        def written(netloc: str, options: dict[str, str]) -> str:
            query = urlencode(options, quote_via=quote)
            return urlunsplit(("postgresql", netloc, parts.path, query, ""))

        return cls(
            written(parts.netloc, options),
            tuple(written(*one) for one in _split_hosts(parts.netloc, options)),
            connect_timeout,
            options.get("target_session_attrs") == "prefer-standby",
            options.get("sslrootcert") == SYSTEM and options["sslmode"] != "disable",
            is_pooled,
        )


def _split(url: str) -> SplitResult:
    """Split an address; `urlsplit` rejects brackets after the first of several hosts (CVE-2024-11168)."""
    found = _ADDRESS.fullmatch(url.strip())
    if found is None:
        raise ConfigurationError(NO_ADDRESS)
    parts = SplitResult(*(found[name] or "" for name in SplitResult._fields))
    try:
        for host in parts.netloc.rpartition("@")[2].split(","):
            urlsplit(f"//{host}")
    except ValueError:  # an unclosed bracket, or one without an IPv6 address
        raise ConfigurationError(NO_ADDRESS) from None
    return parts


def _split_hosts(netloc: str, options: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    """Return the network location and the options of each host; `port` may list the ports of several hosts."""
    account, at, in_netloc = netloc.rpartition("@")
    hosts = (in_netloc or options.get("host", "")).split(",")
    if len(hosts) > 1 and "" in hosts:
        raise ConfigurationError(NO_ADDRESS)
    ports = options.get("port", "").split(",")
    each = []
    for number, host in enumerate(hosts):
        own = dict(options)
        if not in_netloc and host:
            own["host"] = host
        if len(ports) == len(hosts) > 1:
            own["port"] = ports[number]
        each.append((f"{account}{at}{host}" if in_netloc else netloc, own))
    return each


def _seconds(name: str, value: str) -> float | None:
    """Return the seconds; None is the default timeout, for values that libpq reads as no timeout."""
    try:
        seconds = float(value)
    except ValueError:
        raise ConfigurationError(f"DATABASE_URL: {name} must be a number of seconds") from None
    return seconds if 0 < seconds < math.inf else None


def _check_values(options: dict[str, str]) -> None:
    """Add the options that variables set, and check those whose errors asyncpg would report as the server's.

    asyncpg checks the rest when it connects.
    """
    sources = {name: f"DATABASE_URL: {name}" for name in options}
    for name in _FROM_VARIABLES:
        variable = f"PG{name.replace('_', '').upper()}"
        if name not in options and (value := os.environ.get(variable)):
            options[name] = value
            sources[name] = variable
    for name, choices in _CHOICES.items():
        if options.get(name, choices[0]) not in choices:
            raise ConfigurationError(f"{sources[name]} must be one of {', '.join(choices)}")
    _adapt(options, sources)
    for name in _FILES:
        try:
            if (path := options.get(name, "")) not in {"", SYSTEM} and options.get("sslmode") != "disable":
                Path(path).read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{sources[name]} names a file that can't be used ({error.strerror})") from error


def _adapt(options: dict[str, str], sources: Mapping[str, str]) -> None:
    """Replace the values that asyncpg reads in another way than libpq."""
    if options.get("target_session_attrs") == "read-write":
        # asyncpg would ask whether the session is read-only, as those of `serve` are on every server.
        options["target_session_attrs"] = "primary"
    if options.get("sslrootcert") == SYSTEM:
        # Anybody can get a certificate that the system trusts, for another host.
        if options.setdefault("sslmode", "verify-full") not in {"verify-full", "disable"}:
            raise ConfigurationError(f"{sources['sslrootcert']}={SYSTEM} needs sslmode=verify-full")
        if taken := options.keys() & {"sslcert", "sslcrl"}:  # asyncpg would ignore them
            raise ConfigurationError(f"{sources['sslrootcert']}={SYSTEM} can't be used with {min(taken)}")


def _check_ports(netloc: str, options: Mapping[str, str]) -> None:
    hosts = f"{netloc.rpartition('@')[2]},{options.get('host', '')}".split(",")
    variable = os.environ.get("PGPORT", "")
    if variable and not _is_port(variable):
        raise ConfigurationError(f"PGPORT must be a number from 1 to {_MAX_PORT}")
    in_hosts = [host.rpartition("]")[2].partition(":")[2] for host in hosts if not host.startswith("/")]
    for port in filter(None, (*in_hosts, *options.get("port", "").split(","))):
        if not _is_port(port):
            raise ConfigurationError(f"DATABASE_URL: a port must be a number from 1 to {_MAX_PORT}, as in {_EXAMPLE}")


def _is_port(given: str) -> bool:
    return given.isascii() and given.isdecimal() and 0 < int(given[:6]) <= _MAX_PORT


def _check_user(netloc: str, options: Mapping[str, str]) -> None:
    """Require a user: without one in the address it is the system's, who may have no name."""
    if netloc.rpartition("@")[0] or options.get("user") or os.environ.get("PGUSER"):
        return
    try:
        getpass.getuser()
    except (KeyError, OSError):
        raise ConfigurationError(f"DATABASE_URL names no user: write it like {_EXAMPLE}") from None
