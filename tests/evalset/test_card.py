"""A card says what is in the rows, and its head tells `datasets` how to read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure, Vote
from dspy_reflex.evalset.publishing.about import About, read_about
from dspy_reflex.evalset.publishing.card import card_of
from dspy_reflex.records.failure import Failure
from tests.evalset.rows import COLOURS, row

ABOUT = About("Ten | colours: «rot»", "MIT", "What it is.", "By hand.", "By two.", "At random.", "Small.")
KEYS = ("title", "licence", "summary", "made", "labelled", "splits", "limits")


def extra(number: int, **fields: Any) -> LabelledFailure:
    """A row with fields of its own."""
    failure = Failure.model_validate({"id": f"f{number}", "task": "t", "actual_outcome": "no", **fields})
    return LabelledFailure(failure=failure, root_cause="red")


def card(about: About = ABOUT, **splits: tuple[LabelledFailure, ...]) -> str:
    """The card of these splits."""
    return card_of(EvalSet("mine", COLOURS, splits), about, "abc")


def head(text: str, folder: Path) -> dict[str, Any]:
    """The front matter, read by the hub's own reader."""
    from huggingface_hub import metadata_load

    (folder / "README.md").write_text(text, encoding="utf-8")
    return metadata_load(folder / "README.md") or {}


def types(text: str, folder: Path) -> dict[str, Any]:
    """Field to its type, from the front matter."""
    features = head(text, folder)["dataset_info"]["features"]
    return {one["name"]: one.get("dtype") or one["list"] for one in features}


def section(text: str, title: str) -> str:
    """The text below a heading."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_head_names_licence_title_and_one_file_a_split(tmp_path: Path) -> None:
    """In one configuration, the default."""
    found = head(card(train=(row(1),), test=(row(2),)), tmp_path)
    files = [{"split": "train", "path": "train.jsonl"}, {"split": "test", "path": "test.jsonl"}]
    assert found["license"] == "mit"
    assert found["pretty_name"] == ABOUT.title
    assert found["configs"] == [{"config_name": "default", "default": True, "data_files": files}]


def test_a_licence_of_ones_own_is_other_on_the_hub(tmp_path: Path) -> None:
    """The hub takes no name that it does not list."""
    about = About("t", "LicenseRef-Ours", "s", "m", "l", "s", "l")
    found = head(card(about, train=(row(1),)), tmp_path)
    assert (found["license"], found["license_name"]) == ("other", "ours")


def test_every_field_has_its_type(tmp_path: Path) -> None:
    """Known fields by their meaning."""
    found = types(card(train=(row(1),)), tmp_path)
    vote = [{"name": name, "dtype": "string"} for name in ("annotator", "root_cause", "second")]
    assert found["context"] == "json"
    assert found["task"] == "string"
    assert found["key_points"] == {"list": "string"}
    assert found["evidence"] == found["existing_rules"] == found["also_acceptable"] == "string"
    assert found["votes"] == vote


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("a", "b"), "string"),
        (("a", None), "string"),
        (("2026-01-01", "2026-01-02T10:00:00Z"), "json"),
        ((True, False), "bool"),
        ((1, 2), "int64"),
        ((1.5, 2.0), "float64"),
        ((1, 2.0), "json"),
        ((1, True), "json"),
        ((1, 2**63), "json"),
        (("a", 1), "json"),
        ((["a"], ["b"]), "json"),
        ((None, None), "json"),
    ],
)
def test_an_unknown_field_has_the_type_that_all_its_values_have(
    values: tuple[Any, Any], kind: str, tmp_path: Path
) -> None:
    """Otherwise it is JSON."""
    rows = [extra(number, note=value) for number, value in enumerate(values)]
    assert types(card(train=(rows[0],), test=(rows[1],)), tmp_path)["note"] == kind


def test_a_context_that_is_text_in_every_row_is_text(tmp_path: Path) -> None:
    """As JSON it would come back parsed wherever it looks like JSON."""
    text = card(train=(extra(1, context="{}"), extra(2, context="log"), extra(3)))
    assert types(text, tmp_path)["context"] == "string"


def test_a_set_that_is_not_divided_is_called_train(tmp_path: Path) -> None:
    """`datasets` loads no split named all."""
    text = card(all=(row(1),))
    assert head(text, tmp_path)["configs"][0]["data_files"] == [{"split": "train", "path": "all.jsonl"}]
    assert "`all.jsonl` is loaded as the split `train`" in text


@pytest.mark.parametrize("names", [("all", "test"), ("my-split",), ("a b",)])
def test_a_split_that_cannot_be_loaded_is_refused(names: tuple[str, ...]) -> None:
    """With the file's name."""
    with pytest.raises(DatasetError, match=rf"^{names[0]}\.jsonl: .*rename"):
        card(ABOUT, **{name: (row(number),) for number, name in enumerate(names)})


def test_the_table_counts_rows_families_and_causes() -> None:
    """A row without a family is one of its own."""
    train = (row(1, family="a"), row(2, "green", family="a"), row(3, "green"))
    text = card(train=train, controls=(row(4, None),))
    assert "| train | 3 | 2 | 1 | 2 | 0 | 0 |" in text
    assert "| controls | 1 | 1 | 0 | 0 | 0 | 1 |" in text
    assert "| together | 4 | 3 | 1 | 2 | 0 | 1 |" in text


def test_agreement_is_of_the_votes_and_not_of_the_labels() -> None:
    """Three of four votes agree; kappa is by hand (.75 - .5) / (1 - .5)."""
    pairs = [("red", "red"), ("green", "green"), ("red", "red"), ("red", "green")]
    rows = tuple(
        row(number, one, votes=(Vote(annotator="anna", root_cause=one), Vote(annotator="b|n", root_cause=other)))
        for number, (one, other) in enumerate(pairs)
    )
    found = section(card(train=rows), "Agreement before adjudication")
    assert "anna and b\\|n on 4 rows" in found
    assert "| raw agreement | 0.750 |" in found
    assert "| Cohen's kappa (95 % bootstrap interval over families) | 0.500 (" in found
    assert "| green | 0.500 |" in found


def test_what_was_not_measured_is_said_to_be_unknown() -> None:
    """One annotator, and too few rows."""
    text = card(train=(row(1, votes=(Vote(annotator="anna", root_cause="red"),)),))
    assert "Not known" in section(text, "Agreement before adjudication")
    assert "Not measured" in section(text, "What gives the cause away")


def test_what_gives_the_cause_away_is_measured() -> None:
    """A source that is the cause tells all of them; circumstances that no row has are left out."""
    rows = tuple(row(n, COLOURS.labels[n % 3], source=COLOURS.labels[n % 3]) for n in range(60))
    found = section(card(train=rows), "What gives the cause away")
    assert "| nothing (the most frequent cause) | 0.333 |" in found
    assert "| source alone | 1.000 |" in found
    assert "domain" not in found


def test_every_field_is_explained() -> None:
    """By the record's words, and those that people wrote for fields of their own."""
    about = About("t", "MIT", "s", "m", "l", "s", "l", {"note": "A | bar\nand a line."})
    found = section(card(about, train=(extra(1, note="x"),)), "Fields")
    assert "| `task` | What the agent was asked to do. |" in found
    assert "| `evidence` | Quotes of the failure that decide the label, word for word. |" in found
    assert "| `note` | A \\| bar and a line. |" in found


def test_what_people_say_is_in_its_section() -> None:
    """Word for word."""
    text = card(train=(row(1),))
    for title, words in {"How it was made": "By hand.", "Labels": "By two.", "Limits": "Small."}.items():
        assert section(text, title).strip() == words
    assert section(text, "Splits").strip().startswith("At random.")
    assert "MIT. Version `abc`" in section(text, "Licence and version")


def written(folder: Path, text: str) -> Path:
    """A TOML file."""
    (folder / "about.toml").write_text(text, encoding="utf-8")
    return folder / "about.toml"


def test_about_is_read_with_the_official_spelling_of_the_licence(tmp_path: Path) -> None:
    """And without blanks at the ends."""
    lines = "".join(f'{key} = " {"cc-by-4.0" if key == "licence" else key} "\n' for key in KEYS)
    found = read_about(written(tmp_path, f'{lines}[fields]\nnote = "n"\n'))
    assert (found.licence, found.made, found.fields) == ("CC-BY-4.0", "made", {"note": "n"})


def test_all_problems_of_about_are_said_at_once(tmp_path: Path) -> None:
    """Missing, unknown, blank, no text, no licence."""
    file = written(tmp_path, 'title = " "\nlicence = "MIT OR ISC"\nsummary = 3\nmde = "x"\n[fields]\nnote = 1\n')
    with pytest.raises(DatasetError) as caught:
        read_about(file)
    text = str(caught.value)
    assert "9 problems" in text
    for said in ("title is no text", "licence 'MIT OR ISC' is not one SPDX", "summary is no text", "mde is not known",
                 "made is missing", "labelled is missing", "splits is missing", "limits is missing", "fields.note is no text"):  # fmt: skip
        assert f"{file}: {said}" in text


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "no such file"), (b"title = ", "not TOML"), (b'title = "\xff"', "not UTF-8 at byte 10")],
)
def test_a_file_that_is_no_toml_is_refused(content: bytes | None, said: str, tmp_path: Path) -> None:
    """In one sentence."""
    file = tmp_path / "about.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DatasetError, match=said):
        read_about(file)
