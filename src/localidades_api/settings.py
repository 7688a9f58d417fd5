"""The settings, read from the environment once, when a process starts."""

import hashlib
import os
import re
import stat
import sys
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal, Self

import platformdirs
from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from localidades_api.errors import ConfigurationError

PREFIX = "LOCALIDADES_"
_SYSTEM_DATA = Path("/var/lib/localidades-api")


def find_clone() -> Path | None:
    """Return the clone that the package runs from; None if it is installed, with its migrations inside."""
    package = Path(__file__).resolve().parent
    return None if (package / "migrations").is_dir() else package.parents[1]


def default_data_dir() -> Path:
    """Return the folder of the embedded Postgres: the clone's own, else the user's.

    It is the system's when run by root, or by a user without a home. Postgres refuses to run as root, so root's server
    runs as another user, who can't see into root's home.
    """
    is_root = sys.platform != "win32" and os.geteuid() == 0
    clone = find_clone()
    if clone is None:
        with suppress(RuntimeError):  # no home
            return _SYSTEM_DATA if is_root else platformdirs.user_data_path("localidades-api")
        return _SYSTEM_DATA
    folder = clone / ".data"
    if is_root and not _is_open_to_all(folder):
        name = hashlib.sha256(os.fsencode(clone)).hexdigest()[:12]
        return _SYSTEM_DATA.with_name(f"{_SYSTEM_DATA.name}-{name}")
    return folder


def _is_open_to_all(folder: Path) -> bool:
    return all(path.stat().st_mode & stat.S_IXOTH for path in (folder, *folder.parents) if path.exists())


def _expand(given: object) -> object:
    """Expand `~`, which a shell doesn't do in a file of variables."""
    if not (isinstance(given, str) and given.startswith("~")):
        return given
    try:
        return str(Path(given).expanduser())
    except RuntimeError:
        raise ValueError("`~` can't be expanded, because the user has no home: write the whole path") from None


def _split(given: object) -> object:
    return tuple(part.strip() for part in given.split(",")) if isinstance(given, str) else given


def _check_network(given: str) -> str:
    try:
        ip_network(given)
    except ValueError:
        raise ValueError("addresses or networks separated by commas, such as `10.0.0.7,10.1.0.0/16`") from None
    return given


def _check_public_url(given: str | None) -> str | None:
    if given is None:
        return None
    if not re.fullmatch(r"https?://[^\s/?#@\\]+(/[^\s?#\\]*)?", given):
        raise ValueError("an address such as `https://localidades.example.org`, without a query")
    return given.rstrip("/")


_Network = Annotated[str, AfterValidator(_check_network)]


class Settings(BaseSettings):
    """The configuration: ``DATABASE_URL`` and ``LOCALIDADES_*``; an empty variable counts as unset."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, hide_input_in_errors=True, populate_by_name=True
    )

    database_url: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("DATABASE_URL", "database_url"),
        description="Address of a Postgres (15 to 18); if unset, the service starts an embedded one.",
    )
    seed: Annotated[str | None, BeforeValidator(_expand)] = Field(
        default=None,
        description="Catalogue that migrations load into an empty database: `demo`, or the path or http(s) address"
        " of an AGEEML zip, csv or txt; if unset, an embedded one gets the demo, and any other stays empty.",
    )
    data_dir: Annotated[Path, BeforeValidator(_expand)] = Field(
        default_factory=default_data_dir, description="Folder for the embedded Postgres and its data."
    )
    cache_dir: Annotated[Path | None, BeforeValidator(_expand)] = Field(
        default=None,
        description="Folder for the indexes of names that are in use; if unset, a clone's `.data`, else the user's"
        " cache folder.",
    )
    postgres_bin: Annotated[Path | None, BeforeValidator(_expand)] = Field(
        default=None,
        description="Folder with the `postgres` and `initdb` to embed, instead of those the service finds.",
    )
    pool_size: int = Field(default=10, ge=1, le=200, description="Maximum number of database connections per worker.")
    database_timeout: float = Field(
        default=1.9,
        gt=0,
        le=60,
        description="Seconds to wait for the database, including connection, statement and retries.",
    )  # so that a request that can't be answered is refused within two
    release_poll: float = Field(
        default=0.5, gt=0, le=60, description="Seconds between checks for a new current release."
    )
    page_cache_bytes: int = Field(
        default=64 * 1024**2,
        ge=0,
        description="Bytes of memory per worker for cached pages; the default fits a whole release, 0 caches none.",
    )
    max_connections: int | None = Field(
        default=None, ge=1, le=100_000, description="Maximum number of client connections per worker."
    )  # as the limit of open files allows, up to 4,096
    max_in_flight: int = Field(
        default=16,
        ge=1,
        le=10_000,
        description="Maximum number of requests that each worker handles at once; four times as many are queued,"
        " as many may be sending their bodies, and the rest get 503.",
    )
    max_transfers: int = Field(
        default=8,
        ge=1,
        le=10_000,
        description="Maximum number of files and answers to rows that each worker sends at once; the rest get 503.",
    )
    transfer_timeout: float = Field(
        default=3600.0, gt=0, le=86_400, description="Seconds after which a file or an answer to rows is cut off."
    )  # a file of 100 MB takes a quarter of it at 1 Mbit/s
    trusted_proxies: Annotated[tuple[_Network, ...] | None, NoDecode, BeforeValidator(_split)] = Field(
        default=None, description="Addresses and networks of proxies whose `X-Forwarded-Proto` is trusted."
    )
    shutdown_timeout: int = Field(
        default=30, ge=1, le=3600, description="Seconds for requests and downloads to finish when a worker stops."
    )
    client_timeout: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="Seconds for a client to read some of a response; a request must begin, and its head end,"
        " within ten of them.",
    )
    keep_alive_timeout: float = Field(
        default=75.0, gt=0, le=3600, description="Seconds that an idle connection stays open for another request."
    )  # longer than in proxies: the side that closes first may lose a request in transit
    management_port: int | None = Field(
        default=None, ge=1, le=65535, description="Separate port for probes and metrics; if unset, they are on --port."
    )
    access_log: bool = Field(
        default=False, description="Log every request; requests that fail with 5xx are always logged."
    )
    public_url: Annotated[str | None, AfterValidator(_check_public_url)] = Field(
        default=None,
        description="Address by which the public knows the service, such as `https://localidades.example.org`, for"
        " canonical links and files for crawlers; if unset, pages have no canonical link.",
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="Plain lines for a console, or one JSON object per line."
    )

    @property
    def initial_catalogue(self) -> str | None:
        """The catalogue for an empty database, or None: invented places reach a server only on request."""
        return self.seed or ("demo" if self.database_url is None else None)

    @model_validator(mode="after")
    def _refuse_unknown_variables(self) -> Self:
        known = {PREFIX + name.upper() for name in type(self).model_fields}
        unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)
        if unknown:
            raise ValueError(f"unknown variable {', '.join(unknown)}; the known ones are {', '.join(sorted(known))}")
        return self


def read_settings() -> Settings:
    """Read the environment; raise ConfigurationError with a sentence for each variable that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        sentences = []
        for fault in error.errors(include_input=False, include_url=False):
            name = f"{PREFIX}{str(fault['loc'][0]).upper()}: " if fault["loc"] else ""
            sentences.append(name + fault["msg"].removeprefix("Value error, ") + ".")
        raise ConfigurationError(" ".join(sentences)) from None
