"""Which localities changed from a release to the next; before, only their numbers were stored.

The columns stay empty for the releases before, whose changes are still found by comparing. An earlier version of the
service may keep running. When it retires a release, it writes `previous_id` and leaves these two columns as they are,
so the changes need a column that says which release they begin from.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Add the columns, empty."""
    op.add_column(
        "comparisons", sa.Column("changes_since", sa.Integer, comment="The release that `changes` begin from")
    )
    op.add_column(
        "comparisons",
        sa.Column("changes", sa.LargeBinary, comment="Kind and id of each change, as four-byte integers (packed.py)"),
    )
    # Compression would halve the changes, but take a tenth as long as comparing.
    op.execute("ALTER TABLE comparisons ALTER COLUMN changes SET STORAGE EXTERNAL")


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("comparisons", "changes")
    op.drop_column("comparisons", "changes_since")
