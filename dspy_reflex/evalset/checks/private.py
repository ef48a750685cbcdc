"""Secrets and personal data in the texts: detect-secrets, and what it does not know.

A finding names the kind and the place, never the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.evalset.checks.finding import Finding
from dspy_reflex.evalset.labelled import EvalSet
from dspy_reflex.untrusted import as_text

GUESSES = ("Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector", "IPPublicDetector")
"""Detectors that go by entropy or by a word before it: logs are full of hashes."""
MORE_SECRETS = {
    "Anthropic key": re.compile(r"\bsk-ant-[\w-]{20,}"),
    "OpenAI project key": re.compile(r"\bsk-proj-[\w-]{20,}"),
    "Google API key": re.compile(r"\bAIza[\w-]{35}"),
    "GitHub fine-grained token": re.compile(r"\bgithub_pat_\w{22,}"),
    "Hugging Face token": re.compile(r"\bhf_[A-Za-z]{30,}"),
    "bearer token": re.compile(r"\bBearer\s+[\w.~+/-]{20,}=*"),
}
"""Formats that detect-secrets 1.5 misses."""
MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@([\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,})(?![\w.-]*\w)")
"""An address; `package@1.2.3` is none."""
RESERVED = re.compile(
    r"(?:^|\.)(?:example|invalid|localhost|test|local|internal)(?:\.(?:com|org|net))?$", re.IGNORECASE
)
"""Domains that nobody has (RFC 2606, RFC 6761)."""
PHONE = re.compile(r"(?<![\w.+-])\+\d{1,3}[ .()-]\d[\d .()-]{6,15}\d(?![\w-])")
INVENTED_PHONE = re.compile(r"555[ .-]?01\d\d")
CARD = re.compile(r"(?<![\w.-])(?:\d{4}[ -]){3}\d{4}(?![\w-])|(?<![\w.-])\d{15,16}(?![\w.-])")
IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")


def private(evalset: EvalSet) -> Iterator[Finding]:
    """Everything in a row that could unlock something or names a person's contact."""
    scan = _scanner()
    for rows in evalset.splits.values():
        for row in rows:
            text = "\n".join(as_text(part) for part in (row.failure.model_dump(), row.reference_rule) if part)
            for kind in sorted({*scan(text), *_secrets(text)}):
                yield Finding("secret", "error", row.where, f"contains what looks like a secret ({kind}); replace it")
            for kind in sorted(set(_personal(text))):
                yield Finding(
                    "personal-data", "warning", row.where, f"contains {kind}; replace it with an invented one"
                )


def _secrets(text: str) -> Iterator[str]:
    return (kind for kind, pattern in MORE_SECRETS.items() if pattern.search(text))


def _personal(text: str) -> Iterator[str]:
    luhn, iban = _stdnum()
    if any(not RESERVED.search(match.group(1)) for match in MAIL.finditer(text)):
        yield "an e-mail address outside example.com and its like"
    if any(not INVENTED_PHONE.search(match.group()) for match in PHONE.finditer(text)):
        yield "a telephone number"
    if any(luhn.is_valid(re.sub(r"\D", "", match.group())) for match in CARD.finditer(text)):
        yield "a payment card number"
    if any(iban.is_valid(match.group()) for match in IBAN.finditer(text)):
        yield "a bank account number (IBAN)"


def _scanner() -> Callable[[str], set[str]]:
    """detect-secrets as a function from a text to the kinds of secret in it."""
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


def _stdnum() -> tuple[Any, Any]:
    try:
        from stdnum import iban, luhn
    except ImportError:
        raise MissingExtraError("the search for personal data", "compile") from None
    return luhn, iban
