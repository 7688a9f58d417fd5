"""Retirement: when a release was withdrawn from readers, while its rows are still to be removed."""

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: None = None
depends_on: None = None

_COMMENT = "Set while a release is being removed: readers are shown it no more"


def upgrade() -> None:
    """Add the mark."""
    op.add_column("releases", sa.Column("retired_at", sa.DateTime(timezone=True), comment=_COMMENT))


def downgrade() -> None:
    """Drop it; a release that was being removed is shown again, without what has been removed."""
    op.drop_column("releases", "retired_at")
