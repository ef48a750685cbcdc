"""Where a rule's words come from: not from the failure's own text, which anybody may have written, and not from a vault."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dspy_reflex.redaction.redact import redact
from dspy_reflex.rule_lint.leaks import leaks
from dspy_reflex.rule_lint.problem import Problem
from dspy_reflex.untrusted import neutralise

_ID = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b|\b(?=[a-f]*\d)[0-9a-f]{12,}\b"
    r"|\b\d{7,}\b|\w{40,}|\b[A-Za-z]{2,}[-_][A-Za-z0-9]*\d{4,}\b",
)
"""UUIDs, ULIDs, hashes, long numbers, what is too long for a word, and names that end in a number of four digits."""
_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,15}:/{1,2}\S|\.\.[/\\]|~/|(?<!\w)/(?:etc|root|home|proc|dev|var|usr|bin)/|\bwww\.\w|\b(?:data|javascript):\S|\b\d{1,3}(?:\.\d{1,3}){3}\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"\$\(|\$\{|`[^`]*\s[^`]*`|&&|\|\|?\s*(?:sh|bash|zsh|python\d?|perl|sudo|tee|xargs)\b|>\s*/|\b(?:rm|cp|mv)\s+-\w|;\s*(?:rm|curl|wget)\s"
    r"|\b(?:sudo|chmod|chown|eval|wget|netcat|mkfifo|nohup|base64 -d|crontab|ssh-add|iwr|invoke-\w+)\b|\bcurl\s+\S|\bnc\s+-"
    r"|\b(?:drop|truncate|alter)\s+table\b|\bunion\s+select\b|\b(?:os\.system|subprocess|__import__|exec)\b\s*[.(]",
    re.IGNORECASE,
)


def secret(rule: str) -> Problem | None:
    """No secret and no personal data, invisible characters in it or not."""
    counts = {**redact(rule)[1], **redact(neutralise(rule))[1]}
    if not counts:
        return None
    return Problem(
        "secret", f"Take out what looks like {', '.join(name.replace('_', ' ') for name in sorted(counts))}."
    )


def identifier(rule: str) -> Problem | None:
    """No id: it would be of one event."""
    if not _ID.search(rule):
        return None
    return Problem("identifier", "Leave out ids, hashes and long numbers: a rule is for the next event, too.")


def address(rule: str) -> Problem | None:
    """No URL, no IP address and no path out of the agent's folder: an agent would follow it."""
    if not _ADDRESS.search(rule):
        return None
    return Problem("address", "Leave out URLs, IP addresses and system paths; name the place in words.")


def command(rule: str) -> Problem | None:
    """Nothing that a shell, an interpreter or a database would run."""
    if not _COMMAND.search(rule):
        return None
    return Problem("command", "Say in words what to do; a rule holds no commands.")


def copied(rule: str, sources: Iterable[str]) -> Problem | None:
    """No piece of the failures it was proposed for: names, numbers, paths, quotations, runs of words."""
    found = list(dict.fromkeys(piece for source in sources for piece in leaks(rule, source, ())))
    if not found:
        return None
    return Problem("copied", f"Say it generally; it copies from the failure: {', '.join(found[:3])}.")
