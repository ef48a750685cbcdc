"""`data split`, `agreement`, `stats` and `show`: what they print, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.cli.runner import Reflex
from tests.evalset.rows import raw, write

CAUSES = load_taxonomy().labels


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Sixty rows in twenty families, two votes each, which differ once."""
    rows = [
        raw(
            n, root_cause=CAUSES[n % 6], actual_outcome=f"{CAUSES[n % 6][::-1]} happened in run {n}", family=f"fam{n // 3}",
            domain=f"d{n % 2}", evidence=[f"run {n}"],
            votes=[{"annotator": a, "root_cause": CAUSES[n % 6 if a == "ann" or n else 5]} for a in ("ann", "ben")],
            **({} if n else {"adjudication": "ann is right"}),
        )
        for n in range(60)
    ]  # fmt: skip
    return write(tmp_path / "rows.jsonl", *rows)


def test_split_writes_a_folder_that_compiles_and_validates(labelled: Path, tmp_path: Path, reflex: Reflex) -> None:
    """All rows, no family twice, a manifest."""
    out = tmp_path / "set"
    counts = reflex("data", "split", labelled, "--out", out, "--hard", "0.15", "--json").json["rows"]
    assert sum(counts.values()) == 60
    assert list(counts) == ["train", "val", "test", "test_hard"]
    assert reflex("data", "validate", out).code == 0
    refused = reflex("data", "split", labelled, "--out", out).refusal
    assert "give a new folder" in refused
    assert (
        "must leave something for train"
        in reflex("data", "split", labelled, "--out", tmp_path / "x", "--test", "0.9").refusal
    )
    assert not (tmp_path / "x").exists()


def test_split_keeps_rows_that_blame_nothing_apart(labelled: Path, tmp_path: Path, reflex: Reflex) -> None:
    """They are no training rows."""
    folder = tmp_path / "in"
    write(folder / "train.jsonl", *[raw(n, root_cause=CAUSES[n % 6], family=f"f{n}") for n in range(100, 130)])
    write(folder / "controls.jsonl", {"id": "c", "task": "t", "actual_outcome": "fine"})
    undecided = {"id": "u", "task": "t", "actual_outcome": "cut", "votes": [{"annotator": "ann", "root_cause": None}]}
    write(folder / "val.jsonl", undecided)
    out = tmp_path / "set"
    assert reflex("data", "split", labelled, folder, "--out", out, "--json").json["rows"]["controls"] == 1
    assert [row.id for row in load_evalset(out, load_taxonomy()).split("unknown")] == ["u"]
    assert len(load_evalset(out, load_taxonomy()).rows) == 90


def test_split_takes_no_id_twice(labelled: Path, tmp_path: Path, reflex: Reflex) -> None:
    """Not even from two files, or what is written could not be read."""
    other = write(tmp_path / "other.jsonl", raw(7, root_cause=CAUSES[0], task="another"))
    assert (
        f"{other}:1: id 'f7' is already at" in reflex("data", "split", labelled, other, "--out", tmp_path / "s").refusal
    )
    assert not (tmp_path / "s").exists()


def test_split_skips_bad_lines_when_told_to(labelled: Path, tmp_path: Path, reflex: Reflex) -> None:
    """And says how many."""
    with labelled.open("a") as file:
        file.write("not json\n")
    assert "not JSON" in reflex("data", "split", labelled, "--out", tmp_path / "set").refusal
    done = reflex("data", "split", labelled, "--out", tmp_path / "set", "--skip-bad")
    assert done.code == 0
    assert f"skipped {labelled}:61" in done.err
    assert "1 lines were skipped" in done.err


def test_agreement_says_who_n_and_each_measure(labelled: Path, reflex: Reflex) -> None:
    """As numbers and for people."""
    found = reflex("data", "agreement", labelled, "--json").json
    assert (found["annotators"], found["n"], found["raw"]) == (["ann", "ben"], 60, pytest.approx(59 / 60))
    assert found["kappa"] == pytest.approx(0.98, abs=0.01)
    told = reflex("data", "agreement", labelled, "--between", "ben,ann").out
    for words in ("ben and ann, 60 failures", "Cohen's kappa         0.980", "Krippendorff's alpha", "disagreements"):
        assert words in told
    assert "not two names" in reflex("data", "agreement", labelled, "--between", "ann").refusal
    assert "no failure in common" in reflex("data", "agreement", labelled, "--between", "ann,cy").refusal


def test_stats_count_and_draw(labelled: Path, tmp_path: Path, reflex: Reflex) -> None:
    """Tables by field, plots on request, and the shortcut test."""
    done = reflex("data", "stats", labelled, "--shortcuts", "--plots", tmp_path / "plots", "--json").json
    assert done["tables"]["domain"]["(all)"]["(all)"] == 60
    assert done["shortcuts"]["constant"] == pytest.approx(1 / 6)
    assert done["shortcuts"]["words"] > 0.9
    assert {file.name for file in (tmp_path / "plots").iterdir()} == {"counts.png", "lengths.png"}
    told = reflex("data", "stats", labelled).out
    assert "root_cause" in told
    assert "shortcut" not in told


def test_show_prints_one_failure_with_what_people_say(labelled: Path, reflex: Reflex) -> None:
    """Safely, for a terminal."""
    told = reflex("data", "show", "f0", "--dataset", labelled).out
    for words in (
        "task 0",
        f"root cause  {CAUSES[0]}",
        "decided     ann is right",
        "evidence    run 0",
        f"vote        ben: {CAUSES[5]}",
    ):
        assert words in told
    assert reflex("data", "show", "f0", "--dataset", labelled, "--json").json["family"] == "fam0"
    assert "no failure has the id 'nope'" in reflex("data", "show", "nope", "--dataset", labelled).refusal
