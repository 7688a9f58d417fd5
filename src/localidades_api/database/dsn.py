"""Reads of DATABASE_URL what asyncpg doesn't: other spellings, several hosts with a deadline each, certificates."""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from localidades_api.errors import ConfigurationError

# Options of other drivers and hosting services; asyncpg would send them to the server as settings.
_FOREIGN_OPTION = re.compile(
    "channel_binding|client_encoding|gssencmode|keepalives.*|load_balance_hosts"  # libpq's
    "|connection_limit|pool_timeout|schema"  # Prisma's
)
_ADDRESS = re.compile(
    r"postgres(ql)?(\+[^:/?#]*)?://(?P<account>[^/?#]*@)?(?P<hosts>[^/?#]*)(?P<path>[^?#]*)(\?(?P<query>[^#]*))?(#.*)?",
    re.IGNORECASE,
)
EXAMPLE = "postgresql://user:password@host:5432/database"
NO_ADDRESS = f"DATABASE_URL is not a Postgres address: write it like {EXAMPLE}"
_CHOICES = {
    "pgbouncer": ("false", "true"),
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": ("any", "primary", "standby", "prefer-standby", "read-write", "read-only"),
}
SYSTEM = "system"  # instead of a file, the certificates that the system trusts
_FILES = ("sslrootcert", "sslcrl", "sslcert", "sslkey")
_FROM_VARIABLES = ("sslmode", "target_session_attrs", *_FILES)  # as in libpq and asyncpg


@dataclass(frozen=True, slots=True)
class Dsn:
    """A database address; `addresses` has one for each host, as asyncpg reads it."""

    addresses: tuple[str, ...]
    connect_timeout: float | None
    prefers_standby: bool
    trusts_system: bool  # whether certificates are checked against those that the system trusts
    is_pooled: bool  # the connection goes through a pooler: `pgbouncer=true`, as Prisma and its hosts write it

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read any common spelling of a Postgres URL.

        Takes the schemes `postgres`, `postgresql` and `postgresql+driver`; several hosts in libpq's spelling or
        SQLAlchemy's (`?host=a:5432&host=b:5432`); options of other drivers are dropped.
        Raises ConfigurationError for what asyncpg would report as a fault of the server, or not at all; it checks the
        rest when it connects. The message does not have the address, which may hold a password.
        """
        parts = _ADDRESS.fullmatch(url.strip())
        if parts is None:
            raise ConfigurationError(NO_ADDRESS)
        options: dict[str, str] = {"application_name": "localidades-api"}
        hosts: list[str] = []
        connect_timeout = None
        for name, value in parse_qsl(parts["query"] or "", keep_blank_values=True):
            if name == "host":
                hosts.append(value)
            elif name == "connect_timeout":
                connect_timeout = _seconds(value)
            elif not _FOREIGN_OPTION.fullmatch(name):
                options[name] = value
        _add_variables(options)
        _check_certificates(options)
        is_pooled = options.pop("pgbouncer", "") == "true"
        if options.get("target_session_attrs") == "read-write":
            # asyncpg would ask whether the session is read-only, as those of `serve` are on every server.
            options["target_session_attrs"] = "primary"
        return cls(
            _split_hosts(parts, ",".join(hosts), options),
            connect_timeout,
            options.get("target_session_attrs") == "prefer-standby",
            options.get("sslrootcert") == SYSTEM and options["sslmode"] != "disable",
            is_pooled,
        )


def _split_hosts(parts: re.Match[str], hosts: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Return an address for each host; `hosts` are those in the query."""
    in_query = not parts["hosts"]
    every = (parts["hosts"] or hosts).split(",")
    ports = options.get("port", "").split(",")
    if len(ports) == 1:
        ports *= len(every)
    if len(ports) != len(every) or (len(every) > 1 and "" in every):
        raise ConfigurationError(NO_ADDRESS)
    addresses = []
    for host, port in zip(every, ports, strict=True):
        own = {**options, "host": host if in_query else "", "port": port}
        query = urlencode({name: value for name, value in own.items() if value}, quote_via=quote)
        in_address = "" if in_query else _checked(host)
        addresses.append(f"postgresql://{parts['account'] or ''}{in_address}{parts['path']}?{query}")
    return tuple(addresses)


def _checked(host: str) -> str:
    try:
        urlsplit(f"//{host}").port  # noqa: B018  # raises an error for wrong brackets and ports
    except ValueError:
        raise ConfigurationError(NO_ADDRESS) from None
    return host


def _seconds(value: str) -> float | None:
    """Return the seconds; None is the default timeout, for values that libpq reads as no timeout."""
    try:
        seconds = float(value)
    except ValueError:
        raise ConfigurationError("DATABASE_URL: connect_timeout must be a number of seconds") from None
    return seconds if 0 < seconds < math.inf else None


def _add_variables(options: dict[str, str]) -> None:
    """Add the options that variables set, and check those that are read here too."""
    for name in _FROM_VARIABLES:
        if value := os.environ.get(_variable(name)):
            options.setdefault(name, value)
    for name, choices in _CHOICES.items():
        if options.get(name, choices[0]) not in choices:
            raise ConfigurationError(f"DATABASE_URL, or {_variable(name)}: {name} must be one of {', '.join(choices)}")


def _check_certificates(options: dict[str, str]) -> None:
    """Check what asyncpg would ignore, or report as a fault of the server."""
    if options.get("sslrootcert") == SYSTEM:
        # Anybody can get a certificate that the system trusts, for another host.
        if options.setdefault("sslmode", "verify-full") not in {"verify-full", "disable"}:
            raise ConfigurationError(f"DATABASE_URL, or PGSSLROOTCERT: sslrootcert={SYSTEM} needs sslmode=verify-full")
        if taken := options.keys() & {"sslcert", "sslcrl"}:  # asyncpg would ignore them
            raise ConfigurationError(
                f"DATABASE_URL, or PGSSLROOTCERT: sslrootcert={SYSTEM} can't be used with {min(taken)}"
            )
    for name in _FILES:
        try:
            if (path := options.get(name, "")) not in {"", SYSTEM} and options.get("sslmode") != "disable":
                Path(path).read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"DATABASE_URL, or {_variable(name)}: {name} names a file that can't be used ({error.strerror})"
            ) from error


def _variable(name: str) -> str:
    return f"PG{name.replace('_', '').upper()}"
