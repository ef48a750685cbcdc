"""Taxonomies: the presets and the user's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dspy_reflex.errors import TaxonomyError
from dspy_reflex.taxonomies.load import DEFAULT, load_taxonomy, presets

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
SIX = (
    "tool_failure",
    "instruction_ambiguity",
    "context_loss",
    "knowledge_gap",
    "overconfidence",
    "reasoning_error",
)
OWN = """
name = "own"
[[cause]]
name = "late"
definition = " It came too late. "
[[cause]]
name = "never"
definition = "It never came."
boundary = "Not when it came."
example = "Nothing came."
"""


def test_the_presets() -> None:
    assert presets() == ("agenterrorbench", "agentrx", "mast", "six", "trail", "whowhen")


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_complete(name: str) -> None:
    taxonomy = load_taxonomy(name)
    assert taxonomy.name == name
    assert taxonomy.guide
    assert all(cause.definition and cause.boundary and cause.example for cause in taxonomy.causes)


@pytest.mark.parametrize("name", presets())
def test_guides_and_boundaries_speak_of_labels_that_exist(name: str) -> None:
    """Every label that looks like one of the set's, is."""
    taxonomy = load_taxonomy(name)
    assert any(label in taxonomy.guide for label in taxonomy.labels)
    known = set(taxonomy.labels)
    words = {word.strip(".,;:()'") for cause in taxonomy.causes for word in cause.boundary.split()}
    words |= {word.strip(".,;:()'") for word in taxonomy.guide.split()}
    written_as_labels = {word for word in words if "_" in word or (word.isupper() and len(word) > 3)}
    assert written_as_labels <= known


def test_six_is_the_default_and_in_the_order_of_its_questions() -> None:
    assert load_taxonomy().labels == load_taxonomy(DEFAULT).labels == SIX
    guide = load_taxonomy().guide
    asked = [guide.index(f"{label}\n") for label in SIX]
    assert asked == sorted(asked)


@pytest.mark.parametrize("name", ["trail", "whowhen"])
def test_a_preset_has_every_label_of_its_data_set(name: str) -> None:
    source = DATA / f"native_{name}.dev.jsonl"
    if not source.exists():
        pytest.skip(f"{source.name} is not published with this repository; it is looked for in ../shared/data")
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    native = {label for row in rows for label in row["label_native"] or ()}
    assert native
    assert native <= set(load_taxonomy(name).labels)


def own_file(folder: Path, content: str) -> str:
    """A user's taxonomy file."""
    path = folder / "own.toml"
    path.write_text(content, encoding="utf-8")
    return str(path)


def test_a_file_of_the_users(tmp_path: Path) -> None:
    taxonomy = load_taxonomy(own_file(tmp_path, OWN))
    assert taxonomy.labels == ("late", "never")
    assert taxonomy.causes[0].definition == "It came too late."
    assert taxonomy.guide == ""
    assert taxonomy.causes[1].example == "Nothing came."


def test_a_preset_wins_over_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "six").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_taxonomy("six").labels == SIX
    assert load_taxonomy("./six").labels == ("late", "never")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("name = ", "not valid TOML"),
        (OWN.replace('name = "own"\n', ""), "name: Field required"),
        ('name = "own"', "cause: Field required"),
        (OWN.partition('[[cause]]\nname = "never"')[0], "causes: Tuple should have at least 2 items"),
        (OWN.replace("never", "late", 1), "a label occurs twice"),
        (OWN.replace('"never"', '"none"'), "'none' cannot be a label"),
        (OWN.replace('"late"', '"\u00fcber"'), "name: String should match pattern"),
        (OWN.replace('" It came too late. "', '"  "'), "cause.0.definition: String should have at least 1 character"),
        (OWN.replace("boundary", "boundry"), "cause.1.boundry: Extra inputs"),
    ],
)
def test_a_bad_file_is_refused_with_file_reason_and_remedy(tmp_path: Path, content: str, reason: str) -> None:
    path = own_file(tmp_path, content)
    with pytest.raises(TaxonomyError) as caught:
        load_taxonomy(path)
    message = str(caught.value)
    assert message.startswith(path)
    assert reason in message
    assert ";" in message.removeprefix(path)


@pytest.mark.parametrize("name", ["seven", "", "none.toml", "a\0b", "x" * 5000])
def test_a_name_that_leads_nowhere_is_refused(name: str) -> None:
    with pytest.raises(TaxonomyError):
        load_taxonomy(name)


def test_a_misspelt_preset_gets_the_list() -> None:
    with pytest.raises(TaxonomyError, match="agenterrorbench, agentrx, mast, six, trail, whowhen"):
        load_taxonomy("sixx")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(TaxonomyError, match="not UTF-8"):
        load_taxonomy(str(tmp_path / "binary.toml"))
