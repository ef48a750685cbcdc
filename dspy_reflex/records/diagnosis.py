"""What a program said about one failure."""

from __future__ import annotations

from pydantic import Field

from dspy_reflex.records.record import Record

PERSON = "person"
"""The program of a diagnosis that a person made; its model is then their name."""


class Mechanism(Record):
    """What groups failures, proposals and verdicts: why it happened, what was seen, and the masked text."""

    root_cause: str | None
    """Label of the taxonomy; None when nothing could be decided."""
    symptom: str
    """What was seen, from a closed list (see `mechanism`)."""
    signature: str
    """The failure's outcome with numbers, ids, paths and names masked: equal for repeats of one failure."""


class Diagnosis(Record):
    """A root cause with confidence, evidence, and the program and model that said so."""

    failure_id: str
    """The failure diagnosed."""
    root_cause: str | None
    """Label of the taxonomy; None when the model refused or could not be understood."""
    second: str | None = None
    """The next best label, if the program named one."""
    confidence: float = Field(ge=0.0, le=1.0)
    """How probable the program holds `root_cause`, in [0, 1]; calibrated where it was, on the model it was compiled for."""
    needs_review: bool
    """True when a person should look before anything is built on this."""
    review_reason: str = ""
    """Why a person should look; empty when `needs_review` is False."""
    reasoning: str = ""
    """The program's short argument."""
    evidence: tuple[str, ...] = ()
    """Quotes that occur word for word in the failure; others were dropped."""
    symptom: str
    """What was seen, from a closed list."""
    signature: str
    """Masked text of the outcome."""
    program: str
    """Name and version of the program, as `root_cause@0a1b2c3d4e5f`."""
    model: str
    """The model that ran it."""
    score: str
    """What the program scored, where, on how many; `unmeasured` when nobody measured it with this model."""

    @property
    def mechanism(self) -> Mechanism:
        """Cause, symptom and signature together."""
        return Mechanism(root_cause=self.root_cause, symptom=self.symptom, signature=self.signature)
