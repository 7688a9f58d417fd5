"""Spellings of DATABASE_URL."""

from urllib.parse import parse_qs, urlsplit

import pytest

from localidades_api.database.dsn import Dsn
from localidades_api.errors import ConfigurationError


@pytest.mark.parametrize(
    ("url", "netloc"),
    [
        *((f"{scheme}://u:p@h/d", "u:p@h") for scheme in ("postgres", "postgresql", "postgresql+asyncpg",
                                                          "postgresql+psycopg2", "postgres+asyncpg")),
        ("postgresql+psycopg://u:p@h:5433/d", "u:p@h:5433"), ("  postgresql://u:p@h/d\n", "u:p@h"),
        ("postgresql://u:p%40ss%2Fw%3A@h/d", "u:p%40ss%2Fw%3A@h"), ("postgresql://u@[::1]:5432/d", "u@[::1]:5432"),
    ],
)  # fmt: skip
def test_database_url_is_read_in_every_spelling(url: str, netloc: str) -> None:
    parts = urlsplit(",".join(Dsn.parse(url).addresses))
    assert parts[:3] == ("postgresql", netloc, "/d")
    assert parse_qs(parts.query, strict_parsing=True) == {"application_name": ["localidades-api"]}


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("sslmode=require", {"sslmode": "require"}),
        ("application_name=mine", {"application_name": "mine"}),
        ("options=-c%20search_path%3Dx", {"options": "-c search_path=x"}),
        ("channel_binding=require&gssencmode=disable&sslmode=require", {"sslmode": "require"}),
        ("pgbouncer=true&connection_limit=1&schema=public", {}),
        ("host=a:1&target_session_attrs=prefer-standby", {"host": "a:1", "target_session_attrs": "prefer-standby"}),
        ("target_session_attrs=read-write", {"target_session_attrs": "primary"}),
        ("host=/run/postgresql&port=5432", {"host": "/run/postgresql", "port": "5432"}),
        ("connect_timeout=3", {}),
    ],
)
def test_options_are_those_that_the_driver_knows(query: str, options: dict[str, str]) -> None:
    [address] = Dsn.parse(f"postgresql://u@{'' if 'host' in query else 'h'}/d?{query}").addresses
    found = urlsplit(address).query
    expected = {"application_name": "localidades-api"} | options
    assert parse_qs(found, strict_parsing=True) == {name: [value] for name, value in expected.items()}


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        ("", "connect_timeout", None), ("?connect_timeout=3", "connect_timeout", 3.0),
        *((f"?connect_timeout={endless}", "connect_timeout", None) for endless in ("0", "-1", "inf", "nan")),
        ("", "prefers_standby", False), ("?target_session_attrs=prefer-standby", "prefers_standby", True),
        ("?target_session_attrs=standby", "prefers_standby", False),
        ("", "is_pooled", False), ("?pgbouncer=false", "is_pooled", False), ("?pgbouncer=true", "is_pooled", True),
        ("", "trusts_system", False), ("?sslrootcert=system", "trusts_system", True),
        ("?sslrootcert=system&sslmode=verify-full", "trusts_system", True),
        ("?sslrootcert=system&sslmode=disable", "trusts_system", False),
    ],
)  # fmt: skip
def test_what_the_service_itself_needs_is_read(query: str, name: str, value: object) -> None:
    assert getattr(Dsn.parse(f"postgresql://u@h/d{query}"), name) == value


@pytest.mark.parametrize(
    "url",
    ["", "x", "mysql://u:s3cr3t@h/d", "sqlite:///s3cr3t", "u:s3cr3t@h/d", "http://u:s3cr3t@h/", "://s3cr3t",
     "postgresqlx://u:s3cr3t@h/d", "postgresql://u:s3cr3t@[::1/d", "postgresql://u:s3cr3t@h,/d",
     "postgresql://u:s3cr3t@h:x/d", "postgresql://u@a:1,b:655350/d", "postgresql://h/d?connect_timeout=s3cr3t"],
)  # fmt: skip
def test_bad_database_url_is_refused_without_its_content(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Dsn.parse(url)
    assert "DATABASE_URL" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("sslmode=require", "DATABASE_URL, or PGSSLROOTCERT: sslrootcert=system needs sslmode=verify-full"),
        ("sslcert=c", "DATABASE_URL, or PGSSLROOTCERT: sslrootcert=system can't be used with sslcert"),
    ],
)
def test_store_of_the_system_is_not_combined_with_what_it_excludes(query: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{sentence}$"):
        Dsn.parse(f"postgresql://u@h/d?sslrootcert=system&{query}")
