"""The end of each command's help: examples and exit codes."""

from localidades_api.cli.errors import (
    FAILED,
    INTERRUPTED,
    READER_GONE,
    TERMINATED,
    UNWRITTEN,
    USAGE,
)

_EVERYWHERE = {
    USAGE: "an option, an argument or a command is wrong",
    UNWRITTEN: "the output can't be written; what the command did stands",
    INTERRUPTED: "interrupted (Ctrl-C)",
    READER_GONE: "the reader of the output has gone, as after `| head`",
    TERMINATED: "stopped by SIGTERM, as if interrupted",
}

EXIT_CODES: dict[str, dict[int, str]] = {
    "serve": {
        0: "stopped by Ctrl-C or SIGTERM",
        FAILED: "the service can't start; the error says why",
        **{code: meaning for code, meaning in _EVERYWHERE.items() if code != TERMINATED},
    },
    "migrate": {
        0: "migrated, and the named catalogue loaded; or nothing to do",
        FAILED: "refused or unfinished; the error says why, and the next run continues",
        **_EVERYWHERE,
        INTERRUPTED: "interrupted (Ctrl-C); the next run continues",
    },
    "import": {
        0: "published, even if interrupted afterwards; with --dry-run, it could be",
        FAILED: "refused, and nothing has changed; the error says why",
        **_EVERYWHERE,
        INTERRUPTED: "interrupted (Ctrl-C); nothing has changed",
    },
    "releases": {
        0: "listed",
        FAILED: "the database can't be read; the error says why",
        **_EVERYWHERE,
    },
    "releases publish": {
        0: "the release is the current one",
        FAILED: "refused, and nothing has changed; the error says why",
        **_EVERYWHERE,
    },
    "releases retire": {
        0: "retired, along with anything an interrupted run had left",
        FAILED: "refused or unfinished; the error says why, and the next run continues",
        **_EVERYWHERE,
        INTERRUPTED: "interrupted (Ctrl-C); the next run continues",
    },
    "roles": {
        0: "both roles exist and have their rights",
        FAILED: "refused, and nothing has changed; the error says why",
        **_EVERYWHERE,
    },
    "verify": {
        0: "the service agrees with the file",
        FAILED: "they differ",
        **_EVERYWHERE,
        USAGE: "they can't be compared, or an option or argument is wrong",
    },
    "match": {
        0: "every row has its answer, which may be a problem of its own",
        FAILED: "unfinished; the error says why and, if rows are written, how to resume",
        **_EVERYWHERE,
        USAGE: "the file can't be read, or an option or argument is wrong",
        UNWRITTEN: "the output can't be written; the error says how to resume",
        INTERRUPTED: "interrupted (Ctrl-C); the message says how to resume",
    },
    "export": {
        0: "the release is in the folder",
        FAILED: "refused or failed, and nothing is left; the error says why",
        **_EVERYWHERE,
        INTERRUPTED: "interrupted (Ctrl-C); nothing is left",
    },
    "mcp": {
        0: "the assistant has closed the connection",
        FAILED: "`--url` is wrong, or the extra `mcp` is not installed",
        **_EVERYWHERE,
    },
    "openapi": {
        0: "printed",
        FAILED: "an environment variable is wrong; the error names it",
        **_EVERYWHERE,
    },
}  # fmt: skip

_EXAMPLES: dict[str, tuple[str, ...]] = {
    "serve": (
        "localidades-api serve",
        "localidades-api serve --host 0.0.0.0 --port 80 --workers 2",
        "DATABASE_URL=postgresql://user@host/name localidades-api serve",
    ),
    "migrate": (
        "localidades-api migrate",
        "DATABASE_URL=postgresql://user@host/name localidades-api migrate",
        "localidades-api migrate --seed catun_localidad_2026-11.zip",
    ),
    "import": (
        "localidades-api import catun_localidad_2026-11.zip",
        "localidades-api import catun_localidad.zip --release 2026-11 --dry-run",
        "localidades-api import https://example.org/catun.zip --release 2026-11",
        "localidades-api import demo --json | jq .totals",
    ),
    "releases": (
        "localidades-api releases",
        "localidades-api releases --json | jq -r '.releases[].release'",
    ),
    "releases publish": (
        "localidades-api releases publish 2018-09",
        "localidades-api releases publish 2018-09 --json | jq -r .previous",
    ),
    "releases retire": ("localidades-api releases retire 2018-09",),
    "roles": (
        "DATABASE_URL=postgresql://postgres@host/name localidades-api roles",
        "localidades-api roles --reader web --importer loader",
    ),
    "verify": (
        "localidades-api verify catun_localidad.zip",
        "localidades-api verify catun_localidad.zip --url https://example.org",
        "localidades-api verify old.zip --release 2018-09 --json > report.json",
    ),
    "match": (
        "localidades-api match places.csv",
        "localidades-api match places.csv --nombre 'Lugar de origen'",
        "localidades-api match places.csv --output found.csv --resume",
        "localidades-api match - < places.csv > found.csv",
        "localidades-api match places.csv --url https://example.org",
    ),
    "export": (
        "localidades-api export /srv/localidades/2018-09",
        "localidades-api export public --release 2012-06 --no-records",
    ),
    "mcp": (
        "localidades-api mcp",
        "localidades-api mcp --url https://example.org",
    ),
    "openapi": (
        "localidades-api openapi > openapi.json",
        "localidades-api openapi | jq '.paths | keys'",
    ),
}


def end_of_help(command: str) -> str:
    r"""Return examples and exit codes, in paragraphs that are not wrapped: the `\b` says so, and is not shown."""
    examples = (f"  {example}" for example in _EXAMPLES[command])
    codes = (f"  {code:>3}  {meaning}" for code, meaning in sorted(EXIT_CODES[command].items()))
    return "\n".join(("\b", "Examples:", *examples, "", "\b", "Exit codes:", *codes))
