"""Translates errors of the driver by their SQLSTATE."""

import errno
import ssl
from collections.abc import Iterable, Mapping

import asyncpg
from sqlalchemy.exc import DBAPIError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from localidades_api.errors import ConfigurationError, DatabaseUnavailableError

# Texts of asyncpg, which raises these errors without a type that identifies them.
_NO_TLS = "rejected SSL upgrade"
_WRONG_SERVER = "target attribute requirement"

LOCK_NOT_AVAILABLE = "55P03"
UNDEFINED_COLUMN = "42703"
_REPLANNED = "0A000"  # a table was altered after the statement was prepared; SQLAlchemy prepares it again
_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE})
_TOO_MANY_FILES = (
    "The service has too many open files to connect to the database: raise the limit (ulimit -n), or lower"
    " LOCALIDADES_MAX_CONNECTIONS."
)
NO_POOLER_EXPECTED = "The connection goes through a pooler: add pgbouncer=true to the parameters of DATABASE_URL."
_CONNECTION = "08"
_UNSUPPORTED_PARAMETER = "unsupported startup parameter"
# Messages of PgBouncer itself, whose SQLSTATE is that of a protocol violation or a lost connection.
_POOLER = {
    _UNSUPPORTED_PARAMETER: NO_POOLER_EXPECTED,
    "no more connections allowed": "The pooler has as many clients as it allows: raise its max_client_conn, or lower"
    " LOCALIDADES_POOL_SIZE.",
    "query_wait_timeout": "The pooler had no free session in time: raise its default_pool_size.",
    "cannot connect to server": "The pooler can't reach the database: see its log.",
    "server login": "The pooler can't log in to the database: see its log.",
    "no such database": "The pooler does not know the database that DATABASE_URL names: add it to its [databases].",
    "authentication failed": "The pooler refuses this user or password: correct DATABASE_URL, or its auth_file.",
}
_CONFLICT = "40001"  # on a standby, replay removed rows that the statement was reading
# SQLSTATE codes and classes of errors that may be temporary, with the message for the operator.
_UNAVAILABLE = {
    "08": "The connection to the database was lost.",
    "0A000": "The database's tables changed during the request: try again.",
    "25006": "The database is read-only: it is a standby, or its role has no right to write.",
    "26000": NO_POOLER_EXPECTED,
    "28": "The database refuses this user or password: correct DATABASE_URL.",
    "3D": "The database that DATABASE_URL names does not exist: create it, or correct the address.",
    "40001": "The database cancelled the statement because of a conflict: try again.",
    "42P05": NO_POOLER_EXPECTED,
    "42P01": "The database lacks the service's tables: run `localidades-api migrate`.",
    "53": "The database has run out of connections, memory or disk: give it more.",
    "55000": "The database does not accept connections.",
    LOCK_NOT_AVAILABLE: "Another session has locked the database's tables for too long: try again.",
    "57": "The database is starting, stopping, or has cancelled the statement: try again.",
    "58": "The database reports a system error: see its log.",
    "XX": "The database reports an internal error, or its files are damaged: see its log.",
}
# SQLSTATE codes of an unknown, unreadable, invalid or unchangeable parameter; nothing else has them on connecting.
_PARAMETER = frozenset({"42704", "42601", "42602", "22023", "55P02"})
# SQLSTATE codes and classes of a SELECT that the server always refuses.
_REFUSED = {
    "42501": "The database refuses to let the service read: grant its role the rights (deploy/postgres/roles.sql).",
    UNDEFINED_COLUMN: "The database's tables are from another version of the service: run `localidades-api migrate`.",
    "42": "The database rejects one of the service's statements; if its tables are from another version, run"
    " `localidades-api migrate`.",
}


def sqlstate_of(error: Exception) -> str | None:
    """Return the SQLSTATE that the server sent, or None; SQLAlchemy wraps the driver's error."""
    cause: BaseException | None = error
    while cause is not None:
        if sqlstate := getattr(cause, "sqlstate", None):
            return str(sqlstate)
        cause = cause.__cause__
    return None


def error_kind(error: Exception) -> str:
    """Return the label of an error in the metrics: its class of SQLSTATE, or `timeout`, `connection`, `descriptors`."""
    if sqlstate := sqlstate_of(error):
        return sqlstate[:2]
    if getattr(error, "errno", None) in _NO_DESCRIPTOR:
        return "descriptors"
    causes = (error, error.orig if isinstance(error, DBAPIError) else None)
    return "timeout" if any(isinstance(cause, TimeoutError | PoolTimeoutError) for cause in causes) else "connection"


def translate_connecting(error: Exception) -> DatabaseUnavailableError:
    """Return the error for a failed connection, with its cause if that is known."""
    if getattr(error, "errno", None) in _NO_DESCRIPTOR:
        return DatabaseUnavailableError(
            _TOO_MANY_FILES, detail="The service has run out of file descriptors and can't reach the database."
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return DatabaseUnavailableError(
            f"The database's certificate is not valid ({error.verify_message.rstrip('.')}): renew it, or correct the"
            " host, sslmode or sslrootcert in DATABASE_URL."
        )
    if isinstance(error, ssl.SSLError):
        return DatabaseUnavailableError(
            f"TLS with the database failed ({error.reason}): check its log, and sslmode and sslcert in DATABASE_URL."
        )
    if _NO_TLS in str(error):
        return DatabaseUnavailableError(
            "The database does not offer TLS, which sslmode in DATABASE_URL, or PGSSLMODE, requires."
        )
    return DatabaseUnavailableError()


def translate_parameter(error: asyncpg.PostgresError, own: Iterable[str]) -> ConfigurationError | None:
    """Return ConfigurationError if a server refuses a parameter of DATABASE_URL, and not one of the service's `own`."""
    message = str(error.args[0])
    is_unsupported = _UNSUPPORTED_PARAMETER in message and not any(name in message for name in own)
    if error.sqlstate not in _PARAMETER and not is_unsupported:
        return None
    return ConfigurationError(f"The server refuses a parameter of DATABASE_URL ({message}): correct or remove it.")


def translate(error: DBAPIError | asyncpg.PostgresError) -> DatabaseUnavailableError | None:
    """Return DatabaseUnavailableError if the database can't answer now, else None."""
    sqlstate = sqlstate_of(error)
    is_lost = isinstance(error, asyncpg.PostgresConnectionError) or getattr(error, "connection_invalidated", False)
    is_passing = is_lost or sqlstate in {_CONFLICT, _REPLANNED}
    if message := _pooler_message(error, sqlstate):
        return DatabaseUnavailableError(message, is_passing=is_passing)
    if _WRONG_SERVER in str(error):
        return DatabaseUnavailableError(
            "No server is what target_session_attrs in DATABASE_URL, or PGTARGETSESSIONATTRS, asks for."
        )
    if sqlstate is None or isinstance(error, InterfaceError):
        return DatabaseUnavailableError(is_passing=is_passing)
    if message := _message(_UNAVAILABLE, sqlstate):
        return DatabaseUnavailableError(message, is_passing=is_passing)
    return None


def translate_refusal(error: DBAPIError) -> DatabaseUnavailableError | None:
    """Return DatabaseUnavailableError if a SELECT lacks a privilege, a table or a column, else None."""
    message = _message(_REFUSED, sqlstate := sqlstate_of(error) or "")
    return DatabaseUnavailableError(message, is_unforeseen=sqlstate not in _REFUSED) if message else None


def _pooler_message(error: Exception, sqlstate: str | None) -> str | None:
    if not (sqlstate or "").startswith(_CONNECTION):
        return None
    return next((message for words, message in _POOLER.items() if words in str(error)), None)


def _message(messages: Mapping[str, str], sqlstate: str) -> str | None:
    """Return the first message for a SQLSTATE or its class, with the SQLSTATE."""
    found = (message for beginning, message in messages.items() if sqlstate.startswith(beginning))
    return f"{message[:-1]} ({sqlstate})." if (message := next(found, None)) else None
