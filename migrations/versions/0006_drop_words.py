"""Drop the words that mistyped ones were held against: the index of names has them (docs/decisions/names.md)."""

import sqlalchemy as sa
from alembic import context, op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Drop the table; the extension stays, since others may use it."""
    op.drop_table("words")


def downgrade() -> None:
    """Make and fill it again."""
    op.create_table(
        "words",
        sa.Column("word", sa.Text(collation="C"), nullable=False),
        sa.PrimaryKeyConstraint("word", name="words_pkey"),
        comment="Every word that a folded name of any release has had: what a mistyped one is held against",
    )
    op.create_index(
        "words_trigrams_idx", "words", ["word"], postgresql_using="gin", postgresql_ops={"word": "gin_trgm_ops"}
    )
    if not context.is_offline_mode():
        op.execute("INSERT INTO words SELECT DISTINCT unnest(string_to_array(folded, ' ')) FROM localities")
