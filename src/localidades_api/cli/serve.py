"""Serves the application, on the configured database or an embedded one."""

import asyncio
import logging.config
import os
from contextlib import ExitStack
from socket import socket

from localidades_api import __version__
from localidades_api.caches.index_folders import explained_system_errors, index_root
from localidades_api.cli.database import list_releases, on_database_at, ready_database
from localidades_api.errors import ConfigurationError, UnavailableError
from localidades_api.observability.logging import log_config
from localidades_api.observability.progress_display import console
from localidades_api.server.run import ServerOptions, check_uvicorn, find_prefix, listen, run_server
from localidades_api.settings import Settings, read_settings


def run_service(host: str, port: int, options: ServerOptions) -> None:
    """Serve until SIGINT or SIGTERM; raise ConfigurationError for options that can't be used."""
    check_uvicorn()
    settings = read_settings()
    if options.reload and options.workers > 1:
        raise ConfigurationError("--reload works with one worker only: leave out --workers.")
    with explained_system_errors():
        index_root(settings.cache_dir, "names")  # else every search would be refused

    def listen_on_all(stack: ExitStack) -> list[socket]:
        ports = {"--port": port}
        if settings.management_port:
            ports["LOCALIDADES_MANAGEMENT_PORT"] = settings.management_port
        return [stack.enter_context(listen(host, number, setting=setting)) for setting, number in ports.items()]

    # Fail at once if a port is in use. Then close the ports: while the first start loads the demo, clients should be
    # refused rather than wait.
    with ExitStack() as stack:
        listen_on_all(stack)
    with ExitStack() as stack:
        url = stack.enter_context(ready_database(settings))
        sockets = listen_on_all(stack)
        # Worker processes read their settings from the environment; without workers, this process does.
        os.environ["DATABASE_URL"] = url
        logging.config.dictConfig(log_config(settings.log_format))
        _print_where_to_look(url, settings, sockets[0].getsockname(), find_prefix(options.application))
        run_server(sockets, settings, options)


def _print_where_to_look(url: str, settings: Settings, address: tuple[str, int], prefix: str) -> None:
    try:
        _, current = asyncio.run(on_database_at(url, settings, list_releases, writes=False))
        shown = current.name if current else "none yet: load one with `localidades-api import`"
        if current and current.is_demo:
            shown = "demo: its municipios and localities are invented; load INEGI's file with `localidades-api import`"
    except UnavailableError as error:
        shown = f"unknown: {error}"
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    root = f"http://{host}:{address[1]}{prefix}"
    port = settings.management_port
    probes = f"\n  probes   http://{host}:{port}{prefix}/readyz" if port else ""
    data = "" if settings.database_url else f"\n  data     {settings.data_dir.resolve()}\n  database {url}"
    console.print(
        f"localidades-api {__version__}\n"
        f"  release  {shown}\n"
        f"  list     {root}/api/census/localidades/\n"
        f"  site     {root}/\n"
        f"  docs     {root}/docs{probes}{data}",
        markup=False,
    )
