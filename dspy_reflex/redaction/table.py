"""The table: every kind that is redacted, in the order in which it is looked for.

Shapes and names, not entropy: logs are full of hashes and ids that are nobody's secret. Keys come before what is told
by a name, so that a mark says which key it was. Patterns are ASCII, bounded or possessive: linear in the text.
"""

from __future__ import annotations

from dspy_reflex.redaction.keys import KEYS
from dspy_reflex.redaction.kind import Kind
from dspy_reflex.redaction.named import NAMED
from dspy_reflex.redaction.personal import PERSONAL

TABLE: tuple[Kind, ...] = (*KEYS, *NAMED, *PERSONAL)
