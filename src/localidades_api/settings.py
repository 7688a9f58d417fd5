"""Everything that can be configured, read from the environment once, in a door."""

import os
import sys
from pathlib import Path
from typing import Annotated, Self

import platformdirs
from pydantic import AliasChoices, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from localidades_api.errors import ConfigurationError

PREFIX = "LOCALIDADES_"


def default_data_dir() -> Path:
    """Return the folder of the embedded Postgres: the user's own, or the system's when run by root.

    Postgres refuses to run as root, so root's server runs as another user, who can't see into root's home.
    """
    if sys.platform != "win32" and os.geteuid() == 0:
        return Path("/var/lib/localidades-api")
    return platformdirs.user_data_path("localidades-api")


class Settings(BaseSettings):
    """The configuration: ``DATABASE_URL`` and ``LOCALIDADES_*``; an empty variable counts as unset."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        frozen=True,
        hide_input_in_errors=True,
        populate_by_name=True,
    )

    database_url: Annotated[
        SecretStr | None,
        Field(
            validation_alias=AliasChoices("DATABASE_URL", "database_url"),
            description="Address of a Postgres (15 to 18); unset, an embedded one is started.",
        ),
    ] = None
    catalogue: Annotated[
        str,
        Field(description="What the seed loads: `demo`, or a path or http(s) address of an AGEEML zip, csv or txt."),
    ] = "demo"
    data_dir: Annotated[
        Path,
        Field(default_factory=default_data_dir, description="Folder of the embedded Postgres and its data."),
    ]
    postgres_bin: Annotated[
        Path | None,
        Field(description="Folder with the `postgres` and `initdb` to embed, in place of those that are found."),
    ] = None
    pool_size: Annotated[int, Field(ge=1, le=200, description="Database connections of each worker, at most.")] = 10
    database_timeout: Annotated[
        float,
        Field(gt=0, le=60, description="Seconds to wait for the database: connection, statement and retries together."),
    ] = 1.9  # so that what can't be answered is refused within two
    release_poll: Annotated[
        float, Field(gt=0, le=60, description="Seconds between two looks at which release is the current one.")
    ] = 0.5
    page_cache_bytes: Annotated[
        int, Field(ge=0, description="Memory of each worker for pages; the default holds a whole release, 0 none.")
    ] = 64 * 1024**2

    @model_validator(mode="after")
    def _refuse_unknown_variables(self) -> Self:
        known = {PREFIX + name.upper() for name in type(self).model_fields}
        unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)
        if unknown:
            raise ValueError(f"unknown variable {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        return self


def read_settings() -> Settings:
    """Read the environment; raise ConfigurationError with a sentence for each variable that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        faults = [
            f"{PREFIX}{str(fault['loc'][0]).upper()}: {fault['msg']}" if fault["loc"] else fault["msg"]
            for fault in error.errors(include_input=False, include_url=False)
        ]
        raise ConfigurationError("; ".join(faults)) from None
