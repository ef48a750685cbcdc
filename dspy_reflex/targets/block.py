"""The block of rules that this tool owns in a Markdown file: found, read, and written anew.

What a file becomes is a function of what stands outside the block and of the set of rules inside, and of nothing else:
rules have one order, lines one form, and the block one place. So it does not matter in which order rules came and went,
and taking the last one out gives back the file as it was. The begin marker keeps what that needs to know:

    <!-- reflex:begin -->        nothing was put before the block
    <!-- reflex:begin +1 -->     one line end was, to set it apart; +2: two, the first ending the file's last line
    <!-- reflex:begin new -->    there was no file

A block that could not come back to its place, as somebody wrote behind it, stays when its last rule goes: two comments
that no reader sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import get_args

from dspy_reflex.errors import TargetError
from dspy_reflex.records.record import Component
from dspy_reflex.targets.markdown import BOM, comments, decode, encode, last_start, lines
from dspy_reflex.targets.rule import RuleLine

END = "<!-- reflex:end -->"
HEADING = "## Learned rules"
SECTION = "### "
SECTIONS: tuple[Component, ...] = get_args(Component)
"""Sections of a file that holds several components, in this order."""

_SECTION_OF: dict[str, Component] = {f"{SECTION}{section}": section for section in SECTIONS}
_BEGIN = re.compile(r"<!-- reflex:begin(?: (\+[12]|new))? -->")
_RULE = re.compile(r"- \[([^\[\]\s]+)\] _(\d{4}-\d\d-\d\d)_: (\S.*)")


def rules_of(content: bytes | None, name: str) -> tuple[RuleLine, ...]:
    """The rules in a file's block, in the order of the file; none where there is no file or no block.

    Args:
        content: The file; None if there is none.
        name: What to call it in an error.

    Raises:
        TargetError: The markers are no pair, or something in the block is no rule; says which line.
    """
    place = _found(decode(content, name), name) if content is not None else None
    return _parsed(place, name) if place else ()


def block_of(content: bytes | None, name: str) -> str:
    """The block as it stands, markers included, with line feeds for line ends; empty if there is none.

    Raises:
        TargetError: The markers are no pair.
    """
    place = _found(decode(content, name), name) if content is not None else None
    return "\n".join(line.rstrip("\r\n") for line in lines(place.block)) if place else ""


def with_rules(content: bytes | None, rules: Iterable[RuleLine], name: str) -> bytes | None:
    """The file with exactly these rules in its block, whatever was in it; nothing outside the block changes.

    Returns:
        None where nothing is left of a file that was made for the block.

    Raises:
        TargetError: The markers are no pair, or the file ends inside of something, so that a block could not be found
            again.
    """
    text = None if content is None else decode(content, name)
    rules = tuple(sorted(rules, key=_order))
    place = (_found(text, name) if text is not None else None) or _new_place(text)
    bare = place.without()
    if not rules and _new_place(bare) == replace(place, block=""):
        return None if bare is None else encode(bare)
    after = place.before + _rendered(rules, place) + place.behind
    _check(after, place, name)
    return encode(after)


def is_tidy(content: bytes | None, name: str) -> bool:
    """Whether the block has the form in which it is written here; if not, somebody else's hand was in it.

    Raises:
        TargetError: As `rules_of` and `with_rules`.
    """
    return with_rules(content, rules_of(content, name), name) == content


@dataclass(frozen=True)
class _Place:
    """A block and what is around it."""

    before: str
    block: str
    """From the begin marker to the end marker, without the line end behind it."""
    behind: str
    mark: str
    """What the begin marker says of how the block was set apart: nothing, `+1`, `+2` or `new`."""
    end: str
    """Line end of the block."""

    def without(self) -> str | None:
        """What was there before the block was made; None if nothing was, not even a file."""
        return None if self.mark == "new" else self.before.removesuffix(_gap(self.mark) * self.end)


def _gap(mark: str) -> int:
    """Line ends that were put before the block."""
    return int(mark) if mark.startswith("+") else 0


def _new_place(text: str | None) -> _Place:
    """The place at the end of a file, a blank line apart."""
    if text is None:
        return _Place("", "", "\n", "new", "\n")
    end = "\r\n" if text.rpartition("\n")[0].endswith("\r") else "\n"
    apart = text in ("", BOM) or text.endswith(("\n\n", "\n\r\n"))
    mark = "" if apart else "+1" if text.endswith("\n") else "+2"
    return _Place(text + _gap(mark) * end, "", end, mark, end)


def _marks(text: str) -> list[tuple[int, str]]:
    """Line and text of each of our markers."""
    return [(line, said) for line, said in comments(text) if said == END or _BEGIN.fullmatch(said)]


def _found(text: str, name: str) -> _Place | None:
    """The block in a file, or None; anything but one begin and one end behind it is refused."""
    marks = _marks(text)
    if not marks:
        return None
    if [said == END for _, said in marks] != [False, True]:
        raise TargetError(_wrong(marks, name))
    (first, begin), (last, _) = marks
    cut = lines(text)
    before = "".join(cut[:first]) or (BOM if text.startswith(BOM) else "")
    behind = _ending(cut[last]) + "".join(cut[last + 1 :])
    block = text[len(before) : len(text) - len(behind)]
    opened = _BEGIN.fullmatch(begin)
    return _Place(before, block, behind, (opened and opened[1]) or "", _ending(cut[first]))


def _ending(line: str) -> str:
    """The end of a line; empty where a file ends without one."""
    return line[len(line.rstrip("\r\n")) :]


def _wrong(marks: list[tuple[int, str]], name: str) -> str:
    """Which marker is in the way."""
    begins = [line for line, said in marks if said != END]
    ends = [line for line, said in marks if said == END]
    if len(begins) > 1:
        line, what = begins[1], "a second block begins here"
    elif not ends:
        line, what = begins[0], "this block does not end, or ends inside of a code fence, a quote or a list"
    else:
        line, what = ends[-1 if begins and ends[0] > begins[0] else 0], "no block ends here"
    return f"{name}, line {line + 1}: {what}; leave one begin marker, its rules, and one end marker behind them"


def _parsed(place: _Place, name: str) -> tuple[RuleLine, ...]:
    """The rules between the markers."""
    first = len(lines(place.before.removeprefix(BOM))) + 2
    found: dict[str, RuleLine] = {}
    section: Component | None = None
    for number, line in enumerate(lines(place.block)[1:-1], first):
        said = line.rstrip("\r\n")
        if said in ("", HEADING):
            continue
        if said in _SECTION_OF:
            section = _SECTION_OF[said]
            continue
        rule = _rule(said, section)
        if rule is None:
            raise TargetError(f"{name}, line {number}: only rules stand in this block; move the line out of it")
        if rule.rule_id in found:
            raise TargetError(f"{name}, line {number}: rule {rule.rule_id} stands there twice; delete one of them")
        found[rule.rule_id] = rule
    return tuple(found.values())


def _rule(line: str, section: Component | None) -> RuleLine | None:
    match = _RULE.fullmatch(line)
    if match is None:
        return None
    try:
        return RuleLine(match[1], match[3], date.fromisoformat(match[2]), section)
    except (ValueError, TargetError):
        return None


def _rendered(rules: tuple[RuleLine, ...], place: _Place) -> str:
    """The block with these rules; with none, only its markers."""
    said = [f"<!-- reflex:begin{place.mark and f' {place.mark}'} -->"]
    if rules:
        said.append(HEADING)
    section = None
    for rule in rules:
        if rule.section and rule.section != section:
            said.append(f"{SECTION}{rule.section}")
        section = rule.section
        said.append(str(rule))
    return place.end.join([*said, END])


def _order(rule: RuleLine) -> tuple[int, date, str]:
    """By section, then day, then id."""
    return (SECTIONS.index(rule.section) if rule.section else -1, rule.added, rule.rule_id)


def _check(after: str, place: _Place, name: str) -> None:
    """That the block would be found again: what is never closed swallows all that follows."""
    if len(_marks(after)) != 2:
        raise TargetError(
            f"{name}, line {last_start(place.before) + 1}: what begins here, a code fence or an HTML block, is never "
            "closed, so that no rule can be written behind it; close it first"
        )
