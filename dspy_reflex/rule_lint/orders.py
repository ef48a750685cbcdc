"""A rule guides the agent's work. It does not speak about rules, reviewers, secrets, or about who the agent is.

Patterns, not understanding: they stop what is said in known ways, in some languages. A person still reads every rule.
"""

from __future__ import annotations

import re

from dspy_reflex.rule_lint.problem import Problem

_IGNORE = (
    r"(?:ignor\w*|disregard\w*|forget\w*|overrid\w*|overrul\w*|bypass\w*|circumvent\w*|supersed\w*|discard\w*|neglect\w*"
    r"|abandon\w*|void|suspend\w*|drop|delete|erase|skip|violat\w*|break|disobey\w*|do not (?:follow|obey|apply)"
    r"|don't (?:follow|obey|apply)|stop (?:following|obeying|applying)|(?:no longer|never) (?:follow|obey|apply)"
    r"|take(?:s)? (?:precedence|priority) over)"
)
_RULES = (
    r"(?:rules?|instructions?|prompts?|guidelines?|guardrails?|directives?|polic(?:y|ies)|constraints?|restrictions?"
    r"|safety|safeguards?|system (?:message|prompt)s?|orders|what (?:you were|i) (?:told|said))"
)
_WHICH = (
    r"(?:all|any|every|each|previous|prior|earlier|preceding|above|former|existing|other|these|those|current|initial"
    r"|original|your|the|my|our|of|system|developer|safety|security|content|listed|given|here|in|this|file|and|or)"
)
# Ignore … rules: in German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian, Turkish, Chinese, Japanese,
# Korean, Arabic and Hindi. Between the two words as much as fits into a clause.
_ELSEWHERE = (
    (r"ignorier\w*|vergiss|vergesst|missachte\w*|umgeh\w*", r"regeln?|anweisung\w*|vorgaben?|richtlinien?"),
    (r"ignore[rz]?|oublie[rz]?|contourne[rz]?", r"r\u00e8gles?|regles?|instructions?|consignes?"),
    (r"ignor[ae]\w*|olvid[ae]\w*|omit[ae]\w*|desobedec\w*", r"reglas?|instrucci\w*|normas?|indicaciones"),
    (r"ignor[ae]\w*|esque[c\u00e7]\w*|desconsider\w*", r"regras?|instru\w*|normas?"),
    (r"ignor[ai]\w*|dimentic\w*", r"regol[ae]|istruzion\w*"),
    (r"negeer\w*|vergeet", r"regels?|instructies?|richtlijnen"),
    (r"zignoruj\w*|ignoruj\w*|zapomnij\w*", r"zasad\w*|regu\u0142\w*|instrukcj\w*|polece\w*"),
    (
        r"\u0438\u0433\u043d\u043e\u0440\u0438\u0440\w*|\u0437\u0430\u0431\u0443\u0434\w*",
        r"\u043f\u0440\u0430\u0432\u0438\u043b\w*|\u0438\u043d\u0441\u0442\u0440\u0443\u043a\w*",
    ),
    (r"yok say\w*|unut\w*", r"kural\w*|talimat\w*"),
    ("\u5ffd\u7565|\u65e0\u89c6|\u5fd8\u8bb0|\u5ffd\u8996|\u7121\u8996", "\u89c4\u5219|\u6307\u4ee4|\u6307\u793a|\u898f\u5247"),
    ("\u30eb\u30fc\u30eb|\u6307\u793a|\u898f\u5247|\u547d\u4ee4", "\u7121\u8996|\u5fd8\u308c"),
    ("\uaddc\uce59|\uc9c0\uc2dc|\uba85\ub839", "\ubb34\uc2dc|\uc78a"),
    ("\u062a\u062c\u0627\u0647\u0644|\u0627\u0646\u0633", "\u0627\u0644\u0642\u0648\u0627\u0639\u062f|\u0627\u0644\u062a\u0639\u0644\u064a\u0645\u0627\u062a"),
    ("\u0928\u093f\u092f\u092e|\u0928\u093f\u0930\u094d\u0926\u0947\u0936", "\u0905\u0928\u0926\u0947\u0916|\u092d\u0942\u0932"),
)  # fmt: skip
_OVERRIDE = re.compile(
    "|".join(
        [
            rf"\b{_IGNORE}\b(?:\W+{_WHICH}){{0,6}}\W+{_RULES}\b",
            rf"\b{_RULES}\b[^.;]{{0,40}}\b(?:no longer|do not|don't|never) (?:apply|hold|count|matter|bind)\b",
            *(rf"(?:{verb})[^.;\n]{{0,40}}(?:{noun})" for verb, noun in _ELSEWHERE),
        ]
    ),
    re.IGNORECASE,
)
_APART = re.compile(r"(?<=\b\w)[ ._-](?=\w\b)")
"""Between single letters: `i g n o r e`."""
_SELF = re.compile(
    r"\b(?:from now on|henceforth|you are (?:now|no longer)|act as|pretend|role-?play|jailbreak|developer mode|god mode"
    r"|do anything now|unrestricted|without (?:any )?restrictions|new (?:instructions|system prompt|identity|persona))\b",
    re.IGNORECASE,
)
_OVERSIGHT = re.compile(
    r"\b(?:auto-?approv\w*|pre-?approv\w*|(?:already|been|is|was|as|mark\w*|status|always) (?:approved|reviewed|signed off)"
    r"|(?:approved|reviewed)(?:_by\b|[ _-]by[ _]*[:=]|[ _-]by (?:the )?(?:reviewer|human|admin\w*|owner|operator|maintainer|security|me)\b)|reviewer\s*[:=]|approve (?:this|all|every|any|the) (?:rule|proposal|patch|change)s?"
    r"|no (?:review|approval|confirmation) (?:is )?(?:needed|required|necessary)"
    r"|(?:do not|don't|never|without) (?:tell|telling|inform\w*|notify\w*|alert\w*|warn\w*|mention\w*|reveal\w*|report\w*)"
    r" (?:this |it |that |anything )?(?:to )?(?:the |any |a |your )?(?:user|human|owner|operator|reviewer|person|team|anyone|anybody)s?\b"
    r"|(?:disable|turn off|switch off|deactivate|remove) (?:the |all |any |every )?(?:logging|audit\w*|guard\w*|safety|monitoring|redaction|review)"
    r"|(?<!never )(?<!not )(?:proceed|act|run|execute|continue|go ahead|delete|send|deploy|do (?:it|so)) (?:\w+ ){0,3}without (?:asking|approval"
    r"|confirmation|confirming|permission|review|a check|checking))\b",
    re.IGNORECASE,
)
_REVEAL = re.compile(
    r"\b(?:reveal|print|output|repeat|show|send|post|upload|forward|include|append|leak|exfiltrate|dump|echo|disclose|copy|share)"
    r"\b[^.;]{0,40}\b(?:system prompt|(?:your|these|the) (?:hidden |initial |full |own )?(?:instructions|prompt)|api keys?"
    r"|credentials?|passwords?|secrets?|tokens|private keys?|environment variables|env vars?)\b",
    re.IGNORECASE,
)
_MACHINERY = re.compile(
    r"\broot_cause\b|\b(?:reasoning_error|knowledge_gap|tool_failure|instruction_ambiguity|context_loss|overconfidence)\b"
    r"|\bconfidence\s*(?:is|of|=|:|to|at)?\s*(?:0?\.\d|1\.0|1\b|\d{2,3}\s?%)|\b(?:classifier|dspy|reflex)\b|\bneeds_review\b"
    r"|\b(?:classify|diagnose|label)\b[^.;]{0,30}\b(?:failure|this|event) as\b",
    re.IGNORECASE,
)


def override(rule: str) -> Problem | None:
    """It sets no other rule aside, and nobody free of them."""
    together = _APART.sub("", rule)
    if not any(order.search(text) for order in (_OVERRIDE, _SELF) for text in (rule, together)):
        return None
    return Problem("override", "Leave other rules and the agent's role alone: say what to do in the agent's work.")


def oversight(rule: str) -> Problem | None:
    """It takes nothing from the people who watch the agent: approvals, reviews, logs, messages to them."""
    if not _OVERSIGHT.search(rule):
        return None
    return Problem("oversight", "Leave out approvals, reviews and logs: a rule cannot grant, skip or hide them.")


def reveal(rule: str) -> Problem | None:
    """It gives nothing away: prompts, keys, passwords."""
    if not _REVEAL.search(rule):
        return None
    return Problem("reveal", "Leave out prompts, keys and passwords: a rule has no reason to show or send them.")


def machinery(rule: str) -> Problem | None:
    """It does not speak to the programs that read failures."""
    if not _MACHINERY.search(rule):
        return None
    return Problem("machinery", "Leave out causes, confidence and classification: those words address the diagnosis.")
