"""The audit trail: every change of state, in the transaction that makes it."""

from __future__ import annotations

from sqlalchemy import Connection, select

from dspy_reflex.clock import now
from dspy_reflex.ids import new_id
from dspy_reflex.records.review import AuditLine
from dspy_reflex.store.rows import told
from dspy_reflex.store.schema import audit


def note(
    connection: Connection,
    subject: str,
    action: str,
    *,
    actor: str,
    reason: str = "",
    before: str | None = None,
    after: str | None = None,
) -> None:
    """Write one line."""
    line = {"subject": subject, "action": action, "actor": actor, "reason": reason, "before": before, "after": after}
    connection.execute(audit.insert().values(id=new_id("aud"), at=now(), **line))


def trail(connection: Connection, subject: str) -> list[AuditLine]:
    """What happened to one thing, oldest first."""
    found = connection.execute(select(audit).where(audit.c.subject == subject).order_by(audit.c.id))
    return [AuditLine.model_validate(told(row)) for row in found]
