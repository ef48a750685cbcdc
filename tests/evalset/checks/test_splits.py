"""What lets a program be tested on what it was trained on."""

from __future__ import annotations

from pathlib import Path

from dspy_reflex.evalset.checks.splits import changed, divided, near_copies
from dspy_reflex.evalset.writing import write_splits
from tests.evalset.checks.sets import brief, evalset, told

STORY = "the painter took the wrong tin from the shelf and painted the whole wall before anyone came to look at it"


def test_families_and_texts_in_two_splits_are_errors() -> None:
    """Both are the same as testing on training rows."""
    one, twin = told(1, "red", "a"), told(2, "red", "a")
    assert [brief(found) for found in divided(evalset(one, test=(twin,)))] == [("family-divided", "error", "a.jsonl:1")]
    first, second = told(1, "red", "a", family="fam"), told(2, "red", "b", family="fam")
    (found,) = divided(evalset(first, test=(second,)))
    assert "'fam' is in the splits train and test" in found.text
    assert not list(divided(evalset(first, second, test=(told(3, "red", "c"),))))


def test_near_copies_are_warned_of_in_one_split_and_are_errors_in_two() -> None:
    """One word changed is the same failure; another story is not."""
    one, copy, other = told(1, "red", STORY), told(2, "red", f"{STORY} again"), told(3, "red", "a short one")
    assert [brief(found) for found in near_copies(evalset(one, copy, other))] == [("near-copy", "warning", "a.jsonl:2")]
    assert [brief(found) for found in near_copies(evalset(one, other, test=(copy,)))] == [
        ("near-copy", "error", "a.jsonl:2")
    ]


def test_a_split_that_the_manifest_does_not_know_as_it_is_is_an_error(tmp_path: Path) -> None:
    """A changed test set is another test set."""
    write_splits(tmp_path, {"train": (told(1, "red", "a"),), "test": (told(2, "red", "b"),)})
    assert not list(changed(tmp_path))
    test = tmp_path / "test.jsonl"
    test.write_text(test.read_text().replace('"b"', '"c"'))
    (tmp_path / "train.jsonl").unlink()
    (tmp_path / "val.jsonl").write_text("")
    assert [found.text.split(" ")[0] for found in changed(tmp_path)] == ["test", "train", "val"]
    for torn in ("{", '{"splits": ["train"]}', '{"splits": {"train": "x"}}'):
        (tmp_path / "manifest.json").write_text(torn)
        assert [found.text.split(" ")[0] for found in changed(tmp_path)] == ["manifest.json"]
    (tmp_path / "manifest.json").unlink()
    assert not list(changed(tmp_path))
