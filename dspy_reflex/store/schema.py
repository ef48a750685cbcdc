"""The tables. One shape for SQLite and PostgreSQL; `migrations/` brings an older store to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    false,
)

from dspy_reflex.store.text import SafeText, from_json, to_json

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Moment(TypeDecorator[datetime]):
    """A time with a zone, kept as whole microseconds since 1970 in UTC: the same order and digits on every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """To the database."""
        return None if value is None else micros(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        """From the database."""
        return None if value is None else moment(value)


class Json(TypeDecorator[Any]):
    """A JSON value as text, for what is read as a whole and never searched."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """To the database."""
        return None if value is None else to_json(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """From the database."""
        return None if value is None else from_json(value)


def micros(at: datetime) -> int:
    """Whole microseconds since 1970."""
    return (at - EPOCH) // MICROSECOND


def moment(at_us: int) -> datetime:
    """The time so many microseconds after 1970."""
    return EPOCH + at_us * MICROSECOND


metadata = MetaData()

outcomes = Table(
    "outcomes",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("agent_id", SafeText, nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("task", SafeText),
    Column("expected_outcome", SafeText),
    Column("actual_outcome", SafeText),
    Column("severity", String(8)),
    Column("context", Json),
    Column("redacted", Json),
    Index("outcomes_by_agent", "agent_id", "at"),
    Index("outcomes_by_time", "at"),
)
"""Every finished run. One that failed (`ok` false) is a failure and has the columns after `task`."""

agents = Table(
    "agents",
    metadata,
    Column("agent_id", SafeText, primary_key=True),
    Column("parent_agent_id", SafeText),
)
"""Who reports to whom, as last heard."""

spool = Table(
    "spool",
    metadata,
    Column("file", String(255), primary_key=True),
    Column("offset", BigInteger, nullable=False),
)
"""How far each spool file was taken in. It moves in the transaction that takes the events in, so none comes twice."""

quarantine = Table(
    "quarantine",
    metadata,
    Column("file", String(255), primary_key=True),
    Column("offset", BigInteger, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("reason", Text, nullable=False),
    Column("excerpt", SafeText, nullable=False),
)
"""What could not be read, and where it was."""

daily_outcomes = Table(
    "daily_outcomes",
    metadata,
    Column("day", Integer, primary_key=True),
    Column("agent_id", SafeText, primary_key=True),
    Column("severity", String(8), primary_key=True),
    Column("n", BigInteger, nullable=False),
)
"""Counts by day since 1970 in UTC; an outcome that was good has the severity `ok`, one that was lost `lost`.
They outlive the outcomes."""

daily_causes = Table(
    "daily_causes",
    metadata,
    Column("day", Integer, primary_key=True),
    Column("agent_id", SafeText, primary_key=True),
    Column("root_cause", String(80), primary_key=True),
    Column("severity", String(8), primary_key=True),
    Column("n", BigInteger, nullable=False),
)
"""Diagnosed failures by day of the failure and by its current root cause; empty for those that got none."""

diagnoses = Table(
    "diagnoses",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("failure_id", String(200), nullable=False),
    Column("at", Moment, nullable=False),
    Column("root_cause", String(80)),
    Column("confidence", Float, nullable=False),
    Column("needs_review", Boolean, nullable=False),
    Column("symptom", String(80), nullable=False),
    Column("signature", SafeText, nullable=False),
    Column("program", String(200), nullable=False),
    Column("model", String(200), nullable=False),
    Column("current", Boolean, nullable=False),
    Column("again", Boolean, nullable=False, server_default=false()),
    Column("question", String(32)),
    Column("body", Json, nullable=False),
    Index("diagnoses_by_failure", "failure_id", "program", "model"),
    Index("diagnoses_by_question", "question", "program"),
    Index("diagnoses_by_mechanism", "root_cause", "symptom", "current"),
)
"""What was said about each failure. One is current; those made by a fall-back model are to be made `again`.
Failures that repeat each other have one `question`, a hash of what was asked, and one answer."""

proposals = Table(
    "proposals",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("state", String(10), nullable=False),
    Column("agent_id", SafeText, nullable=False),
    Column("root_cause", String(80), nullable=False),
    Column("symptom", String(80), nullable=False),
    Column("component", String(10), nullable=False),
    Column("file", SafeText, nullable=False),
    Column("rule", SafeText, nullable=False),
    Column("severity", String(8), nullable=False),
    Column("confidence", Float, nullable=False),
    Column("base", String(64), nullable=False),
    Column("approval", String(64)),
    Column("body", Json, nullable=False),
    Index("proposals_by_state", "state", "at"),
)
"""Rules on their way; `rule` is the text as it stands after an edit, `approval` the hash of what was approved."""

proposal_failures = Table(
    "proposal_failures",
    metadata,
    Column("proposal_id", String(40), ForeignKey("proposals.id"), primary_key=True),
    Column("failure_id", String(200), primary_key=True),
    Index("proposals_by_failure", "failure_id"),
)
"""What each rule was proposed for."""

reviews = Table(
    "reviews",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("proposal_id", String(40), ForeignKey("proposals.id"), nullable=False, index=True),
    Column("at", Moment, nullable=False),
    Column("by", SafeText, nullable=False),
    Column("action", String(10), nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("before", SafeText, nullable=False),
    Column("rule", SafeText, nullable=False),
    Column("correction", Json),
    Column("policy", SafeText),
)
"""What people, or a policy of theirs, said of a proposal; `before` is the rule that they were shown."""

patches = Table(
    "patches",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("proposal_id", String(40), ForeignKey("proposals.id"), nullable=False, index=True),
    Column("at", Moment, nullable=False),
    Column("by", SafeText, nullable=False),
    Column("action", String(10), nullable=False),
    Column("file", SafeText, nullable=False, index=True),
    Column("before_sha256", String(64), nullable=False),
    Column("after_sha256", String(64), nullable=False),
    Column("body", Json, nullable=False),
)
"""Edits of rule files, `apply` and `revert`, oldest first by id."""

lessons = Table(
    "lessons",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("proposal_id", String(40), nullable=False, index=True),
    Column("kind", String(10), nullable=False),
    Column("agent_id", SafeText, nullable=False),
    Column("root_cause", String(80), nullable=False),
    Column("symptom", String(80), nullable=False),
    Column("rule", SafeText, nullable=False),
    Column("reason", SafeText, nullable=False),
    Index("lessons_by_mechanism", "root_cause", "symptom"),
)
"""What came of rules: kept, rejected, reverted. What was rejected or reverted is not proposed again."""

refusals = Table(
    "refusals",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("agent_id", SafeText, nullable=False),
    Column("root_cause", String(80), nullable=False),
    Column("symptom", String(80), nullable=False),
    Column("program", String(200), nullable=False),
    Column("model", String(200), nullable=False),
    Column("rule", SafeText, nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("body", Json),
    Index("refusals_by_program", "program", "model"),
)
"""What a program said that could not be filed, and why. `body` is the proposal, if nothing but other rules was against
it: it is looked at again. The program is not asked again about these failures."""

refusal_failures = Table(
    "refusal_failures",
    metadata,
    Column("refusal_id", String(40), ForeignKey("refusals.id", ondelete="CASCADE"), primary_key=True),
    Column("failure_id", String(200), primary_key=True),
    Index("refusals_by_failure", "failure_id"),
)
"""What each of them was said about."""

verdicts = Table(
    "verdicts",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("proposal_id", String(40), ForeignKey("proposals.id"), nullable=False, index=True),
    Column("at", Moment, nullable=False),
    Column("verdict", String(12), nullable=False),
    Column("body", Json, nullable=False),
)
"""Whether a rule helped, as it looked at the time."""

audit = Table(
    "audit",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("actor", SafeText, nullable=False),
    Column("subject", String(200), nullable=False, index=True),
    Column("action", String(20), nullable=False),
    Column("before", String(20)),
    Column("after", String(20)),
    Column("reason", SafeText, nullable=False),
)
"""Who moved what from where to where, when and why. Never changed, never pruned."""

tombstones = Table(
    "tombstones",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("by", SafeText, nullable=False),
    Column("reason", SafeText, nullable=False),
)
"""What was forgotten. It is not taken in again."""

pruned = Table(
    "pruned",
    metadata,
    Column("id", String(200), primary_key=True),
    sqlite_with_rowid=False,
)
"""What was removed because it was old. It is counted already, so it is not taken in again either."""

spending = Table(
    "spending",
    metadata,
    Column("day", Integer, primary_key=True),
    Column("model", String(200), primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("usd", Float, nullable=False),
)
"""What models were paid, by day."""
