"""Native labels to the six causes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspy_reflex import load_taxonomy
from dspy_reflex.errors import TaxonomyError
from dspy_reflex.evalset.importers.imported import Imported, Row, make_row
from dspy_reflex.evalset.importers.mapping import load_mapping, mappings, to_six

PRESETS = ("agenterrorbench", "agentrx", "mast", "trail", "whowhen")
MAPPING = {"slip": ("reasoning_error",), "guess": ("overconfidence", "reasoning_error"), "other": ()}


def row(name: str, *labels: str) -> Row:
    """A row with these native labels."""
    return make_row(name, source="s", agent="a", task="t", actual="o", trace="x", labels=labels, native=labels)


def imported(*rows: Row) -> Imported:
    """Rows, each with an explanation."""
    return Imported(rows, {str(each["id"]): f"why {each['id']}" for each in rows}, {"no label": 2})


def test_the_first_cause_is_the_root_cause_and_the_others_are_acceptable() -> None:
    six = to_six(imported(row("a", "guess"), row("b", "slip", "guess")), MAPPING)
    assert [(each["root_cause"], each["also_acceptable"]) for each in six.imported.rows] == [
        ("overconfidence", ["reasoning_error"]),
        ("reasoning_error", ["overconfidence"]),
    ]
    assert [each["label_native"] for each in six.imported.rows] == [["guess"], ["slip", "guess"]]


def test_what_does_not_map_is_dropped_and_counted_by_label() -> None:
    six = to_six(
        imported(row("a", "slip"), row("b", "other"), row("c", "unheard"), row("d"), row("e", "slip")), MAPPING
    )
    assert [each["id"] for each in six.imported.rows] == ["a", "e"]
    assert (dict(six.kept), dict(six.dropped)) == ({"slip": 2}, {"other": 1, "unheard": 1, "(no label)": 1})
    assert six.imported.explanations == {"a": "why a", "e": "why e"}
    assert six.imported.skipped == {"no label": 2}


def test_the_import_itself_is_left_as_it_was() -> None:
    before = imported(row("a", "guess"))
    to_six(before, MAPPING)
    assert before.rows[0]["root_cause"] == "guess"


@pytest.mark.parametrize("name", PRESETS)
def test_a_mapping_has_a_line_for_each_label_of_its_preset_and_no_other(name: str) -> None:
    assert tuple(load_mapping(name)) == load_taxonomy(name).labels


@pytest.mark.parametrize("name", mappings())
def test_a_mapping_names_causes_once_and_not_half_of_them(name: str) -> None:
    """A set of three of six would decide nothing."""
    assert all(len(set(causes)) == len(causes) <= 2 for causes in load_mapping(name).values())


def test_a_mapping_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('"a b" = ["tool_failure"]\n', encoding="utf-8")
    assert load_mapping(str(path)) == {"a b": ("tool_failure",)}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'a = ["tool"]', "'a' maps to 'tool', which is none of tool_failure, instruction_ambiguity"),
        (b'a = "tool_failure"', "a mapping has one line a label"),
        (b"a = [", "not valid TOML"),
        (b"a = ['\xff']", "not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(content)
    with pytest.raises(TaxonomyError, match=complaint):
        load_mapping(str(path))


def test_a_misspelt_mapping_gets_the_list() -> None:
    with pytest.raises(TaxonomyError, match="no mapping 'trial': name one of agenterrorbench, agentrx, lakmus"):
        load_mapping("trial")
