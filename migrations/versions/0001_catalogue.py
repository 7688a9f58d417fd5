"""The catalogue: releases, the pointer to the current one, estados, municipios and localities."""

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "releases",
        sa.Column("id", sa.Integer, sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False, comment="Name of the file that was imported"),
        sa.Column("sha256", sa.Text, nullable=False, comment="Digest of that file, in hexadecimal"),
        sa.Column("states", sa.Integer, nullable=False),
        sa.Column("municipalities", sa.Integer, nullable=False),
        sa.Column("localities", sa.Integer, nullable=False),
        sa.Column(
            "published_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.clock_timestamp(),
        ),
        sa.PrimaryKeyConstraint("id", name="releases_pkey"),
        sa.UniqueConstraint("name", name="releases_name_key"),
    )
    op.create_table(
        "current_release",
        sa.Column("singleton", sa.Boolean, server_default=sa.true(), nullable=False),
        sa.Column("release_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("singleton", name="current_release_pkey"),
        sa.ForeignKeyConstraint(["release_id"], ["releases.id"], name="current_release_release_id_fkey"),
        sa.CheckConstraint("singleton", name="one_row"),
        comment="The pointer: publishing a release is moving it",
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
            "position",
            sa.Integer,
            nullable=False,
            comment="Place in the list of the release, from 1: clave, then id",
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
        sa.PrimaryKeyConstraint("release_id", "id", name="localities_pkey"),
        sa.UniqueConstraint("release_id", "position", name="localities_release_id_position_key"),
        sa.ForeignKeyConstraint(
            ["release_id", "municipio_id"],
            ["municipalities.release_id", "municipalities.id"],
            name="localities_release_id_municipio_id_fkey",
        ),
        postgresql_partition_by="LIST (release_id)",
    )


def downgrade() -> None:
    """Drop the tables, and with them every release."""
    for table in ("localities", "municipalities", "states", "pending_seed", "current_release", "releases"):
        op.drop_table(table)
