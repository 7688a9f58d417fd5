"""Publications: how often the pointer has been set, by which a server that is behind is known."""

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: None = None
depends_on: None = None

_COMMENT = "How many times the pointer has been set: a server that shows a lower number is behind"


def upgrade() -> None:
    """Add the number."""
    op.add_column(
        "current_release",
        sa.Column("publication", sa.Integer, nullable=False, server_default=sa.text("1"), comment=_COMMENT),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_column("current_release", "publication")
