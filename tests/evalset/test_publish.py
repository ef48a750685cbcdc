"""A published folder loads as it stands, row for row, and is the same bytes every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.lines import Line
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.evalset.publishing.folder import Published, publish
from dspy_reflex.evalset.rows import to_labelled
from tests.cli.runner import files_below
from tests.evalset.rows import COLOURS, raw, write

WORDS = "title made labelled splits limits summary"
CONTEXTS: list[Any] = [
    {"trace": "GET /a\u2028b\n\u0000", "n": [1, {"deep": None}]},
    {"trace": 3, "": {}, "at": "2026-01-01T10:00:00Z"},
    ["a", 1, 2.5, None, False],
    "nur Text: Größe 🙂",
    None,
    2**63,
    {"n": 1.0, "json": "{}"},
]


@pytest.fixture
def about(tmp_path: Path) -> Path:
    """What people say."""
    file = tmp_path / "about.toml"
    file.write_text('licence = "MIT"\n' + "".join(f'{key} = "{key}"\n' for key in WORDS.split()), encoding="utf-8")
    return file


def ragged() -> list[dict[str, Any]]:
    """Rows that have little in common."""
    rows = [raw(n, task=f"task {n} é\u00a0ü", context=context) for n, context in enumerate(CONTEXTS)]
    rows[0] |= {"hard": True, "note": {"a": 1}, "at": "2026-01-01", "count": 2**62, "share": 0.25, "remedy": ["x"]}
    rows[1] |= {"note": "text", "key_points": [["a", "ä"], []], "evidence": ["task 1"], "also_acceptable": ["blue"]}
    rows[3] |= {"group": "2026-01-01 10:00", "at": "2026-01-02T00:00:00+02:00"}
    rows[2] |= {"votes": [{"annotator": "a", "root_cause": "red"}, {"annotator": "b", "root_cause": "red", "second": "blue"}]}  # fmt: skip
    return rows


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with all kinds of splits."""
    folder, rows = tmp_path / "mine", ragged()
    write(folder / "train.jsonl", *rows[:4])
    write(folder / "test.jsonl", *rows[4:])
    for number, name in enumerate(("val", "test_hard", "zebra"), start=20):
        write(folder / f"{name}.jsonl", raw(number))
    for number, name in enumerate(("unknown", "controls"), start=30):
        write(folder / f"{name}.jsonl", raw(number, root_cause=None))
    return folder


def load(folder: Path, cache: Path) -> dict[str, list[dict[str, Any]]]:
    """What a user of `datasets` gets."""
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    found: Any = load_dataset(str(folder), cache_dir=str(cache), keep_in_memory=True)
    return {name: list(rows) for name, rows in found.items()}


def done(source: Path, about: Path, out: Path) -> Published:
    """Publish it."""
    return publish(source, about, out, COLOURS)


def test_every_row_is_loaded_as_it_was(source: Path, about: Path, tmp_path: Path) -> None:
    """Whatever its context is, in every split; read back, it is the record it was."""
    found = done(source, about, tmp_path / "out")
    before = load_evalset(source, COLOURS)
    loaded = load(tmp_path / "out", tmp_path / "cache")
    assert list(loaded) == list(found.rows) == ["train", "val", "test", "test_hard", "unknown", "controls", "zebra"]
    for split, rows in before.splits.items():
        lines = [json.loads(line) for line in (tmp_path / "out" / f"{split}.jsonl").read_bytes().splitlines()]
        assert [{name: line.get(name) for name in row} for line, row in zip(lines, loaded[split], strict=True)] == (
            loaded[split]
        )
        again = [to_labelled(Line("", row), COLOURS.labels, Problems(), needs_cause=False) for row in loaded[split]]
        assert again == [row.model_copy(update={"where": ""}) for row in rows]


def test_one_file_is_loaded_as_train(about: Path, tmp_path: Path) -> None:
    """And published again from the folder, it is the same."""
    file = write(tmp_path / "mine.jsonl", *ragged())
    first = done(file, about, tmp_path / "out")
    assert [row["id"] for row in load(tmp_path / "out", tmp_path / "cache")["train"]] == [f"f{n}" for n in range(7)]
    before = files_below(tmp_path / "out")
    assert set(before) == {"README.md", "all.jsonl", "manifest.json"}
    assert done(tmp_path / "out", about, tmp_path / "out").version == first.version
    assert files_below(tmp_path / "out") == before


def test_publishing_again_changes_no_byte(source: Path, about: Path, tmp_path: Path) -> None:
    """Not in place, not elsewhere; other files of the folder stay, and are no part of it."""
    (source / "notes.txt").write_text("mine")
    first = done(source, about, source)
    before = files_below(source)
    assert done(source, about, source) == first
    assert files_below(source) == before
    done(source, about, tmp_path / "elsewhere")
    assert files_below(tmp_path / "elsewhere") == {name: before[name] for name in first.files}
    assert "notes.txt" not in first.files
    assert first.files == {name: len(before[name]) for name in first.files}


def test_the_version_is_that_of_the_content(source: Path, about: Path, tmp_path: Path) -> None:
    """Other words in the card leave it; another row makes another."""
    first = done(source, about, tmp_path / "a").version
    about.write_text(about.read_text().replace('title = "title"', 'title = "new"'))
    assert done(source, about, tmp_path / "b").version == first
    write(source / "zebra.jsonl", raw(22, task="another"))
    changed = done(source, about, tmp_path / "c").version
    assert changed != first
    assert f"Version `{changed}`" in (tmp_path / "c" / "README.md").read_text()
    assert len(changed) == 12


def test_a_number_that_datasets_rounds_is_published(about: Path, tmp_path: Path) -> None:
    """The file has it as it was, and the card says that it is rounded on the way."""
    number = 0.048592769656281266
    done(write(tmp_path / "mine.jsonl", raw(1, context={"p": number})), about, tmp_path / "out")
    assert str(number) in (tmp_path / "out" / "all.jsonl").read_text()
    assert load(tmp_path / "out", tmp_path / "cache")["train"][0]["context"]["p"] == pytest.approx(number, abs=1e-9)
    assert "rounds floating-point numbers" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{}", "mine.jsonl:1: context of 'f1' comes back from `load_dataset` as {};"),
        ("null", "context of 'f1' comes back from `load_dataset` as None;"),
        ({"n": 1.7976931348623157e308}, "context of 'f1' comes back from `load_dataset` as {'n': inf};"),
        ({"n": 2**64}, "cannot read it (Value is too big"),
    ],
)
def test_a_row_that_datasets_would_change_is_refused(value: Any, said: str, about: Path, tmp_path: Path) -> None:
    """Nothing is written then."""
    file = write(tmp_path / "mine.jsonl", raw(1, context=value), raw(2, context={"a": 1}))
    with pytest.raises(DatasetError) as caught:
        done(file, about, tmp_path / "out")
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_set_with_errors_is_refused(about: Path, tmp_path: Path) -> None:
    """With the first three and the command that shows all."""
    rows = [raw(n, evidence=["words that are nowhere"]) for n in range(5)]
    file = write(tmp_path / "mine.jsonl", *rows)
    with pytest.raises(DatasetError) as caught:
        done(file, about, tmp_path / "out")
    text = str(caught.value)
    assert f"{file}: 5 errors" in text
    assert f"dspy-reflex data validate {file}" in text
    assert [f"mine.jsonl:{line}" in text for line in (1, 2, 3, 4)] == [True, True, True, False]
    assert "... and 2 more" in text
    assert not (tmp_path / "out").exists()


def test_a_split_that_is_not_what_the_manifest_says_is_refused(source: Path, about: Path) -> None:
    """A new version needs that somebody takes the old manifest away."""
    done(source, about, source)
    write(source / "zebra.jsonl", raw(22, task="another"))
    with pytest.raises(DatasetError, match=r"zebra is not what manifest\.json says"):
        done(source, about, source)


def test_a_folder_with_other_things_in_it_is_refused(source: Path, about: Path, tmp_path: Path) -> None:
    """So is a file."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    for place in (tmp_path / "out", about):
        with pytest.raises(DatasetError, match="is not empty and not"):
            done(source, about, place)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_an_explanation_of_a_field_that_no_row_has_is_refused(source: Path, about: Path, tmp_path: Path) -> None:
    """It would explain nothing: a slip."""
    about.write_text(about.read_text() + '[fields]\nhrad = "x"\nhard = "y"\n')
    with pytest.raises(DatasetError, match=r"about\.toml: no row has hrad;"):
        done(source, about, tmp_path / "out")
