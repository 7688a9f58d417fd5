"""Parses DATABASE_URL."""

import getpass
import math
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from localidades_api.errors import ConfigurationError

# Options of other drivers and hosting services, which asyncpg would send to the server as settings.
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
_TLS_VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_CHOICES = {
    "gsslib": ("gssapi", "sspi"),
    "pgbouncer": ("false", "true"),
    "ssl_max_protocol_version": _TLS_VERSIONS,
    "ssl_min_protocol_version": _TLS_VERSIONS,
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslnegotiation": ("postgres", "direct"),
    "target_session_attrs": ("any", "primary", "standby", "prefer-standby", "read-write", "read-only"),
}
_DIRECT_MODES = ("require", "verify-ca", "verify-full")
_TRUST_FILES = ("sslrootcert", "sslcrl")  # loaded into a TLS context
_TLS_FILES = (*_TRUST_FILES, "sslcert", "sslkey")
# Variables of libpq that fill in what the address leaves out. asyncpg reads them too, but its errors don't name them.
_VARIABLES = {
    "gsslib": "PGGSSLIB",
    "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION",
    "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
    "sslcert": "PGSSLCERT",
    "sslcrl": "PGSSLCRL",
    "sslkey": "PGSSLKEY",
    "sslmode": "PGSSLMODE",
    "sslnegotiation": "PGSSLNEGOTIATION",
    "sslrootcert": "PGSSLROOTCERT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}


@dataclass(frozen=True, slots=True)
class Dsn:
    """A database address as asyncpg reads it; `addresses` has one for each host."""

    address: str
    addresses: tuple[str, ...]
    connect_timeout: float | None
    prefers_standby: bool
    is_pooled: bool  # a pooler stands between (`pgbouncer=true`, as Prisma and its hosts write it)

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
        sources = _fill_in(options)
        _check_choices(options, sources)
        is_pooled = options.pop("pgbouncer", "") == "true"
        _check_ports(parts.netloc, options)
        _check_tls_files(options, sources)
        _check_user(parts.netloc, options)

        def written(netloc: str, options: dict[str, str]) -> str:
            query = urlencode(options, quote_via=quote)
            return urlunsplit(("postgresql", netloc, parts.path, query, ""))

        return cls(
            written(parts.netloc, options),
            tuple(written(*one) for one in _of_each_host(parts.netloc, options)),
            connect_timeout,
            options.get("target_session_attrs") == "prefer-standby",
            is_pooled,
        )


def _split(url: str) -> SplitResult:
    """Split an address; `urlsplit` takes no brackets behind the first of several hosts (CVE-2024-11168)."""
    found = _ADDRESS.fullmatch(url.strip())
    if found is None:
        raise ConfigurationError(NO_ADDRESS)
    parts = SplitResult(*(found[name] or "" for name in SplitResult._fields))
    try:
        for host in parts.netloc.rpartition("@")[2].split(","):
            urlsplit(f"//{host}")
    except ValueError:  # a bracket that is not closed, or no address within
        raise ConfigurationError(NO_ADDRESS) from None
    return parts


def _of_each_host(netloc: str, options: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
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
    """Return the seconds, or None for the default in place of what libpq takes for no timeout at all."""
    try:
        seconds = float(value)
    except ValueError:
        raise ConfigurationError(f"DATABASE_URL: {name} must be a number of seconds") from None
    return seconds if 0 < seconds < math.inf else None


def _fill_in(options: dict[str, str]) -> dict[str, str]:
    """Fill in what variables set; return how errors name each option."""
    sources = {name: f"DATABASE_URL: {name}" for name in (*_CHOICES, *_TLS_FILES)}
    for name, variable in _VARIABLES.items():
        if name not in options and (value := os.environ.get(variable)):
            options[name] = value
            sources[name] = variable
    return sources


def _check_choices(options: Mapping[str, str], sources: Mapping[str, str]) -> None:
    for name, choices in _CHOICES.items():
        if options.get(name, choices[0]) not in choices:
            raise ConfigurationError(f"{sources[name]} must be one of {', '.join(choices)}")
    if options.get("sslnegotiation") == "direct" and options.get("sslmode") not in _DIRECT_MODES:
        raise ConfigurationError(
            f"{sources['sslnegotiation']}=direct needs an sslmode of {', '.join(_DIRECT_MODES)} in DATABASE_URL"
        )


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


def _check_tls_files(options: Mapping[str, str], sources: Mapping[str, str]) -> None:
    """Read the certificate files, so that a missing one is reported before the first connection."""
    mode = options.get("sslmode", "")
    if mode == "disable":
        return
    if mode.startswith("verify-") and not (options.get("sslrootcert") or _has_default_root()):
        raise ConfigurationError(
            f"{sources['sslmode']}={mode} needs the certificate of the authority that signed the server's:"
            " set sslrootcert to its file, or save it as ~/.postgresql/root.crt"
        )
    for name in _TLS_FILES:
        if not (path := options.get(name)):
            continue
        try:
            if name in _TRUST_FILES:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
            else:
                Path(path).read_bytes()
        except OSError as error:
            reason = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise ConfigurationError(f"{sources[name]} names a file that can't be used ({reason})") from error


def _has_default_root() -> bool:
    try:
        return Path("~/.postgresql/root.crt").expanduser().exists()
    except RuntimeError:  # the user has no home
        return False


def _check_user(netloc: str, options: Mapping[str, str]) -> None:
    """See that there is a user: without one in the address it is the system's, who may have no name."""
    if netloc.rpartition("@")[0] or options.get("user") or os.environ.get("PGUSER"):
        return
    try:
        getpass.getuser()
    except (KeyError, OSError):
        raise ConfigurationError(f"DATABASE_URL names no user: write it like {_EXAMPLE}") from None
