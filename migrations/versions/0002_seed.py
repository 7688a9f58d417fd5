"""The seed: ask for a catalogue to be loaded.

A catalogue is loaded by the importer of today, which needs the schema of today: so this revision only leaves a
note, and `env.py` follows it once every migration of the run is done (docs/decisions/releases.md).
"""

from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Leave the note."""
    op.execute("INSERT INTO pending_seed DEFAULT VALUES")


def downgrade() -> None:
    """Take the note back; what has been published since stays."""
    op.execute("DELETE FROM pending_seed")
