"""The published set is clean, and every check fires on a broken copy of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.evalset.writing import write_splits
from tests.cli.runner import Reflex
from tests.evalset.rows import write
from tests.optimize.compiles import ROOT, labelled

FAILURES = ROOT / "datasets" / "failures"
ROWS = 72
"""Of each split: enough for every check, and few enough to be quick."""
Rows = list[dict[str, Any]]
Break = Callable[[dict[str, Rows]], None]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Some rows of the published set, without a manifest, so that they may be changed."""
    for split, source in (("train", "val"), ("test", "test")):
        rows = [json.loads(line) for line in (FAILURES / f"{source}.jsonl").read_text().splitlines()]
        kept = sorted(rows, key=lambda row: (row["family"], row["id"]))[:ROWS]
        write(tmp_path / "failures" / f"{split}.jsonl", *kept)
    return tmp_path / "failures"


def test_the_published_set_is_clean(reflex: Reflex) -> None:
    """No error, no warning."""
    done = reflex("data", "validate", FAILURES, "--json")
    assert done.code == 0
    assert done.json["findings"] == []


def absent(splits: dict[str, Rows]) -> None:
    """No row of one cause is left."""
    for rows in splits.values():
        rows[:] = [row for row in rows if row["root_cause"] != "tool_failure"]


def rare(splits: dict[str, Rows]) -> None:
    """One cause has one row in the test split."""
    kept = [row for row in splits["test"] if row["root_cause"] == "tool_failure"][:1]
    splits["test"][:] = [row for row in splits["test"] if row["root_cause"] != "tool_failure"] + kept


def sources(splits: dict[str, Rows]) -> None:
    """Every cause from a source of its own."""
    for rows in splits.values():
        for row in rows:
            row["source"] = row["root_cause"]


def changed(**fields: Any) -> Break:
    """The first training row with other values."""

    def change(splits: dict[str, Rows]) -> None:
        splits["train"][0].update(fields)

    return change


def copied(splits: dict[str, Rows]) -> None:
    """A training row in test, with one word more."""
    row = splits["train"][0]
    splits["test"].append({**row, "id": "copy", "family": "copy", "task": row["task"] + " Again."})


def divided(splits: dict[str, Rows]) -> None:
    """A family in two splits."""
    splits["train"][0]["family"] = splits["test"][0]["family"]


BREAKS: dict[str, tuple[Break, int]] = {
    "schema": (changed(root_cause="bad luck"), 2),
    "label-absent": (absent, 0),
    "label-in-text": (changed(task="Why was this a tool failure?"), 0),
    "family-divided": (divided, 2),
    "near-copy": (copied, 2),
    "choices": (changed(root_cause="tool_failure", also_acceptable=["tool_failure"]), 2),
    "evidence": (changed(evidence=["nobody ever wrote these words"]), 2),
    "undecided": (
        changed(
            adjudication=None,
            votes=[{"annotator": name, "root_cause": cause} for name, cause in (("a", "tool_failure"), ("b", None))],
        ),
        0,
    ),
    "class-counts": (rare, 0),
    "secret": (changed(actual_outcome="key " + "AKIA" + "IOSFODNN7EXAMPLE"), 2),
    "personal-data": (changed(actual_outcome="Call Jo on +49 30 9018 2000."), 0),
    "shortcut": (sources, 0),
}


@pytest.mark.parametrize("check", BREAKS)
def test_each_check_fires_on_a_broken_copy(check: str, copy: Path, reflex: Reflex) -> None:
    """And says where; an error is exit code 2, a warning is not."""
    damage, code = BREAKS[check]
    splits = {file.stem: [json.loads(line) for line in file.read_text().splitlines()] for file in copy.glob("*.jsonl")}
    damage(splits)
    for name, rows in splits.items():
        (copy / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = reflex("data", "validate", copy, "--json")
    assert check in {one["check"] for one in done.json["findings"]}
    assert done.code == code


def test_one_changed_letter_in_a_split_is_seen(tmp_path: Path, reflex: Reflex) -> None:
    """Scores on a changed test set are scores on another one."""
    write_splits(tmp_path / "failures", {"test": labelled(FAILURES, "test")[:ROWS]})
    assert reflex("data", "validate", tmp_path / "failures").code == 0
    test = tmp_path / "failures" / "test.jsonl"
    test.write_text(test.read_text().replace("the", "teh", 1))
    done = reflex("data", "validate", tmp_path / "failures")
    assert done.code == 2
    assert "test is not what manifest.json says" in done.out


def test_all_problems_are_listed_and_the_good_rows_are_checked_all_the_same(tmp_path: Path, reflex: Reflex) -> None:
    """One run says everything: NaN, encoding, a label, an id twice; CRLF and a byte order mark are no problem."""
    good = {"id": "a", "task": "t", "actual_outcome": "o", "root_cause": "tool_failure"}
    lines = [
        json.dumps(good).encode(),
        json.dumps(good | {"id": "b", "actual_outcome": "p", "context": 1}).encode().replace(b"1", b"NaN"),
        json.dumps(good | {"id": "c"}).encode().replace(b'"t"', b'"\xff"'),
        json.dumps(good | {"id": "d", "root_cause": "bad luck"}).encode(),
        json.dumps(good).encode(),
        json.dumps(good | {"id": "e", "actual_outcome": "x" * 10_000_000}).encode(),
    ]
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\r\n")
    done = reflex("data", "validate", file, "--json")
    assert done.code == 2
    schema = [one["where"].rsplit(":", 1)[1] for one in done.json["findings"] if one["check"] == "schema"]
    assert sorted(schema) == ["2", "3", "4", "5"]
    assert done.json["rows"] == {"all": 2}
