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
BLOCK = re.compile(rf"(^{BEGIN}\r?\n(?:.*\n)*?){END}\r?$", re.MULTILINE)
"""Our block: its markers stand on lines of their own, or they are not ours."""
COMMENT = re.compile(r"<!-*|-*->")
ITEM = re.compile(r"^\s*[-*+]\s+(?:\[[^\]]*\]\s+)?(\S.*)$")


def rules_in(text: str) -> list[str]:
    """The list items of a rule file, of ours and of others."""
    return [match.group(1).strip() for match in map(ITEM.match, text.splitlines()) if match]


def with_rule(text: str, rule_id: str, rule: str) -> str:
    """The file with one more rule in our block, which is made at the end if it is not there.

    Line ends are those of the file; nothing outside the block changes.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    item = f"- [{rule_id}] {_one_line(rule)}{end}"
    block = BLOCK.search(text)
    if block:
        return f"{text[: block.end(1)]}{item}{text[block.end(1) :]}"
    gap = "" if not text or text.endswith(2 * end) else end if text.endswith(end) else 2 * end
    return f"{text}{gap}{BEGIN}{end}{HEADING}{end}{item}{END}{end}"


def diff(name: str, before: str, after: str) -> str:
    """What would change in a file, as a unified diff."""
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _one_line(rule: str) -> str:
    """A rule without line breaks, and without anything that could open or close a comment."""
    said = " ".join(neutralise(rule).split())
    while COMMENT.search(said):
        said = COMMENT.sub("", said)
    return said


def _lines(text: str) -> list[str]:
    """Lines as `patch` counts them: only a line feed ends one."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])
