"""The outlines of municipios and estados, from one edition of INEGI's Marco Geoestadístico; empty until an import.

Only the extension `outlines` reads these tables. An edition replaces the one before in one transaction.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "outline_edition",
        sa.Column("singleton", sa.Boolean, server_default=sa.true(), nullable=False),
        sa.Column("name", sa.Text, nullable=False, comment="Such as 2025"),
        sa.Column("source", sa.Text, nullable=False, comment="Name of the file, or address, of the import"),
        sa.Column("sha256", sa.Text, nullable=False, comment="Digest of the outlines, in hexadecimal"),
        sa.Column("municipios", sa.Integer, nullable=False),
        sa.Column("imported_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.clock_timestamp()),
        sa.PrimaryKeyConstraint("singleton", name="outline_edition_pkey"),
        sa.CheckConstraint("singleton", name="one_row"),
        comment="The edition of the outlines, if there are any",
    )
    op.create_table(
        "outlines",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False, comment="Key of a municipio or an estado"),
        sa.Column("nombre", sa.Text, nullable=False, comment="Empty for an estado"),
        sa.Column("geometry", sa.LargeBinary, nullable=False, comment="GeoJSON, compressed with zlib"),
        *(sa.Column(side, sa.Double, nullable=False) for side in ("west", "south", "east", "north")),
        sa.PrimaryKeyConstraint("id", name="outlines_pkey"),
    )
    op.execute("CREATE TABLE outline_rings (municipio_id integer NOT NULL, box box NOT NULL, ring polygon NOT NULL)")
    op.execute(
        "COMMENT ON COLUMN outline_rings.ring IS"
        " 'Outer ring in degrees times 100,000: Postgres takes points within 0.000001 for equal'"
    )
    # GiST's operators for polygons lack @> for points. In a column of its own, a box is read without its ring.
    op.execute("CREATE INDEX outline_rings_box_idx ON outline_rings USING gist (box)")
    # Compressing coordinates saves little, and decompressing a ring takes longer than looking for a point in it.
    op.execute("ALTER TABLE outline_rings ALTER COLUMN ring SET STORAGE EXTERNAL")
    op.execute("ALTER TABLE outlines ALTER COLUMN geometry SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Drop the tables."""
    for table in ("outline_rings", "outlines", "outline_edition"):
        op.drop_table(table)
