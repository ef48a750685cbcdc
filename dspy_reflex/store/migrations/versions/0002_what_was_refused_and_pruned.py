"""What was refused, so that it is not asked for again, and what was pruned, so that it is not counted again."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "refusals",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("root_cause", sa.String(length=80), nullable=False),
        sa.Column("symptom", sa.String(length=80), nullable=False),
        sa.Column("program", sa.String(length=200), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("refusals_by_program", "refusals", ["program", "model"], unique=False)
    op.create_table(
        "refusal_failures",
        sa.Column("refusal_id", sa.String(length=40), nullable=False),
        sa.Column("failure_id", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(["refusal_id"], ["refusals.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("refusal_id", "failure_id"),
    )
    op.create_index("refusals_by_failure", "refusal_failures", ["failure_id"], unique=False)
    op.create_table(
        "pruned",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_with_rowid=False,
    )
