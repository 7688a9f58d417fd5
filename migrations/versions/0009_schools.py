"""Schools: how many a locality has."""

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Add the column; nothing is known of releases that are loaded already."""
    op.add_column("localities", sa.Column("escuelas", sa.Integer, comment="Schools"))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("localities", "escuelas")
