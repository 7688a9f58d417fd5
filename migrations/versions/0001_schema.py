"""The schema: releases, the pointer to the current one, their places, comparisons and the log of publications."""

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Create the tables and their indexes."""
    op.create_table(
        "releases",
        sa.Column("id", sa.Integer, sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False, comment="Name of the file that was imported"),
        sa.Column("sha256", sa.Text, nullable=False, comment="Digest of that file, in hexadecimal"),
        sa.Column("states", sa.Integer, nullable=False),
        sa.Column("municipalities", sa.Integer, nullable=False),
        sa.Column("localities", sa.Integer, nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.clock_timestamp()),
        sa.Column(
            "retired_at",
            sa.DateTime(timezone=True),
            comment="Set while a release is being removed: readers no longer see it",
        ),
        sa.PrimaryKeyConstraint("id", name="releases_pkey"),
        sa.UniqueConstraint("name", name="releases_name_key"),
    )
    op.create_table(
        "current_release",
        sa.Column("singleton", sa.Boolean, server_default=sa.true(), nullable=False),
        sa.Column("release_id", sa.Integer, nullable=False),
        sa.Column(
            "publication",
            sa.Integer,
            nullable=False,
            server_default=sa.text("1"),
            comment="How many times the pointer has been set: a server that shows a lower number is behind",
        ),
        sa.PrimaryKeyConstraint("singleton", name="current_release_pkey"),
        sa.ForeignKeyConstraint(["release_id"], ["releases.id"], name="current_release_release_id_fkey"),
        sa.CheckConstraint("singleton", name="one_row"),
        comment="The pointer: publishing a release is moving it",
    )
    op.create_table(
        "publications",
        sa.Column(
            "number", sa.Integer, nullable=False, autoincrement=False, comment="As in current_release.publication"
        ),
        sa.Column("release", sa.Text, nullable=False, comment="Names stay here when their releases are retired"),
        sa.Column("previous", sa.Text),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.clock_timestamp()),
        sa.Column("action", sa.Text, nullable=False, comment="import, or publish for the command"),
        sa.Column("role", sa.Text, nullable=False, server_default=sa.text("SESSION_USER")),
        sa.Column("account", sa.Text, nullable=False, comment="user@host, as the command's machine says"),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("number", name="publications_pkey"),
        comment="The log of publications: a row for each time that the pointer was set",
    )
    op.create_table(
        "comparisons",
        sa.Column("release_id", sa.Integer, nullable=False),
        sa.Column("previous_id", sa.Integer, nullable=False, comment="The release before it that is not retired"),
        sa.Column("added", sa.Integer, nullable=False),
        sa.Column("removed", sa.Integer, nullable=False),
        sa.Column("renamed", sa.Integer, nullable=False),
        sa.Column("relocated", sa.Integer, nullable=False),
        sa.Column("updated", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("release_id", name="comparisons_pkey"),
        sa.ForeignKeyConstraint(
            ["release_id"], ["releases.id"], name="comparisons_release_id_fkey", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["previous_id"], ["releases.id"], name="comparisons_previous_id_fkey", ondelete="CASCADE"
        ),
        comment="How many localities changed from a release to the next, by kind: counted once, by the importer",
    )
    op.create_table(
        "pending_seed",
        sa.Column("singleton", sa.Boolean, server_default=sa.true(), nullable=False),
        sa.PrimaryKeyConstraint("singleton", name="pending_seed_pkey"),
        sa.CheckConstraint("singleton", name="one_row"),
        comment="A row while the seed migration has run and no catalogue has been loaded yet",
    )
    op.create_table(
        "states",
        sa.Column("release_id", sa.Integer, nullable=False),
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("clave", sa.Text(collation="C"), nullable=False),
        sa.Column("nombre", sa.Text, nullable=False),
        sa.Column("abreviatura", sa.Text),
        sa.PrimaryKeyConstraint("release_id", "id", name="states_pkey"),
        sa.ForeignKeyConstraint(["release_id"], ["releases.id"], name="states_release_id_fkey"),
    )
    op.create_table(
        "municipalities",
        sa.Column("release_id", sa.Integer, nullable=False),
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("estado_id", sa.Integer, nullable=False),
        sa.Column("clave", sa.Text(collation="C"), nullable=False),
        sa.Column("nombre", sa.Text, nullable=False),
        sa.Column("localities", sa.Integer, nullable=False, comment="How many it has"),
        sa.PrimaryKeyConstraint("release_id", "id", name="municipalities_pkey"),
        sa.ForeignKeyConstraint(
            ["release_id", "estado_id"],
            ["states.release_id", "states.id"],
            name="municipalities_release_id_estado_id_fkey",
        ),
    )
    op.create_table(
        "localities",
        sa.Column("release_id", sa.Integer, nullable=False),
        sa.Column(
            "position", sa.Integer, nullable=False, comment="Place in the list of the release, from 1: clave, then id"
        ),
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("municipio_id", sa.Integer, nullable=False),
        sa.Column("clave", sa.Text(collation="C"), nullable=False),
        sa.Column("nombre", sa.Text, nullable=False, comment="As published, to the byte"),
        sa.Column("ambito", sa.Text(collation="C"), comment="U (urban) or R (rural)"),
        sa.Column("latitud", sa.Double, comment="Degrees north"),
        sa.Column("longitud", sa.Double, comment="Degrees east: negative in Mexico"),
        sa.Column("altitud", sa.Integer, comment="Metres above sea level"),
        sa.Column("carta", sa.Text, comment="Key of the topographic map 1:50 000"),
        sa.Column("poblacion", sa.Integer),
        sa.Column("poblacion_masculina", sa.Integer),
        sa.Column("poblacion_femenina", sa.Integer),
        sa.Column("viviendas", sa.Integer, comment="Inhabited dwellings"),
        sa.Column("folded", sa.Text(collation="C"), nullable=False, comment="The name as people type it (folding.py)"),
        sa.Column("prominence", sa.Integer, nullable=False, comment="Place by population, from 1; unknown ones last"),
        sa.PrimaryKeyConstraint("release_id", "id", name="localities_pkey"),
        sa.UniqueConstraint("release_id", "position", name="localities_release_id_position_key"),
        sa.ForeignKeyConstraint(
            ["release_id", "municipio_id"],
            ["municipalities.release_id", "municipalities.id"],
            name="localities_release_id_municipio_id_fkey",
        ),
        postgresql_partition_by="LIST (release_id)",
    )
    for name, columns in (
        ("municipio_id_position", ["release_id", "municipio_id", "position"]),
        ("clave_position", ["release_id", "clave", "position"]),
        ("ambito_position", ["release_id", "ambito", "position"]),
        ("folded", ["release_id", "folded", "municipio_id", "prominence", "id"]),
    ):
        op.create_index(f"localities_{name}_idx", "localities", columns)
    op.create_index(
        "localities_point_idx", "localities", [sa.text("point(longitud, latitud)")], postgresql_using="gist"
    )


def downgrade() -> None:
    """Drop the tables, and with them every release."""
    for table in (
        "localities",
        "municipalities",
        "states",
        "pending_seed",
        "comparisons",
        "publications",
        "current_release",
        "releases",
    ):
        op.drop_table(table)
