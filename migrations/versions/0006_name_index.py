"""The index of names of each release, which imports store and every process of the service fetches.

Whoever may read or write `releases` may do the same with this table: a service whose role could not read it would
refuse searches for good.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: None = None
depends_on: None = None

_COPY_RIGHTS = """
DO $$
DECLARE granted record;
BEGIN
    EXECUTE (SELECT format('ALTER TABLE name_index OWNER TO %s', relowner::regrole)
               FROM pg_class WHERE oid = to_regclass('releases'));
    FOR granted IN SELECT privilege_type, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS grantee
                     FROM pg_class CROSS JOIN aclexplode(relacl) WHERE oid = to_regclass('releases')
    LOOP
        EXECUTE format('GRANT %s ON name_index TO %s', granted.privilege_type, granted.grantee);
    END LOOP;
END $$
"""


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "name_index",
        sa.Column("release_id", sa.Integer, nullable=False),
        sa.Column("code", sa.Text, nullable=False, comment="What can read it: format, byte order, version of tantivy"),
        sa.Column("part", sa.Integer, nullable=False, comment="From 0; each but the last has 1 MiB"),
        sa.Column("name", sa.Text, nullable=False, comment="A digest of what the index is made from"),
        sa.Column("sha256", sa.Text, nullable=False, comment="Digest of all parts, in hexadecimal"),
        sa.Column("stored_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.Column("bytes", sa.LargeBinary, nullable=False, comment="Of a tar, compressed with zstd"),
        sa.PrimaryKeyConstraint("release_id", "code", "part", name="name_index_pkey"),
        sa.ForeignKeyConstraint(["release_id"], ["releases.id"], name="name_index_release_id_fkey", ondelete="CASCADE"),
        comment="The index of names of each release, in parts",
    )
    op.execute("ALTER TABLE name_index ALTER COLUMN bytes SET STORAGE EXTERNAL")  # it is compressed
    op.execute(_COPY_RIGHTS)


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("name_index")
