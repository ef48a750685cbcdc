"""Which program becomes current."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex.errors import DatasetError, ProgramError
from dspy_reflex.optimize.compile import run_compile
from dspy_reflex.runtime import library
from dspy_reflex.runtime.history import history
from dspy_reflex.runtime.library import current
from dspy_reflex.runtime.lm.offline import MODEL
from tests.optimize.compiles import quick, quickly, take, write_rows
from tests.optimize.thinking import WEAK, pointed_at, says


def test_a_program_worse_than_uncompiled_is_written_and_not_made_current(tmp_path: Path) -> None:
    """It learns from two causes, and val has the other four."""
    two = ("tool_failure", "context_loss")
    write_rows(tmp_path / "data" / "train.jsonl", [row for row in take(0, 3) if row["root_cause"] in two])
    write_rows(tmp_path / "data" / "val.jsonl", [row for row in take(3, 6) if row["root_cause"] not in two])
    result = quick(tmp_path, tmp_path / "data", optimizer="labeled_few_shot")
    assert result.scores["value"] < result.scores["uncompiled"]["value"]
    assert result.path.exists()
    assert MODEL not in current(tmp_path / "out", "root_cause")
    assert any("worse than the uncompiled" in line for line in result.warnings)


def test_what_is_no_better_than_uncompiled_is_not_made_current(small: Path, tmp_path: Path) -> None:
    """Nothing speaks for it; this model says the same whatever it is shown."""
    with pytest.MonkeyPatch.context() as patch, pointed_at(patch) as serve:
        serve(lambda _: says("tool_failure"))
        result = quick(tmp_path, small, optimizer="labeled_few_shot", lm=WEAK)
    assert result.scores["value"] == result.scores["uncompiled"]["value"]
    assert current(tmp_path / "out", "root_cause") == {}
    assert any("no better than the uncompiled program on val" in line for line in result.warnings)


def test_it_is_said_which_program_is_not_used_any_more(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in `./programs` comes before the bundled one; elsewhere nobody looks."""
    monkeypatch.chdir(tmp_path)
    bundled = current(library.bundled("programs"), "root_cause")[MODEL]
    run_compile(quickly("root_cause", (small,)), out=tmp_path / "elsewhere", run=tmp_path / "one")
    made = run_compile(quickly("root_cause", (small,)), out=Path("programs"), run=tmp_path / "two")
    (said,) = (line for line in made.warnings if "from now on" in line)
    assert said.startswith(f"{made.artifact.name} is used here from now on instead of root_cause@{bundled}; ")


def test_only_the_first_program_of_a_model_becomes_current_by_itself(small: Path, tmp_path: Path) -> None:
    """Another one needs a test on rows that neither was chosen on; compiled again, the first one is as it was."""
    one = quick(tmp_path / "one", small)
    place = tmp_path / "one" / "out"
    options = quickly("root_cause", (small,), optimizer="labeled_few_shot")
    other = run_compile(options, out=place, run=tmp_path / "two")
    assert other.path.exists()
    assert other.path.parent == one.path.parent
    assert current(place, "root_cause") == {MODEL: one.artifact.version}
    assert any("promote" in line and other.artifact.name in line for line in other.warnings)
    again = run_compile(quickly("root_cause", (small,)), out=place, run=tmp_path / "three")
    assert (again.artifact, again.warnings) == (one.artifact, one.warnings)
    assert [move.after for move in history(place, "root_cause").moves] == [one.artifact.version]


def test_a_file_beside_a_folder_gives_no_row_of_the_folders_test_questions(tmp_path: Path) -> None:
    """The same question in another file would be trained on and tested on."""
    write_rows(tmp_path / "data" / "train.jsonl", take(0, 3))
    write_rows(tmp_path / "data" / "test.jsonl", [{**row, "group": "kept"} for row in take(3, 4)])
    shared = [{**row, "id": f"again-{row['id']}", "group": "kept"} for row in take(4, 5)]
    path = write_rows(tmp_path / "more.jsonl", [*shared, *take(5, 6)])
    result = quick(tmp_path, [tmp_path / "data", path])
    data = result.artifact.data["data"]
    assert len(data["train"]) + len(data["val"]) == len(take(0, 3)) + len(take(5, 6))


def test_a_damaged_library_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    """Nothing is paid for that could not be kept."""
    write_rows(tmp_path / "data" / "train.jsonl", take(0, 1))
    (tmp_path / "out" / "root_cause").mkdir(parents=True)
    (tmp_path / "out" / "root_cause" / "current.json").write_text("[", encoding="utf-8")
    with pytest.raises(ProgramError, match=r"current\.json"):
        quick(tmp_path, tmp_path / "data")
    assert not (tmp_path / "run" / "result.json").exists()


def test_a_folder_without_train_is_refused(tmp_path: Path) -> None:
    """Its test rows must not be learnt from."""
    write_rows(tmp_path / "data" / "val.jsonl", take(0, 1))
    write_rows(tmp_path / "data" / "test.jsonl", take(1, 2))
    with pytest.raises(DatasetError, match=r"needs train\.jsonl"):
        quick(tmp_path, tmp_path / "data")
