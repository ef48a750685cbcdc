"""What makes two rows the same row, and what a split must keep together."""

from __future__ import annotations

from dspy_reflex.records.failure import Failure
from tests.evalset.rows import row


def test_a_row_is_recognised_under_another_id() -> None:
    """The hash is of the text that a program sees, so ids, labels and unknown fields do not count."""
    first = row(1)
    renamed = first.model_copy(
        update={"failure": first.failure.model_copy(update={"id": "other"}), "root_cause": "blue"}
    )
    assert renamed.row_hash == first.row_hash
    assert len(first.row_hash) == 16
    assert row(2).row_hash != first.row_hash


def test_the_hash_stays_what_artefacts_have_stored() -> None:
    """A changed hash would let a program be tested on its own training rows."""
    assert row(1).row_hash == "02b82db9b8f1b171"


def test_the_unit_is_the_group_else_the_family_else_the_text() -> None:
    """The same text under two ids is one unit."""
    assert row(1, family="f", group="g").unit == "g"
    assert row(1, family="f").unit == "f"
    twin = row(1).model_copy(update={"failure": Failure(id="twin", task="task 1", actual_outcome="no")})
    assert twin.unit == row(1).unit != row(2).unit


def test_a_row_without_an_id_is_named_by_its_hash() -> None:
    """Reports must name it somehow."""
    nameless = row(1).model_copy(update={"failure": Failure(task="t", actual_outcome="a")})
    assert nameless.id == nameless.row_hash


def test_where_a_row_came_from_is_not_part_of_its_content() -> None:
    """So that a path of this machine ends up nowhere."""
    assert "where" not in row(1, where="/x/a.jsonl:1").model_dump()
