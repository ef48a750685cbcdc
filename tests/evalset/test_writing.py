"""What is written is what is read back."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.lines import read_lines
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.evalset.rows import to_labelled
from dspy_reflex.evalset.writing import to_lines, to_object, write_splits
from tests.evalset.rows import COLOURS, row

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=6,
)
LINE = st.fixed_dictionaries(
    {"id": TEXT, "task": TEXT, "actual_outcome": TEXT, "root_cause": st.sampled_from(COLOURS.labels), "context": JSON},
    optional={
        "evidence": st.lists(TEXT, max_size=2), "family": TEXT, "note": JSON, "key_points": st.lists(st.lists(TEXT), max_size=2),
        "votes": st.lists(st.fixed_dictionaries({"annotator": TEXT, "root_cause": st.sampled_from([*COLOURS.labels, None])}), max_size=2),
    },
)  # fmt: skip


@given(LINE)
def test_a_row_survives_writing_and_reading(line: dict[str, object]) -> None:
    """Whatever is in it, unknown fields and nested contexts too."""
    problems = Problems()
    first = _read(to_lines([line]), problems)
    again = _read(to_lines([to_object(first)]), problems)
    assert not problems.found
    assert again == first


def _read(content: bytes, problems: Problems) -> LabelledFailure:
    (found,) = read_lines(content, "x", problems)
    labelled = to_labelled(found, COLOURS.labels, problems)
    assert labelled is not None
    return labelled


def test_every_row_has_the_same_known_keys_in_the_same_order() -> None:
    """So that tables and Hugging Face see one schema."""
    assert list(to_object(row(1))) == list(to_object(row(2, None, family="f", evidence=("task",))))


def test_splits_are_written_with_a_manifest_that_counts_them(tmp_path: Path) -> None:
    """The manifest is what fixes a test set."""
    write_splits(tmp_path, {"train": (row(1), row(2)), "unknown": (row(3, None),)})
    listed = json.loads((tmp_path / "manifest.json").read_text())["splits"]
    assert {name: entry["rows"] for name, entry in listed.items()} == {"train": 2, "unknown": 1}
    loaded = load_evalset(tmp_path, COLOURS)
    assert [one.id for one in loaded.split("train")] == ["f1", "f2"]
