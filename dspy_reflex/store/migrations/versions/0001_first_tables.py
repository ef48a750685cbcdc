"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "agents",
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("parent_agent_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("agent_id"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("action", sa.String(length=20), nullable=False),
        sa.Column("before", sa.String(length=20), nullable=True),
        sa.Column("after", sa.String(length=20), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_audit_subject"), "audit", ["subject"], unique=False)
    op.create_table(
        "daily_causes",
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("root_cause", sa.String(length=80), nullable=False),
        sa.Column("severity", sa.String(length=8), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day", "agent_id", "root_cause", "severity"),
    )
    op.create_table(
        "daily_outcomes",
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("severity", sa.String(length=8), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day", "agent_id", "severity"),
    )
    op.create_table(
        "diagnoses",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("failure_id", sa.String(length=200), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("root_cause", sa.String(length=80), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("needs_review", sa.Boolean(), nullable=False),
        sa.Column("symptom", sa.String(length=80), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("program", sa.String(length=200), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.Column("again", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("question", sa.String(length=32), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("diagnoses_by_failure", "diagnoses", ["failure_id", "program", "model"], unique=False)
    op.create_index("diagnoses_by_question", "diagnoses", ["question", "program"], unique=False)
    op.create_index("diagnoses_by_mechanism", "diagnoses", ["root_cause", "symptom", "current"], unique=False)
    op.create_table(
        "lessons",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("proposal_id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("root_cause", sa.String(length=80), nullable=False),
        sa.Column("symptom", sa.String(length=80), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_lessons_proposal_id"), "lessons", ["proposal_id"], unique=False)
    op.create_index("lessons_by_mechanism", "lessons", ["root_cause", "symptom"], unique=False)
    op.create_table(
        "outcomes",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("ok", sa.Boolean(), nullable=False),
        sa.Column("task", sa.Text(), nullable=True),
        sa.Column("expected_outcome", sa.Text(), nullable=True),
        sa.Column("actual_outcome", sa.Text(), nullable=True),
        sa.Column("severity", sa.String(length=8), nullable=True),
        sa.Column("context", sa.Text(), nullable=True),
        sa.Column("redacted", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("outcomes_by_agent", "outcomes", ["agent_id", "at"], unique=False)
    op.create_index("outcomes_by_time", "outcomes", ["at"], unique=False)
    op.create_table(
        "proposals",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("root_cause", sa.String(length=80), nullable=False),
        sa.Column("symptom", sa.String(length=80), nullable=False),
        sa.Column("component", sa.String(length=10), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("severity", sa.String(length=8), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("base", sa.String(length=64), nullable=False),
        sa.Column("approval", sa.String(length=64), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("proposals_by_state", "proposals", ["state", "at"], unique=False)
    op.create_table(
        "quarantine",
        sa.Column("file", sa.String(length=255), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("excerpt", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("file", "offset"),
    )
    op.create_table(
        "spending",
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("usd", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("day", "model"),
    )
    op.create_table(
        "spool",
        sa.Column("file", sa.String(length=255), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("file"),
    )
    op.create_table(
        "tombstones",
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "patches",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("proposal_id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("action", sa.String(length=10), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("before_sha256", sa.String(length=64), nullable=False),
        sa.Column("after_sha256", sa.String(length=64), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["proposal_id"],
            ["proposals.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_patches_file"), "patches", ["file"], unique=False)
    op.create_index(op.f("ix_patches_proposal_id"), "patches", ["proposal_id"], unique=False)
    op.create_table(
        "proposal_failures",
        sa.Column("proposal_id", sa.String(length=40), nullable=False),
        sa.Column("failure_id", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(
            ["proposal_id"],
            ["proposals.id"],
        ),
        sa.PrimaryKeyConstraint("proposal_id", "failure_id"),
    )
    op.create_index("proposals_by_failure", "proposal_failures", ["failure_id"], unique=False)
    op.create_table(
        "reviews",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("proposal_id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("action", sa.String(length=10), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("correction", sa.Text(), nullable=True),
        sa.Column("policy", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["proposal_id"],
            ["proposals.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_reviews_proposal_id"), "reviews", ["proposal_id"], unique=False)
    op.create_table(
        "verdicts",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("proposal_id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.String(length=12), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["proposal_id"],
            ["proposals.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_verdicts_proposal_id"), "verdicts", ["proposal_id"], unique=False)
