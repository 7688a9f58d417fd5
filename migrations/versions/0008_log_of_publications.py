"""Keep a log of publications; it begins with the next one."""

import sqlalchemy as sa
from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "publications",
        sa.Column(
            "number", sa.Integer, nullable=False, autoincrement=False, comment="As in current_release.publication"
        ),
        sa.Column("release", sa.Text, nullable=False, comment="Names stay here when their releases are retired"),
        sa.Column("previous", sa.Text),
        sa.Column(
            "published_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.clock_timestamp(),
        ),
        sa.Column("action", sa.Text, nullable=False, comment="import, or publish for the command"),
        sa.Column("role", sa.Text, nullable=False, server_default=sa.text("SESSION_USER")),
        sa.Column("account", sa.Text, nullable=False, comment="user@host, as the command's machine says"),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("number", name="publications_pkey"),
        comment="The log of publications: a row for each time that the pointer was set",
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("publications")
