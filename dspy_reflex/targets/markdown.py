"""Rules in Markdown rule files: read the ones there, and show what one more would change.

Rules of ours stand in one block that this tool owns; nothing outside it is ever touched. Text in, text out.
"""

from __future__ import annotations

import difflib
import re

from dspy_reflex.untrusted import neutralise

BEGIN = "<!-- reflex:begin -->"
END = "<!-- reflex:end -->"
HEADING = "## Learned rules"
BLOCK = re.compile(rf"(^{BEGIN}\n(?:.*\n)*?){END}$", re.MULTILINE)
"""Our block: its markers stand on lines of their own, or they are not ours."""
COMMENT = re.compile(r"<!--|-->")
ITEM = re.compile(r"^\s*[-*+]\s+(?:\[[^\]]*\]\s+)?(\S.*)$")


def rules_in(text: str) -> list[str]:
    """The list items of a rule file, of ours and of others."""
    return [match.group(1).strip() for match in map(ITEM.match, text.splitlines()) if match]


def with_rule(text: str, rule_id: str, rule: str) -> str:
    """The file with one more rule in our block, which is made at the end if it is not there."""
    said = COMMENT.sub("", " ".join(neutralise(rule).split()))
    item = f"- [{rule_id}] {said}\n"
    block = BLOCK.search(text)
    if block:
        return f"{text[: block.end(1)]}{item}{text[block.end(1) :]}"
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{BEGIN}\n{HEADING}\n{item}{END}\n"


def diff(name: str, before: str, after: str) -> str:
    """What would change in a file, as a unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
