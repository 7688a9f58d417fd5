"""Drop the index of the words of names: searches read the index outside the database (docs/decisions/names.md)."""

from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Drop the index, in every partition."""
    op.execute("DROP INDEX localities_words_idx")


def downgrade() -> None:
    """Build it again."""
    op.execute(
        "CREATE INDEX localities_words_idx ON localities"
        " USING gin (array_to_tsvector(string_to_array(folded, ' '::text)))"
    )
