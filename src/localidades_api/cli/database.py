"""The database of a command, and the migrations that bring it to the schema of this version."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from localidades_api.embedded_postgres import provide_database
from localidades_api.errors import ConfigurationError, LocalidadesError
from localidades_api.settings import Settings, find_clone, read_settings


@contextmanager
def ready_database(settings: Settings, *, seed: bool = True, watch: bool = False) -> Iterator[str]:
    """Lend the address of the database; an embedded one is migrated, and seeded if it is empty.

    With `watch` an embedded one is started again whenever it dies. A configured database is never migrated here.
    """
    with provide_database(settings, watch=watch) as url:
        if settings.database_url is None:
            _migrate(settings, url, settings.initial_catalogue if seed else None)
        yield url


def run_migrations(report: Callable[[str], None], *, seed: str | None) -> None:
    """Migrate the database, report that, and load `seed`, or the catalogue of the settings, into an empty one."""

    def describe(before: tuple[str, ...], after: tuple[str, ...]) -> None:
        revision = ", ".join(after)
        if before == after:
            report(f"The database is up to date, at revision {revision}.")
        elif before:
            report(f"Migrated the database from revision {', '.join(before)} to {revision}.")
        else:
            report(f"Migrated an empty database to revision {revision}.")

    settings = read_settings()
    with provide_database(settings) as url:
        _migrate(settings, url, seed or settings.initial_catalogue, report=describe)


def _migrate(
    settings: Settings,
    url: str,
    seed: str | None,
    *,
    report: Callable[[tuple[str, ...], tuple[str, ...]], None] | None = None,
) -> None:
    from alembic import command  # noqa: PLC0415  # a configured database does not need it
    from alembic.config import Config  # noqa: PLC0415  # as above
    from alembic.util import CommandError  # noqa: PLC0415  # as above

    migrations = (find_clone() or Path(__file__).parents[1]) / "migrations"
    located = settings.model_copy(update={"database_url": SecretStr(url), "seed": seed})
    config = Config(attributes={"settings": located, "report": report})
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        if isinstance(error.__cause__, LocalidadesError):
            raise error.__cause__ from None
        if "locate revision" not in str(error):
            raise ConfigurationError(str(error)) from error
        database, otherwise = "this database", "set DATABASE_URL to another"
        if settings.database_url is None:
            database, otherwise = f"the database in {settings.data_dir}", "set LOCALIDADES_DATA_DIR to another folder"
        raise ConfigurationError(
            f"A newer version of localidades-api created {database}: install that version, or {otherwise}."
        ) from error
