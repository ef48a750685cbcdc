"""Edits of a rule file as values: what they make of it, and how they are undone.

An edit knows the rule before and the rule after, so its opposite needs nothing but itself. Edits of different rules
commute, hence patches can be undone in any order; where a later patch changed the same rule, `undo` names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from dspy_reflex.errors import TargetError
from dspy_reflex.targets.block import is_tidy, rules_of, with_rules
from dspy_reflex.targets.rule import RuleLine


@dataclass(frozen=True)
class Edit:
    """One rule before and after; None is no rule. Adding has no old one, removing no new one."""

    old: RuleLine | None
    new: RuleLine | None

    @property
    def rule_ids(self) -> frozenset[str]:
        """The rules it touches: one, or two where the new one has another id."""
        return frozenset(rule.rule_id for rule in (self.old, self.new) if rule)


def add(rule: RuleLine) -> Edit:
    """The edit that puts a rule in."""
    return Edit(None, rule)


def remove(rule: RuleLine) -> Edit:
    """The edit that takes a rule out."""
    return Edit(rule, None)


def apply_edits(content: bytes | None, edits: Sequence[Edit], name: str) -> bytes | None:
    """What edits make of a file; nothing outside the block changes.

    Args:
        content: The file; None if there is none.
        edits: Each of other rules; so their order does not matter.
        name: What to call the file in an error.

    Returns:
        The content itself where the edits are all done already; None where nothing is left of a file that was made for
        the block.

    Raises:
        TargetError: The block was changed by hand, a rule is not what an edit expects, or no block can be written;
            says where.
    """
    if len(_touched(edits)) != sum(len(edit.rule_ids) for edit in edits):
        raise ValueError("two edits of one rule; put them into one")
    rules = {rule.rule_id: rule for rule in rules_of(content, name)}
    if all(_is_done(edit, rules) for edit in edits):
        return content
    if not is_tidy(content, name):
        raise TargetError(f"{name}: the block of rules was changed by hand; put it back, or take the change over first")
    for edit in edits:
        _do(edit, rules, name)
    return with_rules(content, rules.values(), name)


def undo(patch_id: str, edits: Sequence[Edit], later: Iterable[tuple[str, Sequence[Edit]]]) -> tuple[Edit, ...]:
    """The edits that undo a patch of a file.

    Args:
        patch_id: The patch.
        edits: What it did.
        later: Id and edits of each later patch of that file that has not been undone, oldest first.

    Raises:
        TargetError: One of them changed a rule that this patch changed; says which.
    """
    mine = _touched(edits)
    for other, others in reversed(list(later)):
        if shared := mine & _touched(others):
            raise TargetError(
                f"{patch_id} cannot be reverted: {other} changed rule {min(shared)} after it; revert {other} first"
            )
    return tuple(Edit(edit.new, edit.old) for edit in edits)


def to_json(edits: Sequence[Edit]) -> list[JsonValue]:
    """Edits as a store keeps them."""
    return _json().dump_python(tuple(edits), mode="json")


def from_json(said: Any) -> tuple[Edit, ...]:
    """The edits that `to_json` was given.

    Raises:
        TargetError: It is something else.
    """
    try:
        return _json().validate_python(said)
    except ValidationError as error:
        raise TargetError(f"a patch's edits cannot be read: {error.errors(include_url=False)[0]['msg']}") from error


@cache
def _json() -> TypeAdapter[tuple[Edit, ...]]:
    return TypeAdapter(tuple[Edit, ...])


def _touched(edits: Iterable[Edit]) -> frozenset[str]:
    return frozenset(rule_id for edit in edits for rule_id in edit.rule_ids)


def _is_done(edit: Edit, rules: dict[str, RuleLine]) -> bool:
    """Whether the file is as the edit would leave it."""
    gone = edit.rule_ids - {edit.new.rule_id} if edit.new else edit.rule_ids
    return not gone & rules.keys() and (edit.new is None or rules.get(edit.new.rule_id) == edit.new)


def _do(edit: Edit, rules: dict[str, RuleLine], name: str) -> None:
    if edit.old and rules.pop(edit.old.rule_id, None) != edit.old:
        raise TargetError(f"{name}: rule {edit.old.rule_id} is not what it was: it was changed or deleted by hand")
    if edit.new and rules.setdefault(edit.new.rule_id, edit.new) is not edit.new:
        raise TargetError(f"{name}: there is a rule {edit.new.rule_id} already; only part of this patch can be done")
