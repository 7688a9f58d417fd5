"""The tables: releases of the catalogue, their estados, municipios and localities; an extension has its own.

Every key is the official one read as a number: estado `01` is 1, municipio `01001` is 1001, locality
`010010001` is 10010001 (docs/decisions/api.md). `localities` is partitioned by release: a release is one table that is
filled and checked before it is attached, and never changes afterwards (docs/decisions/releases.md).
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
    true,
)
from sqlalchemy.types import TypeEngine

from localidades_api.catalogue.columns import ATTRIBUTES, ColumnType
from localidades_api.catalogue.schemas import CHANGE_KINDS

# Another program in the database may have a table of Alembic's default name.
VERSION_TABLE = "localidades_alembic_version"

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    }
)

releases = Table(
    "releases",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("source", Text, nullable=False, comment="Name of the file that was imported"),
    Column("sha256", Text, nullable=False, comment="Digest of that file, in hexadecimal"),
    Column("states", Integer, nullable=False),
    Column("municipalities", Integer, nullable=False),
    Column("localities", Integer, nullable=False),
    Column("published_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column(
        "retired_at", DateTime(timezone=True), comment="Set while a release is being removed: readers no longer see it"
    ),
)

current_release = Table(
    "current_release",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default=true()),
    Column("release_id", ForeignKey("releases.id"), nullable=False),
    Column(
        "publication",
        Integer,
        nullable=False,
        server_default=text("1"),
        comment="How many times the pointer has been set: a server that shows a lower number is behind",
    ),
    CheckConstraint("singleton", name="one_row"),
    comment="The pointer: publishing a release is moving it",
)

publications = Table(
    "publications",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False, comment="As in current_release.publication"),
    Column("release", Text, nullable=False, comment="Names stay here when their releases are retired"),
    Column("previous", Text),
    Column("published_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("action", Text, nullable=False, comment="import, or publish for the command"),
    Column("role", Text, nullable=False, server_default=text("SESSION_USER")),
    Column("account", Text, nullable=False, comment="user@host, as the command's machine says"),
    Column("reason", Text),
    comment="The log of publications: a row for each time that the pointer was set",
)

comparisons = Table(
    "comparisons",
    metadata,
    Column("release_id", ForeignKey("releases.id", ondelete="CASCADE"), primary_key=True),
    Column(
        "previous_id",
        ForeignKey("releases.id", ondelete="CASCADE"),
        nullable=False,
        comment="The release before it that is not retired",
    ),
    *(Column(kind, Integer, nullable=False) for kind in CHANGE_KINDS),
    # Empty for releases from before these columns; an earlier version of the service leaves them as they are.
    Column("changes_since", Integer, comment="The release that `changes` begin from"),
    Column("changes", LargeBinary, comment="Kind and id of each change, as four-byte integers (packed.py)"),
    comment="How many localities changed from a release to the next, by kind: counted once, by the importer",
)

name_index = Table(
    "name_index",
    metadata,
    Column("release_id", ForeignKey("releases.id", ondelete="CASCADE"), primary_key=True),
    Column("code", Text, primary_key=True, comment="What can read it: format, byte order, version of tantivy"),
    Column("part", Integer, primary_key=True, autoincrement=False, comment="From 0; each but the last has 1 MiB"),
    Column("name", Text, nullable=False, comment="A digest of what the index is made from"),
    Column("sha256", Text, nullable=False, comment="Digest of all parts, in hexadecimal"),
    Column("stored_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("bytes", LargeBinary, nullable=False, comment="Of a tar, compressed with zstd"),
    comment="The index of names of each release, in parts",
)

pending_seed = Table(
    "pending_seed",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default=true()),
    CheckConstraint("singleton", name="one_row"),
    comment="A row while the seed migration has run and no catalogue has been loaded yet",
)

states = Table(
    "states",
    metadata,
    Column("release_id", ForeignKey("releases.id"), primary_key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("clave", Text(collation="C"), nullable=False),
    Column("nombre", Text, nullable=False),
    Column("abreviatura", Text),
)

municipalities = Table(
    "municipalities",
    metadata,
    Column("release_id", Integer, primary_key=True),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("estado_id", Integer, nullable=False),
    Column("clave", Text(collation="C"), nullable=False),
    Column("nombre", Text, nullable=False),
    Column("localities", Integer, nullable=False, comment="How many it has"),
    ForeignKeyConstraint(["release_id", "estado_id"], ["states.release_id", "states.id"]),
)

_TYPES: Mapping[ColumnType, TypeEngine[Any]] = {
    "ambito": Text(collation="C"),
    "latitude": Double(),
    "longitude": Double(),
    "integer": Integer(),
    "count": Integer(),
    "text": Text(),
}
localities = Table(
    "localities",
    metadata,
    Column("release_id", Integer, nullable=False),
    Column("position", Integer, nullable=False, comment="Place in the list of the release, from 1: clave, then id"),
    Column("id", Integer, nullable=False),
    Column("municipio_id", Integer, nullable=False),
    Column("clave", Text(collation="C"), nullable=False),
    Column("nombre", Text, nullable=False, comment="As published, to the byte"),
    *(Column(name, _TYPES[column.type], comment=column.comment) for name, column in ATTRIBUTES.items()),
    Column("folded", Text(collation="C"), nullable=False, comment="The name as people type it (folding.py)"),
    Column("prominence", Integer, nullable=False, comment="Place by population, from 1; unknown ones last"),
    PrimaryKeyConstraint("release_id", "id"),
    UniqueConstraint("release_id", "position"),
    ForeignKeyConstraint(["release_id", "municipio_id"], ["municipalities.release_id", "municipalities.id"]),
    # A query reads the partition of one release but still filters by release, so an index-only scan needs the column.
    Index("localities_municipio_id_position_idx", "release_id", "municipio_id", "position"),
    Index("localities_clave_position_idx", "release_id", "clave", "position"),
    Index("localities_ambito_position_idx", "release_id", "ambito", "position"),
    Index("localities_folded_idx", "release_id", "folded", "municipio_id", "prominence", "id"),
    Index("localities_point_idx", text("point(longitud, latitud)"), postgresql_using="gist"),
    postgresql_partition_by="LIST (release_id)",
)


def partition_of(release_id: int) -> str:
    """Return the name of the table that has the localities of a release."""
    return f"localities_r{release_id}"
