"""The command `data import`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex.cli.data.importing import FORMATS
from dspy_reflex.evalset.importers import registry
from tests.cli.runner import Reflex, files_below, in_process
from tests.evalset.importers.published import (
    agentrx_annotation,
    agentrx_run,
    objects,
    trail_error,
    trail_trace,
    whowhen_run,
    write,
)


@pytest.fixture
def reflex(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], in_empty_folder: Path) -> Reflex:
    """Run a command in an empty folder."""
    del in_empty_folder
    return in_process(monkeypatch, capsys)


@pytest.fixture
def agentrx(tmp_path: Path) -> Path:
    """Three annotated runs, of which one category maps to no cause."""
    kinds = ("System Failure", "Intent Not Supported", "System Failure")
    records = [agentrx_annotation(f"r{number}", kind) for number, kind in enumerate(kinds)]
    return write(tmp_path / "all.jsonl", [*records, *(agentrx_run(f"r{number}") for number in range(3))])


OUT = Path("out.jsonl")


def test_the_command_offers_what_the_registry_has() -> None:
    assert FORMATS == registry.FORMATS


def test_an_import_counts_the_labels_and_writes_the_rows_only(reflex: Reflex, agentrx: Path) -> None:
    done = reflex("data", "import", "agentrx", agentrx, "--out", OUT)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        f"imported 3 rows from {agentrx}",
        "       2  System Failure",
        "       1  Intent Not Supported",
        f"written to {OUT}",
    ]
    assert [row["root_cause"] for row in objects(OUT)] == ["System Failure", "Intent Not Supported", "System Failure"]
    assert files_below(Path()).keys() == {"all.jsonl", "out.jsonl"}
    assert "nothing was confirmed" not in OUT.read_text(encoding="utf-8")


def test_a_map_says_what_became_of_each_label(reflex: Reflex, agentrx: Path) -> None:
    done = reflex("data", "import", "agentrx", agentrx, "--out", OUT, "--map", "six")
    assert "       2  System Failure  2 mapped" in done.out
    assert "       1  Intent Not Supported  1 dropped" in done.out
    assert "mapped 2, dropped 1\n       2  tool_failure\n" in done.out
    assert [row["root_cause"] for row in objects(OUT)] == ["tool_failure", "tool_failure"]


def test_json_is_one_document_and_nothing_else(reflex: Reflex, agentrx: Path) -> None:
    done = reflex("data", "import", "agentrx", agentrx, "--out", OUT, "--map", "six", "--json")
    assert done.err == ""
    assert done.json == {
        "format": "agentrx", "path": str(agentrx), "out": "out.jsonl", "rows": 2, "imported": 3, "unlabelled": 0,
        "labels": {"System Failure": 2, "Intent Not Supported": 1}, "skipped": {}, "explanations": 2,
        "causes": {"tool_failure": 2}, "kept": {"System Failure": 2}, "dropped": {"Intent Not Supported": 1},
        "problems": [],
    }  # fmt: skip


def test_explanations_go_to_a_file_of_their_own_when_asked_for(reflex: Reflex, agentrx: Path) -> None:
    reflex("data", "import", "agentrx", agentrx, "--out", OUT, "--explanations", "why.jsonl", "--map", "six")
    found = objects(Path("why.jsonl"))
    assert [line["id"] for line in found] == [row["id"] for row in objects(OUT)]
    assert all("nothing was confirmed" in line["explanation"] for line in found)


def test_bad_records_stop_an_import_and_nothing_is_written(reflex: Reflex, tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", [whowhen_run(1), {"a": 1}])
    done = reflex("data", "import", "whowhen", path, "--out", OUT)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: 5 problems, nothing was read:\n")
    assert not OUT.exists()


def test_bad_records_are_left_out_and_counted_if_that_is_wanted(reflex: Reflex, tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", [whowhen_run(1), {"a": 1}])
    done = reflex("data", "import", "whowhen", path, "--out", OUT, "--skip-bad")
    assert done.code == 0
    assert f"warning: skipped {path}:2: question is missing" in done.err
    assert done.err.splitlines()[-1] == "warning: 1 records were skipped, 5 problems"
    assert "       1  without a label" in done.out
    assert "no row:      1  could not be used" in done.out
    assert len(objects(OUT)) == 1


def test_a_table_is_mapped_by_columns_and_by_a_table_of_causes(reflex: Reflex, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q,a,kind\nHow?,so,slip\nWho?,me,guess\n", encoding="utf-8")
    (tmp_path / "own.toml").write_text('slip = ["reasoning_error"]\n', encoding="utf-8")
    columns = [part for pair in ("task=q", "actual_outcome=a", "root_cause=kind") for part in ("--column", pair)]
    done = reflex("data", "import", "table", table, "--out", OUT, *columns, "--map", "own.toml", "--json")
    assert (done.json["kept"], done.json["dropped"]) == ({"slip": 1}, {"guess": 1})
    assert objects(OUT)[0]["task"] == "How?"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("table", "t.csv", "--map", "six"), "a table has no mapping of its own; say which with --map NAME"),
        (("table", "t.csv", "--column", "task"), "'task' is not FIELD=COLUMN, such as task=question"),
        (("table", "t.csv"), "t.csv: no such file or folder"),
        (("mast", "x.json", "--map", "seven"), "no mapping 'seven': name one of "),
        (("other", "x.json"), "'other' is not one of 'whowhen'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(arguments: tuple[str, ...], complaint: str, reflex: Reflex) -> None:
    if arguments[0] == "mast":
        write(Path("x.json"), whowhen_run())
    assert complaint in reflex("data", "import", *arguments, "--out", OUT).refusal


def test_an_import_of_which_nothing_maps_writes_nothing(reflex: Reflex, tmp_path: Path) -> None:
    path = write(tmp_path / "run.json", whowhen_run())
    refusal = reflex("data", "import", "whowhen", path, "--out", OUT, "--map", "six").refusal
    assert "no row is left: none of these maps to a cause: (no label) 1; import without --map" in refusal
    assert not OUT.exists()


def test_a_folder_of_traces_and_annotations_is_imported(reflex: Reflex, tmp_path: Path) -> None:
    write(tmp_path / "set" / "traces" / "t1.json", trail_trace())
    write(tmp_path / "set" / "annotations" / "t1.json", {"errors": [trail_error("Language-only")]})
    done = reflex("data", "import", "trail", tmp_path / "set", "--out", OUT, "--map", "six", "--json")
    assert done.json["causes"] == {"overconfidence": 1}
