"""Patches come and go in any order, and what was there before them comes back byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import TargetError
from dspy_reflex.targets.block import is_tidy, rules_of
from dspy_reflex.targets.edit import Edit, add, apply_edits, from_json, remove, to_json, undo
from dspy_reflex.targets.rule import RuleLine
from tests.targets.rule_files import NAME, any_files, days, files_with_block, refusal, rule, rules, sections, texts

Patch = tuple[str, tuple[Edit, ...]]
edits = st.builds(add, rules) | st.builds(remove, rules) | st.builds(Edit, rules, rules)


def ids(patch: Patch) -> set[str]:
    """The rules that a patch touches."""
    return {each.rule_id for edit in patch[1] for each in (edit.old, edit.new) if each}


def other(old: RuleLine, text: str, suffix: str) -> RuleLine:
    """A rule in other words, under another id now and then."""
    return RuleLine(old.rule_id + suffix, text, old.added, old.section)


@st.composite
def patches(draw: st.DrawFn, content: bytes | None, number: int) -> Patch:
    """A patch of what is there: rules in, out, reworded, merged."""
    there = draw(st.permutations(rules_of(content, NAME)))[: draw(st.integers(0, 3))]
    made = [
        draw(st.none() | st.builds(other, st.just(each), texts, st.sampled_from(["", f"_as{number}"])))
        for each in there
    ]
    some = [Edit(old, new) for old, new in zip(there, made, strict=True) if old != new]
    if not some or draw(st.booleans()):
        some.append(add(RuleLine(f"prop_new{number}", draw(texts), draw(days), draw(sections))))
    return f"patch_{number}", tuple(some)


def undone(content: bytes | None, patch: Patch, standing: list[Patch]) -> bytes | None:
    """The file without a patch; as it is where `undo` refuses, which it may only for a later patch of the same rule."""
    later = standing[standing.index(patch) + 1 :]
    in_the_way = [other for other in later if ids(other) & ids(patch)]
    if said := refusal(lambda: undo(*patch, later)):
        event("another patch is in the way")
        assert in_the_way
        assert f"{patch[0]} cannot be reverted: {in_the_way[-1][0]} changed rule " in said
        return content
    assert not in_the_way
    standing.remove(patch)
    return apply_edits(content, undo(*patch, later), NAME)


@settings(max_examples=60)
@given(any_files | files_with_block(), st.data())
def test_reverts_in_any_order_give_the_file_back(before: bytes | None, data: st.DataObject) -> None:
    """1 to 20 patches, some reverted in between, all at the end; or a refusal that names the patch in the way."""
    if refusal(lambda: apply_edits(before, [add(rule(99))], NAME)):
        event("no file for rules")
        return
    content, standing = before, list[Patch]()
    for number in range(data.draw(st.integers(1, 20), "patches")):
        patch = data.draw(patches(content, number))
        content = apply_edits(content, patch[1], NAME)
        standing.append(patch)
        assert is_tidy(content, NAME)
        if data.draw(st.integers(0, 3)) == 0:
            content = undone(content, data.draw(st.sampled_from(standing)), standing)
    while standing:
        for patch in data.draw(st.permutations(standing), "reverts"):
            content = undone(content, patch, standing)
    assert content == before


@given(files_with_block(), st.lists(edits, min_size=1, max_size=4))
def test_an_edit_is_done_exactly_or_refused(content: bytes, some: list[Edit]) -> None:
    """All of a patch or none of it; doing it twice is doing it once."""
    touched = [each for edit in some for each in {rule.rule_id for rule in (edit.old, edit.new) if rule}]
    if len(touched) > len(set(touched)):
        with pytest.raises(ValueError, match="two edits of one rule"):
            apply_edits(content, some, NAME)
        return
    if said := refusal(lambda: apply_edits(content, some, NAME)):
        assert said.startswith(f"{NAME}: ")
        return
    after = apply_edits(content, some, NAME)
    there = {each.rule_id: each for each in rules_of(after, NAME)}
    for edit in some:
        assert edit.new is None or there[edit.new.rule_id] == edit.new
        assert edit.old is None or there.get(edit.old.rule_id) in (None, edit.new)
    assert apply_edits(after, some, NAME) == after
    if after != content:
        assert apply_edits(after, undo("patch_1", some, []), NAME) == content


@given(st.lists(edits, max_size=4))
def test_edits_are_kept_as_json(some: list[Edit]) -> None:
    assert from_json(json.loads(json.dumps(to_json(some)))) == tuple(some)


@pytest.mark.parametrize("said", [None, "x", [1], [{"old": None}], [{"old": None, "new": {"rule_id": "a b"}}]])
def test_edits_that_cannot_be_read_are_refused(said: object) -> None:
    with pytest.raises(TargetError, match="a patch's edits cannot be read"):
        from_json(said)


def test_a_rule_that_was_changed_by_hand_is_not_taken_out() -> None:
    content = apply_edits(None, [add(rule(1)), add(rule(2))], NAME)
    assert content is not None
    for by_hand in (
        content.replace(b"Close", b"Open", 1),
        b"\n".join(content.split(b"\n")[:2] + content.split(b"\n")[3:]),
    ):
        with pytest.raises(TargetError, match=r"AGENTS\.md: rule prop_1 is not what it was"):
            apply_edits(by_hand, [Edit(rule(1), rule(3))], NAME)


def test_a_block_that_was_changed_by_hand_is_left_alone() -> None:
    content = apply_edits(None, [add(rule(1))], NAME)
    assert content is not None
    with pytest.raises(TargetError, match=r"AGENTS\.md: the block of rules was changed by hand"):
        apply_edits(content.replace(b"- [", b"\n- ["), [add(rule(2))], NAME)


def test_a_rule_is_not_added_over_another() -> None:
    content = apply_edits(None, [add(rule(1))], NAME)
    assert apply_edits(content, [add(rule(1))], NAME) is content
    for some in ([add(rule(1, "Open it."))], [add(rule(1)), add(rule(2))]):
        with pytest.raises(TargetError, match=r"AGENTS\.md: there is a rule prop_1 already"):
            apply_edits(content, some, NAME)


def test_two_edits_of_one_rule_are_one_edit() -> None:
    with pytest.raises(ValueError, match="put them into one"):
        apply_edits(None, [add(rule(1)), remove(rule(1))], NAME)


def test_the_patch_in_the_way_is_the_last_one() -> None:
    """Reverting it first may be refused in turn, and so on to the one that can go."""
    later = [
        ("patch_2", [Edit(rule(1), rule(1, "b"))]),
        ("patch_3", [remove(rule(1, "b"))]),
        ("patch_4", [add(rule(2))]),
    ]
    with pytest.raises(TargetError, match=r"^patch_1 .* patch_3 changed rule prop_1 after it; revert patch_3 first$"):
        undo("patch_1", [add(rule(1))], later)
    assert undo("patch_1", [add(rule(1)), Edit(rule(3), rule(4))], later[2:]) == (
        remove(rule(1)),
        Edit(rule(4), rule(3)),
    )
