"""How often the pointer has been set, and how much changed from each release to the next.

Releases that are there already are compared, a second or two each; readers wait for none of it.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: None = None
depends_on: None = None

_KINDS = ("added", "removed", "renamed", "relocated", "updated")
_COLUMNS = (
    "id, nombre, latitud, longitud, ambito, altitud, carta, poblacion, poblacion_masculina, poblacion_femenina,"
    " viviendas"
)
_COMPARE = f"""
INSERT INTO comparisons
SELECT pairs.id, pairs.previous_id, counts.*
  FROM (SELECT id, lag(id) OVER (ORDER BY id) AS previous_id
          FROM releases WHERE retired_at IS NULL AND name <> 'demo') AS pairs
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE old.id IS NULL),
              count(*) FILTER (WHERE new.id IS NULL),
              count(*) FILTER (WHERE new.nombre <> old.nombre),
              count(*) FILTER (WHERE new.id = old.id
                               AND (new.latitud, new.longitud) IS DISTINCT FROM (old.latitud, old.longitud)),
              count(*) FILTER (WHERE new.id = old.id
                               AND (new.ambito, new.altitud, new.carta, new.poblacion, new.poblacion_masculina,
                                    new.poblacion_femenina, new.viviendas)
                                   IS DISTINCT FROM
                                   (old.ambito, old.altitud, old.carta, old.poblacion, old.poblacion_masculina,
                                    old.poblacion_femenina, old.viviendas))
         FROM (SELECT {_COLUMNS} FROM localities WHERE release_id = pairs.previous_id) AS old
         FULL JOIN (SELECT {_COLUMNS} FROM localities WHERE release_id = pairs.id) AS new USING (id)) AS counts
 WHERE pairs.previous_id IS NOT NULL
"""


def upgrade() -> None:
    """Add the table, fill it, and only then take the lock that the column needs."""
    op.create_table(
        "comparisons",
        sa.Column("release_id", sa.Integer, nullable=False),
        sa.Column("previous_id", sa.Integer, nullable=False, comment="The release before it, of those that stand"),
        *(sa.Column(kind, sa.Integer, nullable=False) for kind in _KINDS),
        sa.PrimaryKeyConstraint("release_id", name="comparisons_pkey"),
        *(
            sa.ForeignKeyConstraint([column], ["releases.id"], name=f"comparisons_{column}_fkey", ondelete="CASCADE")
            for column in ("release_id", "previous_id")
        ),
        comment="How many localities changed from a release to the next, by kind: counted once, by the importer",
    )
    op.execute(_COMPARE)
    op.add_column(
        "current_release",
        sa.Column(
            "publication",
            sa.Integer,
            nullable=False,
            server_default=sa.text("1"),
            comment="How many times the pointer has been set: a server that shows a lower number is behind",
        ),
    )


def downgrade() -> None:
    """Drop both."""
    op.drop_column("current_release", "publication")
    op.drop_table("comparisons")
