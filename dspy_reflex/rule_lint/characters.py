"""A rule is plain text: no character that hides, no markup, nothing that a prompt is built of."""

from __future__ import annotations

import re
import unicodedata

from dspy_reflex.rule_lint.problem import Problem
from dspy_reflex.untrusted import neutralise

_NOBODYS = {"Cn", "Co", "Cs"}
"""General categories of code points that mean nothing, or something else on every machine."""
_ALIKE = ("LATIN", "CYRILLIC", "GREEK")
"""Scripts with letters that look the same: a word of two of them is meant to be misread."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_BLANKS = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")
_MARKUP = re.compile(
    r"^\s*(?:#{1,6}(?:\s|$)|[-*+>|]\s|\d{1,3}[.)]\s|={3,}|-{3,}|\*{3,}|~~~|---)"  # heading, list, quote, table, rule
    r"|[\[\](){}]{3}|\"\s*:\s*[\"{\[]"  # nested brackets, JSON
    r"|```|~~~|<!--|--!?>|<[/!?]?[A-Za-z]|\]\(|!\[|\]:\s|&#?\w{1,31};|\{\{|\}\}|\{%|%\}|\*\*|__\w|\bevt_|\bprop_|\bpatch_"
    r"|\breflex\s*:\s*(?:begin|end)\b",
    re.IGNORECASE | re.MULTILINE,
)
_ROLES = r"(?:system|assistant|user|human|developer|tool|function|ai|agent|model)"
_CHAT = re.compile(
    rf"(?:^|[.;:!?]\s*|\n)\s*[\[(*]*{_ROLES}(?:\s+(?:message|prompt|note|override|notice))?[\])*]*\s*:"
    rf"|<\|[^|]{{0,40}}\|?>|\[/?(?:INST|SYS|{_ROLES})\]|<</?SYS>>|</?s>|\[+\s*#+|#+\s*\]+|###|CUSTOM[-_]TYPE"
    rf"|\"role\"\s*:|\b(?:end|begin|start) of (?:the )?(?:{_ROLES} )?(?:prompt|instructions?|message|rules?|block)\b",
    re.IGNORECASE,
)


def characters(rule: str) -> Problem | None:
    """Every character can be seen and is what it looks like."""
    hidden = neutralise(rule) != rule or any(unicodedata.category(char) in _NOBODYS for char in rule)
    if (
        not hidden
        and not _BLANKS.search(rule)
        and not _piled(rule)
        and not any(_two_scripts(word) for word in _WORD.findall(rule))
    ):
        return None
    return Problem("characters", "Type it anew: it has characters that cannot be seen or are not what they look like.")


def _piled(rule: str) -> bool:
    """Whether more marks stand on one letter than any language needs."""
    return "MMM" in "".join("M" if unicodedata.combining(char) else "-" for char in rule)


def _two_scripts(word: str) -> bool:
    """Whether letters of scripts that look alike are in one word. Full-width and mathematical letters are a script too."""
    if word.isascii():
        return False
    names = [unicodedata.name(char, "") for char in word]
    styled = any(unicodedata.normalize("NFKC", char) != char for char in word)
    return styled or sum(any(name.startswith(script) for name in names) for script in _ALIKE) > 1


def markup(rule: str) -> Problem | None:
    """No heading, fence, list, quote, table, link, tag, comment, template or JSON, and no mark of this tool's own."""
    if not _MARKUP.search(rule):
        return None
    return Problem(
        "markup", "Write it as a plain sentence: no Markdown, HTML, JSON, template or mark of the rule file."
    )


def chat(rule: str) -> Problem | None:
    """Nothing that ends a message or begins one of another role."""
    if not _CHAT.search(rule):
        return None
    return Problem(
        "chat", "Leave out what looks like the parts of a chat: role names before a colon, field headers, tokens."
    )
