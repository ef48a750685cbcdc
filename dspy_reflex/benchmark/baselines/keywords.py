"""Keyword rules for the six causes, after the category table of REFLEX's README.

That table gives each category a description and an example; its heuristic classifier is not published. The words here
are our own reading of the descriptions and examples. One was narrowed after seeing what fired on rows: a bare 500 is
mostly an amount. The first cause with a match wins, in the order in which the causes are asked about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KEYWORDS: Mapping[str, re.Pattern[str]] = {
    # "External tool/API returned bad data or errored": 429 rate limit with no retry
    "tool_failure": re.compile(
        r"\b(?:429|500 internal|50[2-4]|rate.?limit\w*|too many requests|time(?:d)?.?out|unavailable|outage|"
        r"connection (?:refused|reset|error)|bad gateway|service error|malformed response|"
        r"api (?:error|returned an? error)|throttl\w+)\b",
        re.IGNORECASE,
    ),
    # "Unclear or contradictory task instructions": "Write a summary", length unspecified
    "instruction_ambiguity": re.compile(
        r"\b(?:unclear|ambigu\w+|contradict\w+|conflicting|unspecified|not specified|did not say|didn't say|vague)\b",
        re.IGNORECASE,
    ),
    # "Agent lost track of prior conversation/task context": forgot sub-agent label after compaction
    "context_loss": re.compile(
        r"\b(?:forg[oe]t\w*|lost track|compact(?:ed|ion)|truncat\w+|earlier (?:message|turn|step|instruction)s?|"
        r"already (?:told|said|given|mentioned)|asked again|previous(?:ly)? (?:said|stated|given|mentioned))\b",
        re.IGNORECASE,
    ),
    # "Missing domain knowledge": uses deprecated API endpoint from memory
    "knowledge_gap": re.compile(
        r"\b(?:deprecated|removed in|out.?dated|obsolete|unknown (?:parameter|field|option|method)|does not exist|"
        r"no longer (?:supported|exists|available)|unfamiliar|unrecogni[sz]ed)\b",
        re.IGNORECASE,
    ),
    # "Acted on low-confidence info without verification": stated wrong protocol mechanics as fact
    "overconfidence": re.compile(
        r"\b(?:without (?:verif\w+|checking|confirm\w+|testing)|unverified|not verified|never checked|invented|"
        r"made up|fabricat\w+|hallucinat\w+|as fact|confidently|claimed)\b",
        re.IGNORECASE,
    ),
    # "Logical or inferential mistake": agent assumes file exists, doesn't check
    "reasoning_error": re.compile(
        r"\b(?:assum\w+|miscalculat\w+|wrong (?:order|conclusion|step|calculation)|incorrect(?:ly)?|"
        r"instead of|off by one|logic\w*|mistake\w*)\b",
        re.IGNORECASE,
    ),
}
"""What a failure's text must contain for each cause."""
