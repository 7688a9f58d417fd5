"""Search: folded names, prominence, the words there are, and the indexes that filters, search and maps need.

Releases that are published already are completed in place; while that runs, readers wait for the locks it takes.
"""

import sqlalchemy as sa
from alembic import context, op

from localidades_api.catalogue.folding import fold

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: None = None
depends_on: None = None

_INDEXES = {
    "municipio_id_position": "(release_id, municipio_id, position)",
    "clave_position": "(release_id, clave, position)",
    "ambito_position": "(release_id, ambito, position)",
    "folded": "(release_id, folded, municipio_id, prominence, id)",
    "words": "USING gin (array_to_tsvector(string_to_array(folded, ' ')))",
    "point": "USING gist (point(longitud, latitud))",
}


def upgrade() -> None:
    """Add the columns, fill them, and index them."""
    op.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    op.create_table(
        "words",
        sa.Column("word", sa.Text(collation="C"), nullable=False),
        sa.PrimaryKeyConstraint("word", name="words_pkey"),
        comment="Every word that a folded name of any release has had: what a mistyped one is held against",
    )
    op.create_index(
        "words_trigrams_idx", "words", ["word"], postgresql_using="gin", postgresql_ops={"word": "gin_trgm_ops"}
    )
    op.add_column("municipalities", sa.Column("localities", sa.Integer, comment="How many it has"))
    op.add_column(
        "localities",
        sa.Column("folded", sa.Text(collation="C"), comment="The name as people type it (folding.py)"),
    )
    op.add_column(
        "localities",
        sa.Column("prominence", sa.Integer, comment="Place by population, from 1; unknown ones last"),
    )
    if not context.is_offline_mode():
        _complete_published()
    op.alter_column("municipalities", "localities", nullable=False)
    op.alter_column("localities", "folded", nullable=False)
    op.alter_column("localities", "prominence", nullable=False)
    for name, definition in _INDEXES.items():
        op.execute(f"CREATE INDEX localities_{name}_idx ON localities {definition}")


def downgrade() -> None:
    """Drop them; the extension stays, since others may use it."""
    for name in _INDEXES:
        op.execute(f"DROP INDEX localities_{name}_idx")
    op.drop_column("localities", "prominence")
    op.drop_column("localities", "folded")
    op.drop_column("municipalities", "localities")
    op.drop_table("words")


def _complete_published() -> None:
    """Fill the columns of the releases there are, one after another."""
    connection = op.get_bind()
    for (release_id,) in connection.execute(sa.text("SELECT id FROM releases ORDER BY id")).all():
        _complete(connection, f"localities_r{release_id}")
    connection.execute(
        sa.text(
            """
            UPDATE municipalities AS m SET localities = coalesce(c.localities, 0)
              FROM municipalities AS same
                   LEFT JOIN (SELECT release_id, municipio_id, count(*) AS localities
                                FROM localities GROUP BY release_id, municipio_id) AS c
                          ON c.release_id = same.release_id AND c.municipio_id = same.id
             WHERE m.release_id = same.release_id AND m.id = same.id
            """
        )
    )


def _complete(connection: sa.Connection, partition: str) -> None:
    names = connection.execute(sa.text(f"SELECT DISTINCT nombre FROM {partition}")).scalars().all()
    connection.execute(
        sa.text(
            f"""
            UPDATE {partition} AS l SET folded = f.folded, prominence = p.prominence
              FROM unnest(CAST(:names AS text[]), CAST(:folded AS text[])) AS f (nombre, folded),
                   (SELECT id, row_number() OVER (ORDER BY poblacion DESC NULLS LAST, position) AS prominence
                      FROM {partition}) AS p
             WHERE f.nombre = l.nombre AND p.id = l.id
            """
        ),
        {"names": list(names), "folded": [fold(name) for name in names]},
    )
    connection.execute(
        sa.text(
            f"INSERT INTO words SELECT DISTINCT unnest(string_to_array(folded, ' ')) FROM {partition}"
            " ON CONFLICT DO NOTHING"
        )
    )
    connection.execute(sa.text(f"ANALYZE {partition}"))
