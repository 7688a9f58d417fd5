"""The box of a ring is computed from it, and that of an outline goes: nothing reads it."""

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: None = None
depends_on: None = None

_SIDES = ("west", "south", "east", "north")


def upgrade() -> None:
    """Compute the boxes of rings; drop those of outlines."""
    op.drop_column("outline_rings", "box")  # and its index
    op.execute("ALTER TABLE outline_rings ADD box box NOT NULL GENERATED ALWAYS AS (box(ring)) STORED")
    op.execute("CREATE INDEX outline_rings_box_idx ON outline_rings USING gist (box)")
    for side in _SIDES:
        op.drop_column("outlines", side)


def downgrade() -> None:
    """Make the boxes ordinary columns, and remove the outlines, whose boxes are not known."""
    op.execute("TRUNCATE outline_rings, outlines, outline_edition")
    op.execute("ALTER TABLE outline_rings ALTER box DROP EXPRESSION")
    for side in _SIDES:
        op.add_column("outlines", sa.Column(side, sa.Double, nullable=False))
