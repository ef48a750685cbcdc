"""Secrets and personal data in the texts: the table that redaction uses, and detect-secrets as a second opinion.

A finding names the kind and the place, never the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.evalset.checks.finding import Finding
from dspy_reflex.evalset.labelled import EvalSet
from dspy_reflex.redaction.redact import redact
from dspy_reflex.redaction.table import TABLE
from dspy_reflex.untrusted import as_text

GUESSES = ("Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector", "IPPublicDetector")
"""Detectors that go by entropy or by a word before it: logs are full of hashes."""
PERSONAL = frozenset(kind.name for kind in TABLE if kind.personal)
"""Kinds that name somebody and unlock nothing."""


def private(evalset: EvalSet) -> Iterator[Finding]:
    """Everything in a row that could unlock something or names a person's contact."""
    scan = second_opinion()
    for rows in evalset.splits.values():
        for row in rows:
            text = "\n".join(as_text(part) for part in (row.failure.model_dump(), row.reference_rule) if part)
            found = redact(text)[1].keys()
            if secrets := {*scan(text), *found} - PERSONAL:
                yield Finding("secret", "error", row.where, f"contains what looks like {_told(secrets)}; replace it")
            if persons := found & PERSONAL:
                yield Finding(
                    "personal-data", "warning", row.where, f"contains {_told(persons)}; replace it with an invented one"
                )


def _told(kinds: set[str]) -> str:
    return ", ".join(sorted(kind.replace("_", " ") for kind in kinds))


def second_opinion() -> Callable[[str], set[str]]:
    """detect-secrets as a function from a text to the kinds of secret in it.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        from detect_secrets.core.plugins.util import (
            get_mapping_from_secret_type_to_class,
        )
        from detect_secrets.core.scan import scan_line
        from detect_secrets.settings import transient_settings
    except ImportError:
        raise MissingExtraError("the search for secrets", "compile") from None
    classes: Any = get_mapping_from_secret_type_to_class().values()
    chosen: Any = [{"name": one.__name__} for one in classes if one.__name__ not in GUESSES]

    def scan(text: str) -> set[str]:
        with transient_settings({"plugins_used": chosen}):
            return {str(found.type) for line in text.splitlines() for found in scan_line(line)}

    return scan
